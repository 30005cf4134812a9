#include "runtime/http_session.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <chrono>
#include <string_view>
#include <utility>

namespace tactus::runtime {
namespace {

namespace http = boost::beast::http;

// After a refusal the rest of a request is read and dropped for so long and so far: closing on
// unread bytes would reset the connection, and the answer might be lost with it.
constexpr auto kLingerTime = std::chrono::seconds(2);
constexpr std::size_t kLingerBytesMax = 1 << 20;
constexpr std::size_t kLingerChunk = 16 << 10;

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

// Answers a request once, from any thread: also by 500 when nobody does.
class PendingAnswer {
 public:
  PendingAnswer(std::weak_ptr<ControlThread> thread, std::weak_ptr<HttpSession> session)
      : thread_(std::move(thread)), session_(std::move(session)) {}
  ~PendingAnswer() { Give(PlainLine(500, "no answer was made")); }
  PendingAnswer(const PendingAnswer&) = delete;
  PendingAnswer& operator=(const PendingAnswer&) = delete;

  void Give(HttpResponse answer) {
    if (std::exchange(given_, true)) return;
    const std::shared_ptr<ControlThread> thread = thread_.lock();
    if (thread == nullptr) return;
    thread->Post([session = session_, answer = std::move(answer)]() mutable {
      const std::shared_ptr<HttpSession> still = session.lock();
      if (still != nullptr) still->Answer(std::move(answer));
    });
  }

 private:
  const std::weak_ptr<ControlThread> thread_;
  const std::weak_ptr<HttpSession> session_;
  bool given_ = false;
};

}  // namespace

HttpSession::HttpSession(boost::asio::ip::tcp::socket socket, HttpShared& shared)
    : stream_(std::move(socket)), shared_(shared), buffer_(2 * shared.options.header_bytes_max) {}

HttpSession::~HttpSession() = default;

void HttpSession::Read() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_.options.header_bytes_max));
  stream_.expires_after(shared_.options.request_timeout);
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](const boost::system::error_code& error,
                                                      std::size_t) { self->OnRead(error); });
}

void HttpSession::OnRead(const boost::system::error_code& error) {
  if (error) {
    keep_alive_ = false;
    head_only_ = false;
    // Not of HTTP: the client left, or was too slow. Who sent half a request gets no answer.
    const bool readable =
        error.category() == http::make_error_code(http::error::bad_method).category();
    if (!readable || error == http::error::end_of_stream || error == http::error::partial_message) {
      Close();
    } else {
      Answer(Unreadable(error));
    }
    return;
  }
  const auto& request = parser_->get();
  keep_alive_ = request.keep_alive() && request.version() == 11;
  head_only_ = request.method() == http::verb::head;
  std::optional<HttpResponse> objection = Objection();
  if (objection.has_value()) {
    keep_alive_ = false;
    return Answer(*std::move(objection));
  }
  const absl::StatusOr<HttpRequest> target = ParseTarget(View(request.target()));
  if (!target.ok()) return Answer(PlainLine(400, std::string(target.status().message())));
  Dispatch(*target);
}

HttpResponse HttpSession::Unreadable(const boost::system::error_code& error) const {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    // The parser takes the request line once all of it is there.
    const auto bytes = buffer_.data();
    const std::string_view text(static_cast<const char*>(bytes.data()), bytes.size());
    if (parser_->get().target().empty() && text.find('\n') == std::string_view::npos) {
      return PlainLine(414, "the target is too long");
    }
    return PlainLine(431, "the header fields are larger than " +
                              std::to_string(shared_.options.header_bytes_max) + " bytes");
  }
  if (error == http::error::bad_version) return PlainLine(505, "HTTP/1.1 is spoken here");
  return PlainLine(400, "this is no HTTP request");
}

std::optional<HttpResponse> HttpSession::Objection() const {
  const auto& request = parser_->get();
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    return PlainLine(405, "allowed is GET and HEAD: nothing can be changed here");
  }
  if (request.version() != 11 && request.version() != 10) {
    return PlainLine(505, "HTTP/1.1 is spoken here");
  }
  if (request.target().size() > shared_.options.target_bytes_max) {
    return PlainLine(414, "the target is longer than " +
                              std::to_string(shared_.options.target_bytes_max) + " bytes");
  }
  if (parser_->chunked() || parser_->content_length().value_or(0) > 0) {
    return PlainLine(413, "a request has no body here");
  }
  const std::size_t hosts = request.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && request.version() == 11)) {
    return PlainLine(400, "a request has one Host field");
  }
  // A page of another site may have its own name lead here: who serves this machine alone answers
  // to this machine's names alone.
  const std::string host = HostName(View(request[http::field::host]));
  if (shared_.loopback && hosts == 1 && host != shared_.host && !IsLocalHost(host)) {
    return PlainLine(421, "this address serves its own machine: ask for localhost or a number");
  }
  return std::nullopt;
}

void HttpSession::Dispatch(const HttpRequest& request) {
  const auto found = shared_.routes.find(request.path);
  if (found == shared_.routes.end()) return Answer(PlainLine(404, "nothing is at this path"));
  if (const auto* handler = std::get_if<HttpServer::Handler>(&found->second)) {
    return Answer((*handler)(request));
  }
  if (const auto* handler = std::get_if<HttpServer::LaterHandler>(&found->second)) {
    const auto pending =
        std::make_shared<PendingAnswer>(shared_.thread, std::weak_ptr(shared_from_this()));
    return (*handler)(request,
                      [pending](HttpResponse answer) { pending->Give(std::move(answer)); });
  }
  Open(request, std::get<HttpServer::StreamHandler>(found->second));
}

// The socket goes over to the stream, and the session ends.
void HttpSession::Open(const HttpRequest& request, const HttpServer::StreamHandler& handler) {
  if (head_only_) return Answer({.content_type = "text/event-stream"});
  if (shared_.streams.size() >= shared_.options.streams_max) {
    return Answer(PlainLine(503, "too many streams are open"));
  }
  if (buffer_.size() > 0) {
    keep_alive_ = false;
    return Answer(PlainLine(400, "a stream is the last request of its connection"));
  }
  stream_.expires_never();
  const auto events = std::make_shared<HttpEventStream>(stream_.release_socket(), shared_.options);
  shared_.streams.insert(events);
  events->OnClose(
      [&shared = shared_, key = std::weak_ptr(events)] { shared.streams.erase(key.lock()); });
  events->Begin(handler(request, events));
  shared_.sessions.erase(shared_from_this());
}

void HttpSession::Answer(HttpResponse answer) {
  if (!stream_.socket().is_open()) return;
  // A single answer may be larger than the bound, or it could never be given.
  if (shared_.answer_bytes > 0 &&
      shared_.answer_bytes + answer.body.size() > shared_.options.answer_bytes_max) {
    answer = PlainLine(503, "too many answers are under way");
  }
  head_ = FormatHead(answer, static_cast<long long>(answer.body.size()), keep_alive_);
  body_ = head_only_ ? "" : std::move(answer.body);
  shared_.answer_bytes += body_.size();
  stream_.expires_after(shared_.options.send_timeout);
  const std::array<boost::asio::const_buffer, 2> buffers = {boost::asio::buffer(head_),
                                                            boost::asio::buffer(body_)};
  boost::asio::async_write(stream_, buffers,
                           [self = shared_from_this()](const boost::system::error_code& error,
                                                       std::size_t) { self->OnAnswered(error); });
}

void HttpSession::OnAnswered(const boost::system::error_code& error) {
  shared_.answer_bytes -= body_.size();
  body_ = {};
  if (error) return Close();
  if (keep_alive_) return Read();
  boost::system::error_code ignored;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.expires_after(kLingerTime);
  Linger();
}

void HttpSession::Linger() {
  buffer_.clear();
  stream_.async_read_some(
      buffer_.prepare(std::min(kLingerChunk, buffer_.max_size())),
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t count) {
        self->lingered_bytes_ += count;
        if (error || self->lingered_bytes_ > kLingerBytesMax) return self->Close();
        self->Linger();
      });
}

void HttpSession::Close() {
  stream_.close();
  shared_.sessions.erase(shared_from_this());
}

}  // namespace tactus::runtime
