#include "agent/daemon/worker_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "runtime/process.h"

namespace tactus::agent {

using boost::asio::local::stream_protocol;
using boost::system::error_code;

namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(200);

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerSocket>> WorkerSocket::Listen(runtime::ControlThread& control,
                                                                   const std::string& path,
                                                                   Handlers handlers,
                                                                   std::optional<uid_t> user) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(path + ": longer than the 107 bytes of a Unix socket's path");
  }
  std::unique_ptr<WorkerSocket> socket(new WorkerSocket(control, path, std::move(handlers)));
  const absl::Status status = socket->Open(user);
  if (!status.ok()) return status;
  socket->Accept();
  return socket;
}

WorkerSocket::WorkerSocket(runtime::ControlThread& control, std::string path, Handlers handlers)
    : path_(std::move(path)),
      handlers_(std::move(handlers)),
      acceptor_(control.context()),
      pause_(control),
      socket_(control.context()) {}

WorkerSocket::~WorkerSocket() { Close(); }

absl::Status WorkerSocket::Open(std::optional<uid_t> user) {
  error_code error;
  acceptor_.open(stream_protocol(), error);
  if (!error) acceptor_.bind(stream_protocol::endpoint(path_), error);
  if (!error) acceptor_.listen(1, error);
  if (error) return runtime::FileError(error.value(), path_, "cannot listen");
  // Its folder is the agent's alone, so the name is still that of the socket.
  if (user && ::lchown(path_.c_str(), *user, static_cast<gid_t>(-1)) != 0) {
    return runtime::FileError(errno, path_, "cannot be given to the workers' user");
  }
  return absl::OkStatus();
}

bool WorkerSocket::IsWorkers() {
  ucred peer = {};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket_.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         handlers_.is_worker(peer.pid);
}

void WorkerSocket::Close() {
  error_code ignored;
  if (acceptor_.is_open()) {
    acceptor_.close(ignored);
    ::unlink(path_.c_str());
  }
  socket_.close(ignored);
  connected_ = false;
}

void WorkerSocket::Accept() {
  acceptor_.async_accept(socket_, lifetime_.Guard([this](const error_code& error) {
    error_code ignored;
    if (error) {
      // No file or no memory is left. Its worker waits in the system's queue.
      if (acceptor_.is_open()) pause_.After(kAcceptPause, [this] { Accept(); });
      return;
    }
    if (!IsWorkers()) {
      socket_.close(ignored);
      return Accept();
    }
    // One worker, one connection: nobody else can speak in its place from now on.
    acceptor_.close(ignored);
    ::unlink(path_.c_str());
    connected_ = true;
    socket_.non_blocking(true, ignored);
    Read();
    Write();
  }));
}

// Waits and then reads, rather than asking asio to read: what was read is then never between two
// handlers when Drain comes.
void WorkerSocket::Read() {
  socket_.async_wait(stream_protocol::socket::wait_read,
                     lifetime_.Guard([this](const error_code& error) {
                       // At the end there is nothing to do: the process's own end follows.
                       if (!error && ReadSome()) Read();
                     }));
}

bool WorkerSocket::ReadSome() {
  error_code error;
  const std::size_t count = socket_.read_some(boost::asio::buffer(chunk_), error);
  if (error == boost::asio::error::would_block) return true;
  if (error || misused_) return false;
  TakeLines({chunk_.data(), count});
  return !misused_;
}

void WorkerSocket::TakeLines(std::string_view bytes) {
  for (std::size_t end; (end = bytes.find('\n')) != std::string_view::npos;) {
    std::string line = std::exchange(partial_, {});
    line += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    handlers_.line(line);
  }
  partial_ += bytes;
  if (partial_.size() <= kLineBytesMax) return;
  misused_ = true;
  partial_ = {};
  Close();
  handlers_.misused("a line of more than 16 MiB");
}

bool WorkerSocket::Available() const {
  error_code error;
  return socket_.available(error) > 0 && !error;
}

void WorkerSocket::Drain() {
  // More than a socket's buffer holds; a grandchild that goes on writing is not heard any more.
  constexpr int kChunksMax = 1024;
  for (int i = 0; i < kChunksMax && connected_ && Available() && ReadSome(); ++i) {
  }
}

bool WorkerSocket::Send(std::string line) {
  if (pending_bytes_ + line.size() + 1 > kPendingBytesMax) return false;
  line += '\n';
  pending_bytes_ += line.size();
  pending_.push_back(std::move(line));
  if (connected_ && !writing_) Write();
  return true;
}

void WorkerSocket::Write() {
  if (pending_.empty()) return;
  writing_ = true;
  boost::asio::async_write(socket_, boost::asio::buffer(pending_.front()),
                           lifetime_.Guard([this](const error_code& error, std::size_t) {
                             writing_ = false;
                             pending_bytes_ -= pending_.front().size();
                             pending_.pop_front();
                             if (!error) Write();
                           }));
}

}  // namespace tactus::agent
