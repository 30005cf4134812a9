#include "runtime/http_event_stream.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "runtime/now.h"

namespace tactus::runtime {
namespace {

// Events that go out in one write.
constexpr std::size_t kGatherMax = 16;

const std::shared_ptr<const std::string>& Lagging() {
  static const std::shared_ptr<const std::string> event = FormatEvent("lagging", "{}");
  return event;
}

const std::shared_ptr<const std::string>& Comment() {
  static const auto comment = std::make_shared<const std::string>(":\n\n");
  return comment;
}

}  // namespace

std::shared_ptr<const std::string> FormatEvent(const std::string& name, const std::string& text) {
  std::string event = "event: " + name + "\ndata: ";
  for (const char c : text) {
    // Every end of line that a reader knows begins a new field; only those of ours may.
    if (c == '\r') continue;
    event += c;
    if (c == '\n') event += "data: ";
  }
  return std::make_shared<const std::string>(event + "\n\n");
}

void HttpEventStream::Begin(const std::optional<HttpResponse>& refusal) {
  begun_ = true;
  std::string head;
  if (refusal.has_value()) {
    waiting_.clear();
    ending_ = true;
    head =
        FormatHead(*refusal, static_cast<long long>(refusal->body.size()), false) + refusal->body;
  } else {
    // With it, how soon a browser tries again that lost the stream.
    head = FormatHead({.content_type = "text/event-stream"}, -1, false) + "retry: 3000\n\n";
  }
  waiting_bytes_ += head.size();
  waiting_.push_front(std::make_shared<const std::string>(std::move(head)));
  WatchForLeaving();
  Write();
}

void HttpEventStream::Send(const std::shared_ptr<const std::string>& event) {
  if (closed_ || ending_) return;
  const bool full =
      waiting_.size() >= options_.stream_events_max ||
      (!waiting_.empty() && waiting_bytes_ + event->size() > options_.stream_bytes_max);
  if (full && begun_) {
    waiting_ = {Lagging()};
    waiting_bytes_ = Lagging()->size();
  }
  waiting_.push_back(event);
  waiting_bytes_ += event->size();
  Write();
}

void HttpEventStream::End() {
  ending_ = true;
  if (begun_ && in_flight_.empty() && waiting_.empty()) Close();
}

void HttpEventStream::Beat(Instant now) {
  if (in_flight_.empty()) {
    Send(Comment());
  } else if (now - write_began_ > options_.send_timeout) {
    Close();
  }
}

void HttpEventStream::Close() {
  if (std::exchange(closed_, true)) return;
  waiting_.clear();
  boost::system::error_code ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
  for (const std::function<void()>& left : std::exchange(left_, {})) left();
}

void HttpEventStream::CloseSilently() {
  left_.clear();
  Close();
}

void HttpEventStream::Write() {
  if (!begun_ || closed_ || !in_flight_.empty() || waiting_.empty()) return;
  std::vector<boost::asio::const_buffer> buffers;
  while (!waiting_.empty() && in_flight_.size() < kGatherMax) {
    waiting_bytes_ -= waiting_.front()->size();
    in_flight_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    buffers.push_back(boost::asio::buffer(*in_flight_.back()));
  }
  write_began_ = Now();
  boost::asio::async_write(
      socket_, buffers,
      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
        self->OnWritten(static_cast<bool>(error));
      });
}

void HttpEventStream::OnWritten(bool failed) {
  in_flight_.clear();
  if (failed) {
    Close();
  } else if (!waiting_.empty()) {
    Write();
  } else if (ending_) {
    Close();
  }
}

// A reader that closes its side has left, and so has one that says more.
void HttpEventStream::WatchForLeaving() {
  socket_.async_read_some(boost::asio::buffer(&unexpected_, 1),
                          [self = shared_from_this()](const boost::system::error_code&,
                                                      std::size_t) { self->Close(); });
}

}  // namespace tactus::runtime
