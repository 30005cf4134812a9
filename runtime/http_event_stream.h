// One open stream of server-sent events, on its socket.

#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "runtime/http_server.h"

namespace tactus::runtime {

// Owned by the server's set of streams, by the one who sends, and by its own reads and writes. On
// the server's thread.
class HttpEventStream final : public HttpStream,
                              public std::enable_shared_from_this<HttpEventStream> {
 public:
  // `options` outlives the stream.
  HttpEventStream(boost::asio::ip::tcp::socket socket, const HttpOptions& options)
      : socket_(std::move(socket)), options_(options) {}

  // Sends the head of the answer and what was sent meanwhile, or the refusal alone. Called once.
  void Begin(const std::optional<HttpResponse>& refusal);

  void Send(const std::shared_ptr<const std::string>& event) override;
  void End() override;
  void OnClose(std::function<void()> left) override { left_.push_back(std::move(left)); }

  // Cuts off a reader that takes nothing; else sends a comment if nothing else is under way, so
  // that who listens, and what lies between, sees that the stream lives.
  void Beat(Instant now);

  void Close();
  // Forgets whom to tell, then closes.
  void CloseSilently();
  bool closed() const { return closed_; }

 private:
  void Write();
  void OnWritten(bool failed);
  void WatchForLeaving();

  boost::asio::ip::tcp::socket socket_;
  const HttpOptions& options_;
  std::vector<std::function<void()>> left_;
  std::deque<std::shared_ptr<const std::string>> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::vector<std::shared_ptr<const std::string>> in_flight_;  // empty: no write is under way
  Instant write_began_{};
  char unexpected_ = 0;  // a reader has nothing to say
  bool begun_ = false;
  bool ending_ = false;
  bool closed_ = false;
};

}  // namespace tactus::runtime
