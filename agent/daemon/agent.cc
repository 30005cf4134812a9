#include "agent/daemon/agent.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "agent/daemon/orphans.h"
#include "identity/enrolment.h"
#include "protocol/node_labels.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/utf8.h"

namespace tactus::agent {

using runtime::Logger;
using runtime::Quoted;
using tactus::agent::v1::FromAgent;
using tactus::agent::v1::Hello;
using tactus::agent::v1::ToAgent;

namespace {

// Of the 107 bytes of a Unix socket's path, what "/18446744073709551615.sock" leaves.
constexpr std::size_t kSocketFolderBytesMax = 81;
constexpr Duration kGraceMax = Seconds(3600);
// Far less than anything is kept.
constexpr Duration kSweepInterval = Seconds(3600);
// Between two looks for what workers left: while some is to be collected, and else.
constexpr Duration kOrphanInterval = Seconds(0.05);
constexpr Duration kQuietInterval = Seconds(5);
// Of a call that renews the certificate.
constexpr Duration kRenewalLimit = Seconds(5);
// What a worker may be sent before it runs; more is never due.
constexpr std::size_t kMessagesHeldMax = 16;

Hello MakeHello(const AgentOptions& options, std::uint64_t incarnation) {
  Hello hello;
  hello.set_node(options.node);
  hello.set_incarnation(incarnation);
  hello.set_agent_version(options.version);
  hello.set_metrics_address(options.metrics_address);
  for (const DeviceOptions& device : options.devices) {
    tactus::v1::Device* added = hello.add_devices();
    added->set_name(device.name);
    added->set_kind(device.cuda ? tactus::v1::DEVICE_KIND_CUDA : tactus::v1::DEVICE_KIND_CPU);
    added->set_model(device.model);
    added->set_emulated_speed(device.emulated_speed);
    added->set_uuid(device.uuid);
    added->set_memory_bytes(device.memory_bytes);
  }
  hello.mutable_labels()->insert(options.labels.begin(), options.labels.end());
  for (const std::string& taint : options.taints) hello.add_taints(taint);
  hello.set_arrays(true);
  hello.set_worker_memory_bytes(options.box.memory_bytes_max);
  return hello;
}

Importance ImportanceOf(const tactus::v1::FromWorker& message) {
  // A validation's curve does without a point as that of rounds does.
  const bool of_many = message.has_report() || message.has_validated();
  return of_many ? Importance::kReport : Importance::kMessage;
}

Duration Grace(const google::protobuf::Duration& grace) {
  const Duration asked = std::chrono::seconds(grace.seconds()) + Duration(grace.nanos());
  return std::clamp(asked, Duration(0), kGraceMax);
}

// An empty folder for sockets that only this user can enter: in the state folder, where the next
// agent clears what a killed one left; under /tmp when that path is too long for a Unix socket's.
absl::StatusOr<std::string> MakeSocketFolder(const std::string& state_folder) {
  const std::string folder = state_folder + "/run";
  if (folder.size() <= kSocketFolderBytesMax) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    const absl::Status status = runtime::MakeWritableFolder(folder);
    if (!status.ok()) return status;
    return folder;
  }
  std::string temporary = "/tmp/tactus-agent-XXXXXX";
  if (::mkdtemp(temporary.data()) == nullptr) {
    return runtime::FileError(errno, temporary, "cannot be made");
  }
  return temporary;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Agent>> Agent::Open(runtime::ControlThread& control,
                                                   metrics::AgentMetrics& metrics,
                                                   const AgentOptions& options,
                                                   std::uint64_t incarnation) {
  for (const char* folder : {"/jobs", "/blobs"}) {
    const absl::Status status = runtime::MakeWritableFolder(options.state_folder + folder);
    if (!status.ok()) return status;
  }
  absl::StatusOr<runtime::LockFile> lock =
      runtime::LockFile::Acquire(options.state_folder + "/agent.lock");
  if (!lock.ok()) return lock.status();
  AgentOptions resolved = options;
  std::error_code error;
  resolved.state_folder = std::filesystem::canonical(options.state_folder, error).string();
  if (error) return runtime::FileError(error.value(), options.state_folder, "cannot be found");
  absl::StatusOr<std::string> sockets = MakeSocketFolder(resolved.state_folder);
  if (!sockets.ok()) return sockets.status();
  absl::StatusOr<std::unique_ptr<WorkerBox>> box =
      WorkerBox::Open({.box = options.box,
                       .state_folder = resolved.state_folder,
                       .socket_folder = *sockets,
                       .worker_binary = options.worker_binary});
  if (!box.ok()) return box.status();
  resolved.labels[protocol::kSandboxLabel] = (*box)->label();
  Logger("agent")->info("box opened sandbox={} reason={}", Quoted((*box)->label()),
                        Quoted((*box)->Explain()));
  auto credentials = identity::MakeChannelCredentials(options.security.tls_dir);
  if (!credentials.ok()) return credentials.status();
  return std::unique_ptr<Agent>(new Agent(
      control, metrics, std::move(resolved), incarnation,
      {.lock = *std::move(lock), .box = *std::move(box), .credentials = *std::move(credentials)}));
}

Agent::Agent(runtime::ControlThread& control, metrics::AgentMetrics& metrics, AgentOptions options,
             std::uint64_t incarnation, Parts parts)
    : control_(control),
      metrics_(metrics),
      options_(std::move(options)),
      lock_(std::move(parts.lock)),
      box_(std::move(parts.box)),
      channel_(MakeChannel(options_.coordinator, parts.credentials)),
      blobs_(control, channel_, {.folder = options_.state_folder + "/blobs"}),
      job_folders_({.folder = options_.state_folder + "/jobs"}),
      uploader_(control, channel_, {.initial = Seconds(0.2), .max = Seconds(5)}),
      checkpoints_(uploader_,
                   [this](WorkerId worker, std::optional<tactus::v1::Checkpointed> message) {
                     OnCheckpointUploaded(worker, std::move(message));
                   }),
      snapshots_(options_.state_folder + "/jobs", uploader_, [this] { EndIfDone(); }),
      results_(options_.state_folder + "/jobs", uploader_, job_folders_,
               {.lost = [this](WorkerId worker,
                               const std::string& reason) { FailWorker(worker, reason); },
                .ended = [this] { OnBroughtUp(); }}),
      link_(control, {.channel = channel_, .hello = MakeHello(options_, incarnation)},
            {.complete = [this](Hello& hello) { CompleteHello(hello); },
             .message = [this](const ToAgent& message) { OnMessage(message); },
             .connected =
                 [this](bool connected) {
                   metrics_.SetConnected(connected);
                   uploader_.Pause(!connected);
                   if (connected) SayInherited();
                   if (!connected && leaving_ && !stopping_) SuspendWorkers();
                 },
             .dropped = [this](std::uint64_t reports) { metrics_.CountReportsDropped(reports); },
             .acknowledged = [this] { OnBroughtUp(); },
             .has_workers =
                 [this] { return !workers_.empty() || !preparing_.empty() || !uploader_.idle(); },
             .expelled = [this] { OnExpelled(); },
             .refused =
                 [this](const absl::Status& status) {
                   if (refused_) refused_(status);
                 }}),
      leave_timer_(control),
      stop_timer_(control),
      output_timer_(control),
      sweep_timer_(control),
      orphan_timer_(control) {
  for (const DeviceOptions& device : options_.devices) {
    if (!device.fault.empty()) faults_[device.name] = device.fault;
  }
}

Agent::~Agent() {
  workers_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(box_->socket_folder(), ignored);
}

void Agent::Start(std::function<void(const absl::Status& status)> refused) {
  refused_ = std::move(refused);
  Sweep();
  link_.Start();
  if (!options_.security.tls_dir.empty()) KeepCertificate();
}

void Agent::KeepCertificate() {
  keeper_ = std::make_unique<identity::Keeper>(
      identity::Keeper::Options{.folder = options_.security.tls_dir},
      identity::Keeper::Handlers{
          .renew =
              [this] {
                return identity::RenewOver(options_.security.tls_dir, options_.coordinator,
                                           kRenewalLimit);
              },
          .changed = [this] { control_.Post(lifetime_.Guard([this] { ShowNewCertificate(); })); }});
}

// While workers are asked to suspend, a stream that ends would be taken for a coordinator that is
// away; that does not last.
void Agent::ShowNewCertificate() {
  if (stopping_ || leaving_) return;
  const auto credentials = identity::MakeChannelCredentials(options_.security.tls_dir);
  if (!credentials.ok()) {
    Logger("agent")->warn("new certificate not shown reason={}",
                          Quoted(std::string(credentials.status().message())));
    return;
  }
  channel_.Set(MakeChannel(options_.coordinator, *credentials));
  link_.Redial();
}

void Agent::Sweep() {
  const std::int64_t now =
      std::min(runtime::WallNow(), began_wall_ + (runtime::Now() - began_).count());
  std::set<std::string> in_use = JobsHere();
  in_use.merge(snapshots_.jobs());
  const std::size_t folders = job_folders_.Sweep(in_use, now);
  const std::size_t blobs = blobs_.Sweep(now);
  if (folders + blobs > 0) {
    Logger("agent")->info("old files removed jobs={} blobs={}", folders, blobs);
  }
  sweep_timer_.After(kSweepInterval, [this] { Sweep(); });
}

std::set<std::string> Agent::JobsHere() const {
  std::set<std::string> jobs;
  for (const auto& [id, running] : workers_) jobs.insert(running.worker->job_id());
  for (const auto& [id, waiting] : preparing_) jobs.insert(waiting.options.start.job_id());
  return jobs;
}

void Agent::CompleteHello(Hello& hello) const {
  for (const auto& [id, running] : workers_) hello.add_running_workers(id.value);
  for (const auto& [id, preparing] : preparing_) hello.add_running_workers(id.value);
  for (const LastWords& words : results_.inherited()) {
    const bool of_others = !link_.server().empty() && words.server != link_.server();
    if (!of_others) hello.add_ended_workers(words.worker.value);
  }
  if (leaving_) *hello.mutable_leaving() = LeavingNow();
  for (tactus::v1::Device& device : *hello.mutable_devices()) {
    const auto fault = faults_.find(device.name());
    if (fault != faults_.end()) device.set_fault(fault->second);
  }
}

// Whoever asked does not wait for long: it may be lost.
void Agent::OnProbed(const tactus::agent::v1::LinkProbed& said) {
  FromAgent up;
  *up.mutable_link_probed() = said;
  static_cast<void>(link_.Send(up, Importance::kReport));
}

void Agent::OnMessage(const ToAgent& message) {
  if (message.has_start_worker()) return StartWorker(message.start_worker());
  if (message.has_stop_worker()) return OnStopWorker(message.stop_worker());
  if (message.has_look_at_worker()) return OnLookAtWorker(message.look_at_worker());
  if (message.has_set_log_level()) return OnSetLogLevel(message.set_log_level().level());
  if (message.has_probe_link()) return probes_.Order(message.probe_link());
  if (!message.has_to_worker()) return;
  const WorkerId id{message.to_worker().worker_id()};
  const auto running = workers_.find(id);
  const auto preparing = preparing_.find(id);
  // Neither: it has just ended, and its exit is on the way up.
  if (running != workers_.end()) {
    running->second.worker->Send(message.to_worker().message());
  } else if (preparing != preparing_.end() &&
             preparing->second.messages.size() < kMessagesHeldMax) {
    preparing->second.messages.push_back(message.to_worker().message());
  }
}

void Agent::OnSetLogLevel(const std::string& level) {
  if (!runtime::CheckLogLevel(level).ok()) return;
  runtime::SetLogLevel(level, [&] {
    Logger("agent")->info("log level changed log_level={} by=coordinator", level);
  });
}

void Agent::OnStopWorker(const tactus::agent::v1::StopWorker& request) {
  const WorkerId id{request.worker_id()};
  const auto running = workers_.find(id);
  if (running != workers_.end()) return running->second.worker->Stop(Grace(request.grace()));
  if (preparing_.contains(id)) GiveUpPreparing(id);
}

// Their jobs go on without them, and the sooner the others notice, the less is lost.
void Agent::OnExpelled() {
  runtime::Logger("agent")->error("node let in no more, its workers are ended node={} workers={}",
                                  options_.node, workers_.size());
  for (auto& [id, running] : workers_) running.worker->StopSoon(Duration(0));
  while (!preparing_.empty()) GiveUpPreparing(preparing_.begin()->first);
}

void Agent::OnLookAtWorker(const tactus::agent::v1::LookAtWorker& request) {
  const auto running = workers_.find(WorkerId{request.worker_id()});
  if (running == workers_.end()) return;
  FromAgent up;
  up.mutable_from_worker()->set_worker_id(request.worker_id());
  *up.mutable_from_worker()->mutable_message()->mutable_standing() =
      running->second.worker->Standing();
  // The next look asks again.
  static_cast<void>(link_.Send(up, Importance::kReport));
}

bool Agent::OnSaid(WorkerId worker, tactus::v1::FromWorker message) {
  if (message.has_report()) {
    metrics_.CountReportsRelayed(1);
    metrics_.CountOutOfMemory(message.report().out_of_memory());
    const auto running = workers_.find(worker);
    if (running != workers_.end()) {
      message.mutable_report()->set_slowdown(SlowdownOf(running->second.device));
    }
  }
  if (message.has_checkpointed()) {
    KeepCheckpoint(worker, message.checkpointed());
    return true;
  }
  if (message.has_snapshotted()) {
    KeepSnapshot(worker, message.snapshotted());
    return true;
  }
  if (message.has_finished()) return SayFinished(worker, message);
  const auto found = workers_.find(worker);
  if (message.has_evaluated() && found != workers_.end()) found->second.evaluated = message;
  return SendWord(worker, message);
}

bool Agent::SendWord(WorkerId worker, const tactus::v1::FromWorker& message) {
  FromAgent up;
  up.mutable_from_worker()->set_worker_id(worker.value);
  *up.mutable_from_worker()->mutable_message() = message;
  return link_.Send(up, ImportanceOf(message));
}

// Kept before it is said: a coordinator that has heard it waits for its files.
bool Agent::SayFinished(WorkerId worker, const tactus::v1::FromWorker& message) {
  const Running& running = workers_.at(worker);
  LastWords words{.server = link_.server(), .job = running.worker->job_id(), .worker = worker};
  if (running.evaluated) words.messages.push_back(*running.evaluated);
  words.messages.push_back(message);
  results_.Keep(words);
  if (!SendWord(worker, message)) return false;
  checkpoints_.GiveUp(worker);
  // A suspended group's files are without its snapshots, any other's are all that is wanted of it.
  if (!message.finished().suspended()) snapshots_.GiveUp(worker);
  results_.Upload(words);
  return true;
}

void Agent::SayInherited() {
  for (const LastWords& words : results_.TakeInherited(link_.server())) {
    for (const tactus::v1::FromWorker& message : words.messages) {
      // There is room: the first that this agent says.
      static_cast<void>(SendWord(words.worker, message));
    }
    results_.Upload(words);
    SendExit(words.worker, {.exit_code = 0});
  }
}

void Agent::OnBroughtUp() {
  if (results_.waits() && !link_.HoldsWords()) results_.Forget();
  EndIfDone();
}

// The worker's word goes on when its file is there, so that it can be relied upon.
void Agent::KeepCheckpoint(WorkerId worker, const tactus::v1::Checkpointed& message) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  const absl::Status status = CheckArtifactPath(message.file());
  if (!status.ok()) return FailWorker(worker, std::string(status.message()));
  const Worker& said = *found->second.worker;
  checkpoints_.Add(worker, said.job_id(), said.output_folder(), message);
}

void Agent::OnCheckpointUploaded(WorkerId worker, std::optional<tactus::v1::Checkpointed> message) {
  if (message) {
    FromAgent up;
    up.mutable_from_worker()->set_worker_id(worker.value);
    *up.mutable_from_worker()->mutable_message()->mutable_checkpointed() = *std::move(message);
    // Without room for it the former one stands.
    static_cast<void>(link_.Send(up, Importance::kMessage));
  }
  EndIfDone();
}

void Agent::KeepSnapshot(WorkerId worker, const tactus::v1::Snapshotted& message) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  const absl::Status status = CheckArtifactPath(message.file());
  if (!status.ok()) return FailWorker(worker, std::string(status.message()));
  snapshots_.Add(worker, found->second.worker->job_id(), message.file());
}

void Agent::FailWorker(WorkerId worker, const std::string& reason) {
  Logger("agent")->error("result lost worker={} reason={}", worker.value, Quoted(reason));
  SayFailed(worker, "", reason);
}

// At most one a file of a finished worker, and one for each order to start, so it may not be
// refused.
void Agent::SayFailed(WorkerId worker, const std::string& field, const std::string& reason,
                      bool transient) {
  FromAgent up;
  up.mutable_from_worker()->set_worker_id(worker.value);
  tactus::v1::Failed& failed = *up.mutable_from_worker()->mutable_message()->mutable_failed();
  failed.set_field(field);
  failed.set_message(runtime::ToUtf8(reason));
  failed.set_transient(transient);
  static_cast<void>(link_.Send(up, Importance::kExit));
}

void Agent::OnExited(WorkerId worker, WorkerExit exit) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) {
    if (exit.signal == SIGKILL) {
      const MemoryKillFiles& files = found->second.memory_kill_files;
      const std::string words =
          MemoryKillWords(files, found->second.memory_kills, CountMemoryKills(files));
      // The last line is what people are shown of its end.
      if (!words.empty()) exit.log_tail += "\n" + words;
    }
    SendOutput(*found->second.worker, found->second.output.TakeAll());
    for (const std::uint64_t pin : found->second.pins) blobs_.Release(pin);
    job_folders_.Touch(found->second.worker->job_id());
    job_folders_.RemoveScratch(found->second.worker->job_id(), std::to_string(worker.value));
  }
  SendExit(worker, exit);
  // Called from within the worker: it goes when it is no longer on the stack.
  control_.Post([this, worker] {
    workers_.erase(worker);
    metrics_.SetWorkers(workers_.size());
    CollectOrphans();
    EndIfDone();
  });
}

void Agent::CollectOrphans() {
  const std::size_t left = EndOrphans(WorkerProcesses());
  if (left == 0 && workers_.empty()) return;
  // What runs may leave some at any time.
  orphan_timer_.After(left > 0 ? kOrphanInterval : kQuietInterval, [this] { CollectOrphans(); });
}

void Agent::SendExit(WorkerId worker, const WorkerExit& exit) {
  Logger("agent")->info("worker ended worker={} exit_code={} signal={}", worker.value,
                        exit.exit_code, exit.signal);
  FromAgent up;
  up.mutable_worker_exited()->set_worker_id(worker.value);
  up.mutable_worker_exited()->set_exit_code(exit.exit_code);
  up.mutable_worker_exited()->set_signal(exit.signal);
  up.mutable_worker_exited()->set_log_tail(runtime::ToUtf8(exit.log_tail));
  static_cast<void>(link_.Send(up, Importance::kExit));
}

}  // namespace tactus::agent
