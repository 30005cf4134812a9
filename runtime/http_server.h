// The daemons' HTTP server: metrics, and at the coordinator service discovery and the status page.
// Read-only; nothing that a client does makes it hold more than its limits.

#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/time.h"
#include "runtime/http_message.h"

namespace tactus::runtime {

// One reader of server-sent events. Used on the server's thread alone.
//
// What a reader has not taken yet waits in a queue with a bound. A reader that falls behind loses
// all that waits and is told so by `event: lagging`: it then asks for the present state anew. One
// that takes nothing at all for `send_timeout` is cut off.
class HttpStream {
 public:
  virtual ~HttpStream() = default;

  // Sends an event, written by FormatEvent; shared by all who get it. No effect once it is closed.
  virtual void Send(const std::shared_ptr<const std::string>& event) = 0;

  // Sends what waits, then closes.
  virtual void End() = 0;

  // Calls `left` once when the stream is closed, whoever closes it; not for a server that stops.
  virtual void OnClose(std::function<void()> left) = 0;
};

// An event as it goes over the wire. `name` is a constant of ours; `text` is one line or several.
std::shared_ptr<const std::string> FormatEvent(const std::string& name, const std::string& text);

struct HttpOptions {
  std::string address = "127.0.0.1:0";  // host:port; port 0 takes a free one
  // Of open files of the process, a server takes a quarter at most, whatever is said here: agents
  // have to find room.
  std::size_t connections_max = 2048;
  std::size_t streams_max = 1024;  // of the connections; the others stay free for requests
  std::size_t header_bytes_max = 16 << 10;
  std::size_t target_bytes_max = 4096;
  Duration request_timeout = std::chrono::seconds(30);  // from one answer to the next whole request
  Duration send_timeout = std::chrono::seconds(60);     // to take a whole answer, or an event
  Duration beat = std::chrono::seconds(15);  // how often a quiet stream gets a comment line
  std::size_t stream_bytes_max = 256 << 10;  // waiting for one reader; a single event may be larger
  std::size_t stream_events_max = 256;
  std::size_t answer_bytes_max = 64 << 20;  // in answers that wait to be taken, all together
};

// Answers GET and HEAD on one thread of its own. Routes are set between Open and Start.
//
// Refusals are a plain line: 400 a bad request, 404 an unknown path, 405 another method, 413 a
// request with a body, 414 and 431 too large, 421 a foreign Host at a loopback address, 503 full.
class HttpServer {
 public:
  // Called on the server's thread; returns soon.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  // The same for an answer that takes its time: `reply` is called once, on any thread, then or
  // later, also after the server is gone. One that is dropped answers 500.
  using Reply = std::function<void(HttpResponse)>;
  using LaterHandler = std::function<void(const HttpRequest&, Reply reply)>;
  // Takes the stream and returns nothing, or refuses it.
  using StreamHandler = std::function<std::optional<HttpResponse>(
      const HttpRequest&, const std::shared_ptr<HttpStream>& stream)>;

  // Binds the address; who connects waits for Start.
  // Errors: InvalidArgument, not host:port; Unavailable, the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Open(const HttpOptions& options);

  virtual ~HttpServer() = default;  // Stop()

  // host:port with the port in use.
  virtual const std::string& address() const = 0;

  // `path` is the whole path of a request, decoded.
  virtual void Route(std::string path, Handler handler) = 0;
  virtual void RouteLater(std::string path, LaterHandler handler) = 0;
  virtual void RouteStream(std::string path, StreamHandler handler) = 0;
  virtual void Start() = 0;

  // Runs `task` on the server's thread. From any thread; what is posted after Stop is dropped.
  virtual void Post(std::function<void()> task) = 0;
  // The same after `delay`, from the server's thread.
  virtual void PostAfter(Duration delay, std::function<void()> task) = 0;

  // Ends streams and connections and joins the thread; no handler runs afterwards. From another
  // thread; the second call does nothing.
  virtual void Stop() = 0;
};

}  // namespace tactus::runtime
