#include "agent/worker/agent_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "base/check.h"

namespace tactus::worker {
namespace {

// What is taken from the queue at once; the rest waits there, where it is counted.
constexpr std::size_t kWriteBytesMax = 1u << 16;

constexpr auto kStandingInterval = std::chrono::seconds(1);

std::string ErrnoText() { return std::strerror(errno); }

}  // namespace

absl::StatusOr<int> ConnectToAgent(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::UnavailableError("socket: '" + path + "' is longer than 107 bytes");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::UnavailableError("socket: " + ErrnoText());
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const std::string reason = ErrnoText();
    close(fd);
    return absl::UnavailableError("socket: '" + path + "': " + reason);
  }
  return fd;
}

absl::StatusOr<std::unique_ptr<AgentLink>> AgentLink::Connect(const std::string& path) {
  const absl::StatusOr<int> fd = ConnectToAgent(path);
  if (!fd.ok()) return fd.status();
  return std::make_unique<AgentLink>(*fd);
}

AgentLink::AgentLink(int socket) : socket_(socket) {
  fcntl(socket_, F_SETFL, O_NONBLOCK);
  TACTUS_CHECK(pipe2(wake_pipe_, O_CLOEXEC | O_NONBLOCK) == 0);
  thread_ = std::thread([this] { Run(); });  // joined in the destructor
}

AgentLink::~AgentLink() {
  {
    const threads::MutexLock lock(mutex_);
    closing_ = true;
  }
  Wake();
  thread_.join();
  close(socket_);
  close(wake_pipe_[0]);
  close(wake_pipe_[1]);
}

void AgentLink::Wake() {
  // A full pipe has a wake-up in it already.
  [[maybe_unused]] const ssize_t written = write(wake_pipe_[1], "w", 1);
}

std::optional<ToWorker> AgentLink::Poll() {
  const threads::MutexLock lock(mutex_);
  if (received_.empty()) return std::nullopt;
  ToWorker message = std::move(received_.front());
  received_.pop_front();
  return message;
}

absl::StatusOr<ToWorker> AgentLink::Receive() {
  const threads::MutexLock lock(mutex_);
  while (received_.empty() && end_.ok()) changed_.Wait(mutex_);
  // What came before the end is handed out first.
  if (received_.empty()) return end_;
  ToWorker message = std::move(received_.front());
  received_.pop_front();
  return message;
}

bool AgentLink::Await(Duration limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const threads::MutexLock lock(mutex_);
  while (received_.empty() && end_.ok()) {
    if (!changed_.WaitUntil(mutex_, end)) return false;
  }
  return true;
}

void AgentLink::Send(const FromWorker& message) {
  Queue({.text = Format(message) + "\n",
         .droppable = std::holds_alternative<ReportMessage>(message)});
}

void AgentLink::Send(const SnapshottedMessage& message) { Queue({.text = Format(message) + "\n"}); }

void AgentLink::Queue(Line line) {
  {
    const threads::MutexLock lock(mutex_);
    if (!end_.ok()) return;
    if (to_send_.size() >= kLinesMax) {
      const auto oldest = std::ranges::find_if(to_send_, &Line::droppable);
      if (oldest != to_send_.end()) to_send_.erase(oldest);
    }
    to_send_.push_back(std::move(line));
  }
  Wake();
}

bool AgentLink::Flush(Duration limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const threads::MutexLock lock(mutex_);
  while ((!to_send_.empty() || writing_) && end_.ok()) {
    if (!changed_.WaitUntil(mutex_, end)) break;
  }
  return to_send_.empty() && !writing_ && end_.ok();
}

void AgentLink::End(absl::Status status) {
  const threads::MutexLock lock(mutex_);
  if (end_.ok()) end_ = std::move(status);
  changed_.NotifyAll();
}

void AgentLink::Run() {
  std::string input;
  std::string output;
  auto standing_due = std::chrono::steady_clock::now() + kStandingInterval;
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= standing_due) {
      standing_due = now + kStandingInterval;
      TellStanding();
    }
    {
      const threads::MutexLock lock(mutex_);
      if (closing_ || !end_.ok()) return;
      while (!to_send_.empty() && output.size() < kWriteBytesMax) {
        output += to_send_.front().text;
        to_send_.pop_front();
      }
      writing_ = !output.empty();
      // Flush() waits for both: what is queued, and what was taken from the queue.
      if (!writing_) changed_.NotifyAll();
    }
    const short wanted = static_cast<short>(output.empty() ? POLLIN : (POLLIN | POLLOUT));
    pollfd polled[2] = {{.fd = socket_, .events = wanted, .revents = 0},
                        {.fd = wake_pipe_[0], .events = POLLIN, .revents = 0}};
    // Rounded up: a beat may be late.
    const auto pause = std::chrono::ceil<std::chrono::milliseconds>(standing_due - now);
    if (poll(polled, 2, static_cast<int>(pause.count())) < 0 && errno != EINTR)
      return End(absl::UnavailableError(ErrnoText()));
    char drained[64];
    while (read(wake_pipe_[0], drained, sizeof(drained)) > 0) {
    }
    if ((polled[0].revents & POLLOUT) != 0 && !WriteSome(output)) return;
    if ((polled[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) ReadSome(input);
  }
}

void AgentLink::HangUp() { ::shutdown(socket_, SHUT_RDWR); }

void AgentLink::BeginStandings() {
  const threads::MutexLock lock(mutex_);
  tells_standing_ = true;
}

// One that waits to be written is enough.
void AgentLink::TellStanding() {
  {
    const threads::MutexLock lock(mutex_);
    if (!tells_standing_ || !to_send_.empty() || writing_) return;
  }
  Line line{.text = Format(standpoint_.Now()) + "\n", .droppable = true};
  const threads::MutexLock lock(mutex_);
  to_send_.push_back(std::move(line));
}

bool AgentLink::WriteSome(std::string& output) {
  const ssize_t written = send(socket_, output.data(), output.size(), MSG_NOSIGNAL);
  if (written < 0) {
    if (errno == EAGAIN || errno == EINTR) return true;
    End(absl::UnavailableError("the agent is gone: " + ErrnoText()));
    return false;
  }
  output.erase(0, static_cast<std::size_t>(written));
  return true;
}

void AgentLink::ReadSome(std::string& input) {
  char chunk[1 << 16];
  const ssize_t count = read(socket_, chunk, sizeof(chunk));
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    return End(absl::UnavailableError("the agent is gone"));
  }
  input.append(chunk, static_cast<std::size_t>(count));
  TakeLines(input);
  if (input.size() > kLineBytesMax) {
    End(absl::InvalidArgumentError("message: longer than 16 MiB"));
  }
}

bool AgentLink::Deliver(ToWorker message) {
  const threads::MutexLock lock(mutex_);
  if (received_.size() == kMessagesMax) return false;
  received_.push_back(std::move(message));
  changed_.NotifyAll();
  return true;
}

void AgentLink::TakeLines(std::string& input) {
  std::size_t begin = 0;
  for (std::size_t end; (end = input.find('\n', begin)) != std::string::npos; begin = end + 1) {
    absl::StatusOr<ToWorker> message =
        ParseToWorker(std::string_view(input).substr(begin, end - begin));
    if (!message.ok()) return End(message.status());
    if (!Deliver(*std::move(message))) {
      return End(absl::ResourceExhaustedError("the agent sent 4096 messages ahead of training"));
    }
  }
  input.erase(0, begin);
}

}  // namespace tactus::worker
