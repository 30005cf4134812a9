// One worker process: started, watched, ended; nothing of it outlives the agent.

#pragma once

#include <sys/types.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/box/box.h"
#include "agent/daemon/lifetime.h"
#include "agent/daemon/log_file.h"
#include "base/time.h"
#include "runtime/control_thread.h"

namespace tactus::agent {

// What to run.
struct WorkerCommand {
  std::vector<std::string> arguments;    // the first is the path of the program
  std::vector<std::string> environment;  // all of it, "NAME=value"
  std::string log_path;                  // its folder exists
  std::string directory{};               // in which it runs; empty: the agent's
  // To which the worker keeps, and by that its memory to their NUMA node: the kernel gives memory
  // where the thread runs that touches it first. Empty, or none of them the agent's: any.
  std::vector<unsigned> cpus{};
  // The box that it is in, which is gone with it; shared with whoever asks for what became of it.
  // Null: none.
  std::shared_ptr<const box::Held> held{};
};

// Those that run, or are not collected yet. On the control thread.
const std::set<pid_t>& WorkerProcesses();

// How a worker ended.
struct WorkerExit {
  int exit_code = 0;  // -1 when ended by a signal
  int signal = 0;     // 0 when it exited
  std::string log_tail{};
};

// A child in its own session and process group, neither of which it can leave, with /dev/null as
// input, its output in a LogFile and no descriptor of the agent's. The kernel kills it when the
// thread that started it ends, so that is the control thread, which lives as long as the process.
// Used on the control thread alone.
//
// It is started by fork and exec and not by posix_spawn, which has no way to ask for that kill;
// between the two, only async-signal-safe calls are made, because other threads may hold any lock.
class WorkerProcess {
 public:
  using ExitHandler = std::function<void(const WorkerExit&)>;
  // Each piece of output as it is read; must not destroy the object.
  using OutputHandler = std::function<void(std::string_view)>;

  // `on_exit` is called once, later, on the control thread, unless the object is destroyed before;
  // it may destroy the object. Errors: NotFound, PermissionDenied, ..., the program cannot be run;
  // ResourceExhausted, no process or descriptor is to be had.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Start(runtime::ControlThread& control,
                                                              const WorkerCommand& command,
                                                              ExitHandler on_exit,
                                                              OutputHandler on_output = {});

  // Kills the whole group at once when it still runs.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // SIGTERM to the group now, SIGKILL after `grace`. A second call can only shorten the grace.
  void Stop(Duration grace);

  pid_t pid() const { return pid_; }
  // The end of what it has written so far.
  std::string LogTail() const { return log_.Tail(); }

 private:
  struct Child {
    pid_t pid = -1;
    int pid_descriptor = -1;
    int output = -1;
  };
  // SIGKILL to its group, and to all that came of it where its cgroup knows them.
  void KillAll() const;
  struct Handlers {
    ExitHandler exited;
    OutputHandler output;  // empty: none
  };
  WorkerProcess(runtime::ControlThread& control, const Child& child, const WorkerCommand& command,
                Handlers handlers);
  static absl::StatusOr<Child> Spawn(const WorkerCommand& command);

  void AwaitOutput();
  void AwaitExit();
  // Takes what the pipe holds; false at its end.
  bool ReadOutput();
  // Kills what is left of the group and collects the child. Once.
  WorkerExit Reap();

  const pid_t pid_;
  boost::asio::posix::stream_descriptor pid_descriptor_;
  boost::asio::posix::stream_descriptor output_;
  LogFile log_;
  const std::shared_ptr<const box::Held> held_;  // null: no box
  const Handlers handlers_;
  runtime::Timer kill_timer_;
  Instant kill_time_ = Instant::max();
  bool reaped_ = false;
  Lifetime lifetime_;
};

}  // namespace tactus::agent
