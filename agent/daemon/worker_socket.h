// The Unix socket between the agent and one worker: lines down, lines up.

#pragma once

#include <sys/types.h>

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agent/daemon/lifetime.h"
#include "runtime/control_thread.h"

namespace tactus::agent {

// Listens at a path, takes one connection of the worker's, and removes the path. Others are closed:
// one user's processes can all reach the path. Reads without ever waiting for
// anything, so that a worker is never held up by its agent. Used on the control thread alone.
class WorkerSocket {
 public:
  static constexpr std::size_t kLineBytesMax = 16u << 20;
  // Lines down that the worker has not read yet.
  static constexpr std::size_t kPendingBytesMax = 64u << 20;

  // Called on the control thread; they must not destroy the socket.
  struct Handlers {
    std::function<bool(pid_t pid)> is_worker;         // whether this process may speak for it
    std::function<void(std::string_view line)> line;  // without its newline
    std::function<void(const std::string& reason)> misused;  // once: a line too long; closed then
  };

  // `user`: the socket is given to them, so that they may connect; nothing: the agent's own may.
  // Errors: InvalidArgument, the path is longer than the 107 bytes of a Unix socket's; as
  // runtime::FileError.
  static absl::StatusOr<std::unique_ptr<WorkerSocket>> Listen(runtime::ControlThread& control,
                                                              const std::string& path,
                                                              Handlers handlers,
                                                              std::optional<uid_t> user = {});

  ~WorkerSocket();
  WorkerSocket(const WorkerSocket&) = delete;
  WorkerSocket& operator=(const WorkerSocket&) = delete;

  // Queues a line, given without its newline, also before the worker has connected. False, and the
  // line is lost, when more than kPendingBytesMax would wait.
  [[nodiscard]] bool Send(std::string line);

  // Takes what the worker has written until now and hands on its lines: after the worker's end.
  void Drain();

 private:
  WorkerSocket(runtime::ControlThread& control, std::string path, Handlers handlers);

  absl::Status Open(std::optional<uid_t> user);
  void Accept();
  bool IsWorkers();  // who has connected
  void Read();
  void Write();
  // Takes one chunk if there is one; false at the end, or when nothing more is to be read.
  bool ReadSome();
  bool Available() const;
  // Hands on every whole line.
  void TakeLines(std::string_view bytes);
  void Close();

  const std::string path_;
  const Handlers handlers_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  runtime::Timer pause_;  // until it tries again to take the connection
  boost::asio::local::stream_protocol::socket socket_;
  bool connected_ = false;
  bool misused_ = false;
  bool writing_ = false;
  std::array<char, 65536> chunk_;
  std::string partial_;  // the beginning of a line
  std::deque<std::string> pending_;
  std::size_t pending_bytes_ = 0;
  Lifetime lifetime_;
};

}  // namespace tactus::agent
