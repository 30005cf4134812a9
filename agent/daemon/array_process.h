// A worker process of several jobs, each of which is a worker to all but this (JobArray).

#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agent/daemon/worker_process.h"
#include "agent/daemon/worker_socket.h"
#include "base/id.h"
#include "base/time.h"
#include "runtime/control_thread.h"

namespace tactus::agent {

// Used on the control thread alone. It goes with the last who shares it, and the process with it.
class ArrayProcess {
 public:
  // Called on the control thread. None may destroy the array.
  struct Seat {
    std::string job{};                                   // its id, for people
    std::function<void(const WorkerExit& exit)> exited;  // once
    std::function<void(std::string_view output)> wrote;  // of the process: of whichever job
  };

  // Starts the process without a job. Errors: as of WorkerSocket::Listen and WorkerProcess::Start.
  static absl::StatusOr<std::shared_ptr<ArrayProcess>> Start(runtime::ControlThread& control,
                                                             const WorkerCommand& command,
                                                             const std::string& socket_path,
                                                             std::optional<uid_t> user);

  ArrayProcess(const ArrayProcess&) = delete;
  ArrayProcess& operator=(const ArrayProcess&) = delete;

  // False: it has ended, or is about to; it takes nobody in.
  bool open() const { return open_; }
  pid_t pid() const { return process_->pid(); }
  // Its box, as of WorkerCommand.
  const std::shared_ptr<const box::Held>& held() const { return held_; }

  // The worker begins, on this socket. Requires: open().
  void Enter(WorkerId worker, const std::string& socket_path, Seat seat);
  // Nothing is told of the worker any more.
  void Leave(WorkerId worker) { seats_.erase(worker); }

  // Ends the process, and all in it, kindly first.
  void Stop(Duration grace);
  // Ends it at once, as this worker of it cannot be ended otherwise; the others are told so with
  // their exit. `why`: what it was asked and did not do, for people.
  void KillFor(WorkerId worker, const std::string& why);

 private:
  ArrayProcess() = default;

  void OnLine(std::string_view line);
  void OnExit(const WorkerExit& exit);
  void OnOutput(std::string_view output);

  bool open_ = true;
  // Why it is killed, and for whom, who knows that already. Empty: it is not.
  std::string killed_{};
  WorkerId killed_for_{};
  std::shared_ptr<const box::Held> held_;
  std::map<WorkerId, Seat> seats_;
  std::unique_ptr<WorkerSocket> socket_;
  std::unique_ptr<WorkerProcess> process_;
};

}  // namespace tactus::agent
