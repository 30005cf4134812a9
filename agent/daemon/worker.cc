#include "agent/daemon/worker.h"

#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <utility>

#include "agent/daemon/process_sighting.h"
#include "agent/daemon/worker_messages.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/utf8.h"

namespace tactus::agent {
namespace {

constexpr Duration kMisuseGrace = Seconds(1);
// Who takes longer to load is taken to hang, as by the coordinator (JobDeadlines::start).
constexpr Duration kLoadingMost = Seconds(600);

}  // namespace

Worker::Worker(runtime::ControlThread& control, const Options& options, Handlers handlers)
    : id_(options.id),
      job_id_(options.start.job_id()),
      output_folder_(options.start.output_directory()),
      handlers_(std::move(handlers)),
      array_(options.array),
      leave_timer_(control) {}

Worker::~Worker() {
  if (array_ != nullptr) array_->Leave(id_);
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(runtime::ControlThread& control,
                                                      const Options& options, Handlers handlers) {
  std::unique_ptr<Worker> worker(new Worker(control, options, std::move(handlers)));
  Worker* const self = worker.get();  // owns the socket and the process that call back
  absl::StatusOr<std::unique_ptr<WorkerSocket>> socket =
      WorkerSocket::Listen(control, options.socket_path,
                           {.is_worker = [self](pid_t pid) { return self->IsWorkers(pid); },
                            .line = [self](std::string_view line) { self->OnLine(line); },
                            .misused = [self](const std::string& reason) { self->Fail(reason); }},
                           options.user);
  if (!socket.ok()) return socket.status();
  worker->socket_ = *std::move(socket);
  tactus::v1::ToWorker start;
  *start.mutable_start() = options.start;
  worker->Send(start);
  if (worker->failed_) return absl::InvalidArgumentError("start: has no JSON form");
  absl::Status begun = worker->Begin(control, options.command, options.socket_path);
  if (!begun.ok()) return begun;
  return worker;
}

absl::Status Worker::Begin(runtime::ControlThread& control, const WorkerCommand& command,
                           const std::string& socket_path) {
  const auto exited = [this](const WorkerExit& exit) { OnExit(exit); };
  const auto wrote = [this](std::string_view output) { handlers_.wrote(output); };
  if (array_ != nullptr) {
    array_->Enter(id_, socket_path, {.job = job_id_, .exited = exited, .wrote = wrote});
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<WorkerProcess>> process =
      WorkerProcess::Start(control, command, exited, wrote);
  if (!process.ok()) return process.status();
  process_ = *std::move(process);
  return absl::OkStatus();
}

void Worker::Send(const tactus::v1::ToWorker& message) {
  if (failed_) return;
  absl::StatusOr<std::string> line = FormatToWorker(message);
  if (!line.ok()) return Fail("message down: " + std::string(line.status().message()));
  if (!socket_->Send(*std::move(line))) Fail("it does not read its messages");
}

void Worker::Stop(Duration grace) {
  if (array_ != nullptr && grace == Duration(0)) {
    return array_->KillFor(id_, "which shared it, was to end at once");
  }
  if (array_ != nullptr) return LeaveArray(grace, kLoadingMost);
  if (process_ != nullptr) process_->Stop(grace);
}

void Worker::StopSoon(Duration grace) {
  if (array_ == nullptr) return Stop(grace);
  if (grace == Duration(0)) return array_->Stop(grace);
  LeaveArray(grace, Duration(0));
}

void Worker::LeaveArray(Duration grace, Duration for_loading) {
  leave_grace_ = grace;
  if (!std::exchange(leaves_, true)) {
    told_to_leave_ = runtime::Now();
    tactus::v1::ToWorker stop;
    stop.mutable_stop()->set_reason("ended by its agent");
    stop.mutable_stop()->set_discard(true);
    const absl::StatusOr<std::string> line = FormatToWorker(stop);
    if (line.ok()) static_cast<void>(socket_->Send(*line));
    if (loads_) {
      runtime::Logger("agent")->info("worker of an array ends when it has loaded worker={} job={}",
                                     id_.value, job_id_);
    }
  }
  KillArrayAfter(grace + (loads_ ? for_loading : Duration(0)));
}

// A second call can only shorten the time.
void Worker::KillArrayAfter(Duration grace) {
  const Instant time = runtime::Now() + grace;
  if (time >= kill_time_) return;
  kill_time_ = time;
  leave_timer_.At(time, [this] {
    const double seconds = ToSeconds(runtime::Now() - told_to_leave_);
    array_->KillFor(id_, "which shared it, had not ended " + std::to_string(std::lround(seconds)) +
                             " s after it was told to");
  });
}

bool Worker::IsWorkers(pid_t pid) const {
  if (array_ != nullptr) return pid == array_->pid();
  if (process_ == nullptr) return false;
  return ::getsid(pid) == process_->pid() || IsBelow(pid, process_->pid());
}

void Worker::OnLine(std::string_view line) {
  if (failed_ && !leaves_) return;
  absl::StatusOr<tactus::v1::FromWorker> message = ParseFromWorker(line);
  const bool ready = message.ok() && message->has_ready();
  if (leaves_) {
    // From here on it hears that it is to go.
    if (ready && std::exchange(loads_, false)) KillArrayAfter(leave_grace_);
    return;
  }
  if (ready) loads_ = false;
  if (!message.ok()) return Fail(std::string(message.status().message()));
  if (message->has_standing()) {
    standing_ = std::move(*message->mutable_standing());
    standing_at_ = runtime::Now();
    return;
  }
  if (!handlers_.said(*std::move(message))) Fail("too many messages while the coordinator is away");
}

// A worker that never says where it stands, as a program of somebody else may, is not silent.
tactus::v1::Standing Worker::Standing() const {
  tactus::v1::Standing standing = standing_;
  standing.set_silent_seconds(standing_at_ ? ToSeconds(runtime::Now() - *standing_at_) : 0);
  const ProcessSighting seen = LookAtProcess(pid());
  standing.set_stopped(seen.stopped);
  standing.set_storage(seen.storage);
  standing.set_processor_seconds(seen.processor_seconds);
  return standing;
}

void Worker::Fail(const std::string& reason) {
  failed_ = true;
  runtime::Logger("agent")->warn("worker misbehaved worker={} job={} reason={}", id_.value, job_id_,
                                 runtime::Quoted(reason));
  tactus::v1::FromWorker message;
  message.mutable_failed()->set_message(
      runtime::ToUtf8("worker " + std::to_string(id_.value) + ": " + reason));
  message.mutable_failed()->set_transient(true);
  // Without room for this the exit still tells of the end.
  static_cast<void>(handlers_.said(std::move(message)));
  StopSoon(kMisuseGrace);
}

void Worker::OnExit(const WorkerExit& exit) {
  leave_timer_.Cancel();
  socket_->Drain();
  // As a process of its own would have been ended.
  const bool left = leaves_ && exit.signal == 0;
  handlers_.exited(left ? WorkerExit{.exit_code = -1, .signal = SIGTERM, .log_tail = exit.log_tail}
                        : exit);
}

}  // namespace tactus::agent
