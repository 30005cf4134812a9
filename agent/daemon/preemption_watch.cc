#include "agent/daemon/preemption_watch.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "protocol/leaving.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/options.h"

namespace tactus::agent {

using runtime::Logger;
using runtime::Quoted;

PreemptionWatch::PreemptionWatch(runtime::ControlThread& control, Options options, Handler noticed)
    : control_(control),
      options_(std::move(options)),
      noticed_(std::move(noticed)),
      again_timer_(control) {
  Start();
}

void PreemptionWatch::Start() {
  started_ = runtime::Now();
  absl::StatusOr<std::unique_ptr<WorkerProcess>> process = WorkerProcess::Start(
      control_,
      {.arguments = {"/bin/sh", "-c", options_.command},
       .environment = options_.environment,
       .log_path = options_.log_path},
      [this](const WorkerExit& exit) { OnExit(exit); },
      [](std::string_view output) {
        Logger("agent")->info(
            "preemption command said output={}",
            Quoted(std::string(absl::StripAsciiWhitespace({output.data(), output.size()}))));
      });
  if (process.ok()) {
    process_ = *std::move(process);
  } else {
    OnExit({.exit_code = -1, .log_tail = std::string(process.status().message())});
  }
}

void PreemptionWatch::OnExit(const WorkerExit& exit) {
  if (exit.exit_code == 0) {
    // A copy, as it may destroy this object.
    const Handler noticed = noticed_;
    return noticed(DurationSaidLast(exit.log_tail));
  }
  // One that waited for long before it failed did what it is for.
  if (runtime::Now() - started_ > options_.pause.max) failures_ = 0;
  const Duration pause = runtime::BackoffDelay(options_.pause, ++failures_, rng_);
  Logger("agent")->warn("preemption command failed exit_code={} signal={} again_in_seconds={}",
                        exit.exit_code, exit.signal, ToSeconds(pause));
  // The process goes when it is no longer on the stack.
  again_timer_.After(pause, [this] { Start(); });
}

std::optional<Duration> DurationSaidLast(std::string_view output) {
  while (!output.empty() && absl::ascii_isspace(static_cast<unsigned char>(output.back()))) {
    output.remove_suffix(1);
  }
  const std::string line(output.substr(output.find_last_of('\n') + 1));
  const absl::StatusOr<Duration> within = runtime::ParseDuration(line);
  return within.ok() && *within <= protocol::kLeaveMost ? std::optional(*within) : std::nullopt;
}

}  // namespace tactus::agent
