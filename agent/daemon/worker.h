// One worker as the agent sees it: a process, or its part of one, its socket, and what it says.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "agent/daemon/array_process.h"
#include "agent/daemon/worker_process.h"
#include "agent/daemon/worker_socket.h"
#include "base/id.h"
#include "base/time.h"
#include "runtime/control_thread.h"
#include "tactus/v1/worker.pb.h"

namespace tactus::agent {

// Used on the control thread alone.
class Worker {
 public:
  // Called on the control thread. None may destroy the worker, but for `exited`.
  struct Handlers {
    // False when the message found no room: the worker is stopped.
    std::function<bool(tactus::v1::FromWorker message)> said;
    // Once, after the last `said` and `wrote`.
    std::function<void(const WorkerExit& exit)> exited;
    // A piece of its standard output or error.
    std::function<void(std::string_view output)> wrote;
  };
  struct Options {
    WorkerId id;
    WorkerCommand command;
    std::string device{};  // as the agent offers it; start.device is the worker's own name for it
    std::string socket_path;
    std::optional<uid_t> user{};  // of the process; nothing: the agent's
    tactus::v1::Start start;
    // Of several jobs, in which it is to be one; `command` is not looked at then. Null: a process
    // of its own.
    std::shared_ptr<ArrayProcess> array{};
  };

  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the process, or enters it, and sends it `start`.
  // Errors: as of WorkerSocket::Listen and WorkerProcess::Start.
  static absl::StatusOr<std::unique_ptr<Worker>> Start(runtime::ControlThread& control,
                                                       const Options& options, Handlers handlers);

  // Passes a message down. A worker that reads nothing is stopped in the end.
  void Send(const tactus::v1::ToWorker& message);

  // Ends the process, kindly first. In a process with others it is told to go, nothing that it says
  // counts any more, and only where it does not in time the process is killed, and with it the
  // others, which go back to their checkpoints. One that still loads, which cannot always be
  // interrupted, has ten minutes beside the grace, so that a long load costs nobody but itself.
  void Stop(Duration grace);
  // The same, without a load's time.
  void StopSoon(Duration grace);

  // Where it stands: what it said last, and what is seen of its process.
  tactus::v1::Standing Standing() const;

  WorkerId id() const { return id_; }
  bool in_array() const { return array_ != nullptr; }
  const std::string& job_id() const { return job_id_; }
  const std::string& output_folder() const { return output_folder_; }

 private:
  Worker(runtime::ControlThread& control, const Options& options, Handlers handlers);
  absl::Status Begin(runtime::ControlThread& control, const WorkerCommand& command,
                     const std::string& socket_path);
  void LeaveArray(Duration grace, Duration for_loading);
  void KillArrayAfter(Duration grace);
  pid_t pid() const { return array_ != nullptr ? array_->pid() : process_->pid(); }

  void OnLine(std::string_view line);
  // Whether the process is the worker's, in its session, which none can enter from outside, or was
  // started by one that is, as launchers give their own children sessions.
  bool IsWorkers(pid_t pid) const;
  // Says that the worker failed, in its name, and ends it.
  void Fail(const std::string& reason);
  void OnExit(const WorkerExit& exit);

  const WorkerId id_;
  const std::string job_id_;
  const std::string output_folder_;
  const Handlers handlers_;
  bool failed_ = false;  // it is being ended for what it did; nothing it says counts any more
  tactus::v1::Standing standing_;       // as it said last,
  std::optional<Instant> standing_at_;  // then; nothing: it never did
  std::unique_ptr<WorkerSocket> socket_;
  const std::shared_ptr<ArrayProcess> array_;  // null: it has a process of its own
  bool loads_ = true;                          // it has not said yet that it is ready
  bool leaves_ = false;                        // it was told to, and is in one with others
  Duration leave_grace_{};
  Instant told_to_leave_{};
  Instant kill_time_ = Instant::max();
  runtime::Timer leave_timer_;
  std::unique_ptr<WorkerProcess> process_;  // null until it was started
};

}  // namespace tactus::agent
