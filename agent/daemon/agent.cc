#include "agent/daemon/agent.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/daemon/worker_environment.h"
#include "runtime/logging.h"

namespace tactus::agent {

using runtime::Logger;
using runtime::Quoted;
using tactus::agent::v1::FromAgent;
using tactus::agent::v1::Hello;
using tactus::agent::v1::ToAgent;

namespace {

// A worker that ends may overlap the next one on its device, but not for ever.
constexpr std::size_t kWorkersPerDeviceMax = 4;
constexpr std::size_t kJobIdBytesMax = 200;
// Of the 107 bytes of a Unix socket's path, what "/18446744073709551615.sock" leaves.
constexpr std::size_t kSocketFolderBytesMax = 81;
constexpr Duration kGoodbyeLimit = Seconds(1);
constexpr Duration kGraceMax = Seconds(3600);
constexpr int kExitCannotStart = 127;  // as a shell has it

bool IsJobId(const std::string& id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !id.empty() && id.size() <= kJobIdBytesMax && id.front() != '.' &&
         std::ranges::all_of(id, allowed);
}

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
  }
  return hello;
}

Importance ImportanceOf(const tactus::v1::FromWorker& message) {
  return message.has_report() ? Importance::kReport : Importance::kMessage;
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
                                                   runtime::AgentMetrics& metrics,
                                                   const AgentOptions& options,
                                                   std::uint64_t incarnation) {
  const absl::Status folder = runtime::MakeWritableFolder(options.state_folder + "/jobs");
  if (!folder.ok()) return folder;
  absl::StatusOr<runtime::LockFile> lock =
      runtime::LockFile::Acquire(options.state_folder + "/agent.lock");
  if (!lock.ok()) return lock.status();
  absl::StatusOr<std::string> sockets = MakeSocketFolder(options.state_folder);
  if (!sockets.ok()) return sockets.status();
  return std::unique_ptr<Agent>(
      new Agent(control, metrics, options, incarnation, *std::move(lock), *std::move(sockets)));
}

Agent::Agent(runtime::ControlThread& control, runtime::AgentMetrics& metrics, AgentOptions options,
             std::uint64_t incarnation, runtime::LockFile lock, std::string socket_folder)
    : control_(control),
      metrics_(metrics),
      options_(std::move(options)),
      lock_(std::move(lock)),
      socket_folder_(std::move(socket_folder)),
      channel_(MakeChannel(options_.coordinator)),
      uploader_(control, channel_, {.initial = Seconds(0.2), .max = Seconds(5)}),
      link_(control, {.channel = channel_, .hello = MakeHello(options_, incarnation)},
            {.running_workers =
                 [this] {
                   std::vector<std::uint64_t> ids;
                   for (const auto& [id, worker] : workers_) ids.push_back(id.value);
                   return ids;
                 },
             .message = [this](const ToAgent& message) { OnMessage(message); },
             .connected = [this](bool connected) { metrics_.SetConnected(connected); },
             .dropped = [this](std::uint64_t reports) { metrics_.CountReportsDropped(reports); }}),
      stop_timer_(control) {}

Agent::~Agent() {
  workers_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(socket_folder_, ignored);
}

void Agent::Start() { link_.Start(); }

void Agent::OnMessage(const ToAgent& message) {
  if (message.has_start_worker()) return StartWorker(message.start_worker());
  if (message.has_to_worker()) {
    const auto found = workers_.find(WorkerId{message.to_worker().worker_id()});
    // A worker that has just ended: its exit is on the way up.
    if (found != workers_.end()) found->second->Send(message.to_worker().message());
  } else if (message.has_stop_worker()) {
    const auto found = workers_.find(WorkerId{message.stop_worker().worker_id()});
    if (found != workers_.end()) found->second->Stop(Grace(message.stop_worker().grace()));
  }
}

void Agent::StartWorker(const tactus::agent::v1::StartWorker& request) {
  const absl::Status status = TryStartWorker(request);
  if (status.ok()) return metrics_.SetWorkers(workers_.size());
  const std::string reason = "agent: " + std::string(status.message());
  Logger("agent")->error("worker not started worker={} job={} reason={}", request.worker_id(),
                         Quoted(request.start().job_id()), Quoted(reason));
  SendExit(WorkerId{request.worker_id()}, {.exit_code = kExitCannotStart, .log_tail = reason});
}

absl::Status Agent::TryStartWorker(const tactus::agent::v1::StartWorker& request) {
  const WorkerId id{request.worker_id()};
  if (stopping_) return absl::UnavailableError("it is being stopped");
  if (workers_.contains(id)) return absl::AlreadyExistsError("the worker runs already");
  const absl::StatusOr<Worker::Options> options = Prepare(request);
  if (!options.ok()) return options.status();
  absl::StatusOr<std::unique_ptr<Worker>> worker = Worker::Start(
      control_, *options,
      {.said = [this,
                id](tactus::v1::FromWorker message) { return OnSaid(id, std::move(message)); },
       .exited = [this, id](const WorkerExit& exit) { OnExited(id, exit); }});
  if (!worker.ok()) return worker.status();
  workers_[id] = *std::move(worker);
  Logger("agent")->info("worker started worker={} job={} device={}", id.value,
                        options->start.job_id(), options->start.device());
  return absl::OkStatus();
}

absl::StatusOr<Worker::Options> Agent::Prepare(
    const tactus::agent::v1::StartWorker& request) const {
  const std::string& job = request.start().job_id();
  if (!IsJobId(job))
    return absl::InvalidArgumentError("job id: allowed are 1 to 200 of [A-Za-z0-9._-]");
  const auto device =
      std::ranges::find(options_.devices, request.start().device(), &DeviceOptions::name);
  if (device == options_.devices.end()) {
    return absl::NotFoundError("device '" + request.start().device() + "': not on node " +
                               options_.node);
  }
  if (workers_.size() >= kWorkersPerDeviceMax * options_.devices.size()) {
    return absl::ResourceExhaustedError(std::to_string(workers_.size()) + " workers run already");
  }
  const std::string folder = options_.state_folder + "/jobs/" + job;
  absl::Status status = runtime::MakeWritableFolder(folder + "/result");
  if (!status.ok()) return status;

  const std::string id = std::to_string(request.worker_id());
  Worker::Options options;
  options.id = WorkerId{request.worker_id()};
  options.socket_path = socket_folder_ + "/" + id + ".sock";
  options.start = request.start();
  options.start.set_worker_id(request.worker_id());
  options.start.set_address(options_.address);
  options.start.set_output_directory(folder + "/result");
  options.start.set_emulated_speed(device->emulated_speed);
  options.start.set_emulated_cpu_factor(options_.emulated_cpu_factor);
  options.command = {.arguments = {options_.worker_binary, "--socket", options.socket_path},
                     .environment = WorkerEnvironment(
                         options_.environment,
                         {.job_id = job,
                          .control_socket = options.socket_path,
                          .local_rank = static_cast<std::size_t>(device - options_.devices.begin()),
                          .local_world_size = options_.devices.size(),
                          .threads = device->cuda ? 0 : options_.threads_per_cpu_device}),
                     .log_path = folder + "/worker-" + id + ".log"};
  return options;
}

bool Agent::OnSaid(WorkerId worker, tactus::v1::FromWorker message) {
  if (message.has_report()) metrics_.CountReportsRelayed(1);
  const Importance importance = ImportanceOf(message);
  FromAgent up;
  up.mutable_from_worker()->set_worker_id(worker.value);
  *up.mutable_from_worker()->mutable_message() = std::move(message);
  if (!link_.Send(up, importance)) return false;
  const auto found = workers_.find(worker);
  if (up.from_worker().message().has_finished() && found != workers_.end()) {
    UploadResult(*found->second, up.from_worker().message().finished());
  }
  return true;
}

void Agent::UploadResult(const Worker& worker, const tactus::v1::Finished& finished) {
  const WorkerId id = worker.id();
  for (const std::string& path : finished.files()) {
    const absl::Status status = CheckArtifactPath(path);
    if (!status.ok()) {
      FailWorker(id, std::string(status.message()));
      continue;
    }
    uploader_.Upload(
        {.job_id = worker.job_id(), .folder = worker.output_folder(), .path = path},
        [this, id, path](const absl::Status& uploaded) {
          if (!uploaded.ok()) {
            FailWorker(id, "file '" + path + "' was not taken: " + std::string(uploaded.message()));
          }
          CloseIfDone();
        });
  }
}

void Agent::FailWorker(WorkerId worker, const std::string& reason) {
  Logger("agent")->error("result lost worker={} reason={}", worker.value, Quoted(reason));
  FromAgent up;
  up.mutable_from_worker()->set_worker_id(worker.value);
  up.mutable_from_worker()->mutable_message()->mutable_failed()->set_message(ToUtf8(reason));
  // At most one a file of a finished worker, so it may not be refused.
  static_cast<void>(link_.Send(up, Importance::kExit));
}

void Agent::OnExited(WorkerId worker, const WorkerExit& exit) {
  SendExit(worker, exit);
  // Called from within the worker: it goes when it is no longer on the stack.
  control_.Post([this, worker] {
    workers_.erase(worker);
    metrics_.SetWorkers(workers_.size());
    CloseIfDone();
  });
}

void Agent::SendExit(WorkerId worker, const WorkerExit& exit) {
  Logger("agent")->info("worker ended worker={} exit_code={} signal={}", worker.value,
                        exit.exit_code, exit.signal);
  FromAgent up;
  up.mutable_worker_exited()->set_worker_id(worker.value);
  up.mutable_worker_exited()->set_exit_code(exit.exit_code);
  up.mutable_worker_exited()->set_signal(exit.signal);
  up.mutable_worker_exited()->set_log_tail(ToUtf8(exit.log_tail));
  static_cast<void>(link_.Send(up, Importance::kExit));
}

void Agent::Stop(Duration grace, std::function<void()> done) {
  for (const auto& [id, worker] : workers_) worker->Stop(stopping_ ? Duration(0) : grace);
  if (std::exchange(stopping_, true)) return;
  stopped_ = std::move(done);
  // Workers are killed at the same time; whatever else is open is not waited for.
  stop_timer_.After(grace + kGoodbyeLimit, [this] {
    workers_.clear();
    metrics_.SetWorkers(0);
    if (!std::exchange(closing_, true)) link_.Close(kGoodbyeLimit, std::move(stopped_));
  });
  CloseIfDone();
}

void Agent::CloseIfDone() {
  if (!stopping_ || closing_ || !workers_.empty() || !uploader_.idle()) return;
  closing_ = true;
  stop_timer_.Cancel();
  link_.Close(kGoodbyeLimit, std::move(stopped_));
}

}  // namespace tactus::agent
