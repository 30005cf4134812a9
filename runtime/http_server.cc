#include "runtime/http_server.h"

#include <netinet/tcp.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>
#include <vector>

#include "runtime/control_thread.h"
#include "runtime/http_session.h"
#include "runtime/listener.h"
#include "runtime/now.h"

namespace tactus::runtime {
namespace {

using boost::asio::ip::tcp;

// What the kernel keeps for a reader that is behind; else it would be megabytes for each.
constexpr int kSocketBytes = 128 << 10;
// A machine that is gone without a word does not hold its place for a quarter of an hour.
constexpr unsigned kUserTimeoutMs = 60'000;

std::size_t OpenFilesQuarter() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return std::max<std::size_t>(1, limit.rlim_cur / 4);
}

class HttpServerImpl final : public HttpServer {
 public:
  explicit HttpServerImpl(const HttpOptions& options) {
    shared_.options = options;
    shared_.options.connections_max = std::min(options.connections_max, OpenFilesQuarter());
    shared_.thread = thread_;
  }

  ~HttpServerImpl() override { Stop(); }

  // Errors: as Open.
  absl::Status Listen() {
    auto listener = Listener::Open(*thread_, shared_.options.address);
    if (!listener.ok()) return listener.status();
    listener_ = *std::move(listener);
    shared_.loopback = listener_->loopback();
    shared_.host = HostName(shared_.options.address);
    return absl::OkStatus();
  }

  const std::string& address() const override { return listener_->address(); }

  void Route(std::string path, Handler handler) override {
    Add(std::move(path), std::move(handler));
  }
  void RouteLater(std::string path, LaterHandler handler) override {
    Add(std::move(path), std::move(handler));
  }
  void RouteStream(std::string path, StreamHandler handler) override {
    Add(std::move(path), std::move(handler));
  }

  void Start() override {
    thread_->RunAndWait([this] {
      beat_.emplace(*thread_);
      RepeatBeat();
      listener_->Start([this](tcp::socket socket) { Take(std::move(socket)); });
    });
  }

  void Post(std::function<void()> task) override { thread_->Post(std::move(task)); }
  void PostAfter(Duration delay, std::function<void()> task) override {
    // Its handler's own: one that never fires goes with the context.
    const auto timer = std::make_shared<boost::asio::steady_timer>(thread_->context(), delay);
    timer->async_wait([timer, task = std::move(task)](const boost::system::error_code& error) {
      if (!error) task();
    });
  }
  void Stop() override;

 private:
  // The thread runs already but sees no request before Start.
  void Add(std::string path, HttpShared::AnyHandler handler) {
    shared_.routes[std::move(path)] = std::move(handler);
  }

  void Take(tcp::socket socket);
  void RepeatBeat();

  HttpShared shared_;
  // Shared with the replies that are still to come.
  std::shared_ptr<ControlThread> thread_ = std::make_shared<ControlThread>();
  std::unique_ptr<Listener> listener_;
  std::optional<Timer> beat_;
  bool stopped_ = false;
};

void HttpServerImpl::Take(tcp::socket socket) {
  boost::system::error_code ignored;
  if (shared_.sessions.size() + shared_.streams.size() >= shared_.options.connections_max) {
    const HttpResponse answer = PlainLine(503, "too many connections are open");
    const std::string text =
        FormatHead(answer, static_cast<long long>(answer.body.size()), false) + answer.body;
    socket.write_some(boost::asio::buffer(text), ignored);
    socket.shutdown(tcp::socket::shutdown_send, ignored);
    return;
  }
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(boost::asio::socket_base::send_buffer_size(kSocketBytes), ignored);
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs,
             sizeof kUserTimeoutMs);
  const auto session = std::make_shared<HttpSession>(std::move(socket), shared_);
  shared_.sessions.insert(session);
  session->Read();
}

void HttpServerImpl::RepeatBeat() {
  const Instant now = Now();
  // A copy: who is cut off leaves the set.
  const std::vector<std::shared_ptr<HttpEventStream>> streams(shared_.streams.begin(),
                                                              shared_.streams.end());
  for (const auto& stream : streams) stream->Beat(now);
  beat_->After(shared_.options.beat, [this] { RepeatBeat(); });
}

void HttpServerImpl::Stop() {
  if (std::exchange(stopped_, true)) return;
  thread_->RunAndWait([this] {
    beat_.reset();
    if (listener_ != nullptr) listener_->Stop();
    for (const auto& stream : std::exchange(shared_.streams, {})) stream->CloseSilently();
    const auto sessions = shared_.sessions;
    for (const auto& session : sessions) session->Close();
  });
  thread_->Stop();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Open(const HttpOptions& options) {
  auto server = std::make_unique<HttpServerImpl>(options);
  const absl::Status status = server->Listen();
  if (!status.ok()) return status;
  return server;
}

}  // namespace tactus::runtime
