// Waits for the notice that this machine is going to be taken away.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/daemon/worker_process.h"
#include "base/rng.h"
#include "base/time.h"
#include "runtime/control_thread.h"
#include "runtime/retry.h"

namespace tactus::agent {

// Runs a shell command of the user's, which exits with 0 when the notice has come; with anything
// else, or by a signal, it is started again after a pause that grows up to a minute. It is a
// process group of its own that ends with this object. Used on the control thread alone.
class PreemptionWatch {
 public:
  struct Options {
    std::string command{};
    std::vector<std::string> environment{};  // of the command, "NAME=value"
    std::string log_path{};                  // of what it writes; its folder exists
    runtime::BackoffOptions pause = {.initial = Seconds(1), .max = Seconds(60)};
  };
  // Once. within: how long the machine stays, where the command's last line is a duration ("110s").
  // May destroy the object.
  using Handler = std::function<void(std::optional<Duration> within)>;

  PreemptionWatch(runtime::ControlThread& control, Options options, Handler noticed);

 private:
  void Start();
  void OnExit(const WorkerExit& exit);

  runtime::ControlThread& control_;
  const Options options_;
  const Handler noticed_;
  int failures_ = 0;  // in a row
  Instant started_{};
  Rng rng_{1};
  runtime::Timer again_timer_;
  std::unique_ptr<WorkerProcess> process_;  // null between two
};

// The duration that is the last line of `output`, up to protocol::kLeaveMost; nothing: it is none.
std::optional<Duration> DurationSaidLast(std::string_view output);

}  // namespace tactus::agent
