// The events of jobs, from one watch a job to all pages that show it.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "runtime/http_server.h"
#include "tactus/v1/jobs.grpc.pb.h"

namespace tactus::page {

class JobWatch;

// The first page that opens a job begins to watch it, the last one that leaves ends that. An event
// is written down once and shared by all who get it:
//
//   job       the Job, when its state changed, and to begin with
//   progress  its JobProgress, about once a second
//   decision  the Plan that was decided
//   over      the job is in a final state: the last event
//   gone      there is no such job, in words: the last event
//
// When the watch breaks off otherwise the stream just ends, and a browser opens it anew.
// On the server's thread, but for Close.
class JobFeeds {
 public:
  // Below what the API allows one connection, as all of these are.
  static constexpr std::size_t kJobsMax = 64;

  // Shared by all calls under way; see Page::Close.
  using Token = std::shared_ptr<void>;

  // Both outlive this object.
  JobFeeds(runtime::HttpServer& server, v1::Jobs::Stub& jobs) : server_(server), jobs_(jobs) {}
  ~JobFeeds();

  // Sends the job's events to `reader` until it is closed, or says why not.
  std::optional<runtime::HttpResponse> Join(const std::string& job, const Token& token,
                                            const std::shared_ptr<runtime::HttpStream>& reader);

  // Ends the watches. Once the server has stopped.
  void Close();

 private:
  friend class JobWatch;
  using SharedText = std::shared_ptr<const std::string>;

  struct Feed {
    std::shared_ptr<JobWatch> watch;  // shared with the call
    std::set<std::shared_ptr<runtime::HttpStream>> readers = {};
    // For who comes later; null: not yet.
    SharedText job = {};
    SharedText progress = {};
  };

  // Of `watch`, and not for another one of the same job that came since.
  Feed* Find(const JobWatch* watch, const std::string& job);
  void Spread(const JobWatch* watch, const std::string& job, v1::JobEvent::EventCase kind,
              const SharedText& text);
  void End(const JobWatch* watch, const std::string& job, const SharedText& last);
  void Leave(const std::string& job, const std::shared_ptr<runtime::HttpStream>& reader);

  runtime::HttpServer& server_;
  v1::Jobs::Stub& jobs_;
  std::map<std::string, Feed> feeds_;
};

}  // namespace tactus::page
