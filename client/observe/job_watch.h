// One WatchJob stream, delivered on the main thread.

#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "client/api/client.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

struct JobWatchHandlers {
  std::function<void(const v1::JobEvent&)> event;
  // The last call; ok when the server ended the stream.
  std::function<void(const absl::Status&)> end;
};

// Opens the stream at construction and calls the handlers from `context`, one event at a time: the
// next one is read when the handler has returned. The stream ends after an hour at the latest, with
// DeadlineExceeded. Destruction ends the stream; no handler is called after it.
class JobWatch {
 public:
  JobWatch(api::Client& client, boost::asio::io_context& context,
           const v1::WatchJobRequest& request, JobWatchHandlers handlers);
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

 private:
  class Reader;
  const std::unique_ptr<Reader> reader_;
};

}  // namespace tactus::client
