// A program of ours that runs beside this one and never outlives it.

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tactus::client {

struct ChildOptions {
  std::string program{};  // path
  std::vector<std::string> arguments{};
  std::string log_path{};  // its output, appended; empty: goes where ours goes
};

// Runs in a process group of its own, so that Ctrl-C reaches only us; ends when we end, however
// that happens. Used on one thread, the one that started it: it ends with that thread.
class ChildProcess {
 public:
  // Errors: of fork, exec and the log file, with the path.
  static absl::StatusOr<ChildProcess> Start(const ChildOptions& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();  // SIGKILL to its group if it still runs

  // False once it has ended.
  bool IsRunning();

  // To the process alone, which ends its own children; nothing when it has ended.
  void Signal(int signal);

  // To its whole group, then waits for its end, which is certain.
  void Kill();

  // How it ended, with its last words: "tactus-agent ended with code 64: no such device". Requires:
  // it has ended.
  std::string Obituary() const;

  // The code that it ended with, or 128 and the signal that ended it. Requires: it has ended.
  int exit_code() const;

  pid_t pid() const { return pid_; }

 private:
  ChildProcess(pid_t pid, const ChildOptions& options) : options_(options), pid_(pid) {}

  ChildOptions options_;
  pid_t pid_;  // -1: moved from
  bool ended_ = false;
  int wait_status_ = 0;
};

// The last line of a file that is not blank, looked for in its last 4 KiB; empty when there is
// none.
std::string LastLine(const std::string& path);

}  // namespace tactus::client
