// The part of Agent that starts workers and passes their output on.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "agent/daemon/agent.h"
#include "agent/daemon/host_facts.h"
#include "agent/daemon/program_command.h"
#include "agent/daemon/torchscript_rule.h"
#include "agent/daemon/worker_environment.h"
#include "protocol/worker_messages.h"
#include "runtime/logging.h"
#include "runtime/now.h"

namespace tactus::agent {

using runtime::Logger;
using runtime::Quoted;

namespace {

constexpr std::size_t kJobIdBytesMax = 200;
constexpr int kExitCannotStart = 127;       // as a shell has it
constexpr const char* kOnlyGpu = "cuda:0";  // of those that CUDA_VISIBLE_DEVICES names
// How long output waits for more, so that a line is no message.
constexpr Duration kOutputInterval = Seconds(0.2);

bool IsJobId(const std::string& id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !id.empty() && id.size() <= kJobIdBytesMax && id.front() != '.' &&
         std::ranges::all_of(id, allowed);
}

// For a worker on the device: its own, or its part of the host's, as far as the box allows. 0: not
// known. [bytes]
std::uint64_t MemoryOf(const DeviceOptions& device, const AgentOptions& options) {
  if (device.cuda) return device.memory_bytes;
  const auto sharing =
      std::ranges::count_if(options.devices, [](const auto& each) { return !each.cuda; });
  const std::uint64_t share = device.memory_bytes / static_cast<std::uint64_t>(sharing);
  const std::uint64_t most = options.box.memory_bytes_max;
  return most > 0 && share > 0 ? std::min(share, most) : share;
}

}  // namespace

void Agent::StartWorker(const tactus::agent::v1::StartWorker& request) {
  const absl::Status status = TryStartWorker(request);
  if (!status.ok()) FailStart(WorkerId{request.worker_id()}, request.start().job_id(), status);
}

void Agent::FailStart(WorkerId id, const std::string& job, const absl::Status& status) {
  const std::string reason = "agent: " + std::string(status.message());
  Logger("agent")->error("worker not started worker={} job={} reason={}", id.value, Quoted(job),
                         Quoted(reason));
  // Not of one that was refused for its name.
  if (IsJobId(job)) job_folders_.RemoveScratch(job, std::to_string(id.value));
  SendExit(id, {.exit_code = kExitCannotStart, .log_tail = reason});
}

absl::Status Agent::TryStartWorker(const tactus::agent::v1::StartWorker& request) {
  const WorkerId id{request.worker_id()};
  // Asked for again: it runs, as it is to, and an error would be taken for its end.
  if (workers_.contains(id) || preparing_.contains(id)) return absl::OkStatus();
  if (stopping_ || leaving_) return absl::UnavailableError("it is being stopped");
  const std::string& job = request.start().job_id();
  if (IsJobId(job) && !JobsHere().contains(job)) job_folders_.RemoveCheckpoints(job);
  if (absl::Status status = Admit(request.start()); !status.ok()) {
    const std::string text(status.message());
    SayFailed(id, text.substr(0, text.find(':')), text, false);
    return status;
  }
  absl::StatusOr<Preparing> preparing = Prepare(request);
  if (!preparing.ok()) return preparing.status();
  const std::vector<BlobReference> references = BlobReferences(preparing->options.start);
  if (references.empty()) return Launch(*std::move(preparing));
  preparing->missing = references.size();
  preparing_[id] = *std::move(preparing);
  FetchFor(id, references);
  return absl::OkStatus();
}

void Agent::FetchFor(WorkerId id, const std::vector<BlobReference>& references) {
  Preparing& preparing = preparing_.at(id);
  for (const BlobReference& reference : references) {
    // No answer comes after the pin is released, which is before the worker's entry goes.
    preparing.pins.push_back(blobs_.Fetch(
        reference.sha256, [this, id, reference](const absl::StatusOr<std::string>& path) {
          OnFetched(id, reference, path);
        }));
  }
  Logger("agent")->info("worker waits for files worker={} job={} files={}", id.value,
                        preparing.options.start.job_id(), references.size());
}

void Agent::OnFetched(WorkerId id, const BlobReference& reference,
                      const absl::StatusOr<std::string>& path) {
  Preparing& preparing = preparing_.at(id);
  const std::string job = preparing.options.start.job_id();
  absl::Status status;
  if (path.ok()) {
    SetPath(preparing.options.start, reference, *path);
    if (--preparing.missing > 0) return;
    auto prepared = preparing_.extract(id);
    const std::vector<std::uint64_t> pins = prepared.mapped().pins;
    status = Launch(std::move(prepared.mapped()));
    if (status.ok()) return;
    for (const std::uint64_t pin : pins) blobs_.Release(pin);
  } else {
    status = absl::Status(path.status().code(),
                          reference.field + ": " + std::string(path.status().message()));
    for (const std::uint64_t pin : preparing.pins) blobs_.Release(pin);
    preparing_.erase(id);
    const bool gone = absl::IsDataLoss(status) || absl::IsNotFound(status);
    // In the worker's name, as it would have found out itself.
    if (gone && reference.field == protocol::kCheckpointField) {
      SayFailed(id, reference.field, std::string(status.message()));
    }
  }
  FailStart(id, job, status);
  EndIfDone();
}

void Agent::GiveUpPreparing(WorkerId id) {
  for (const std::uint64_t pin : preparing_.at(id).pins) blobs_.Release(pin);
  job_folders_.RemoveScratch(preparing_.at(id).options.start.job_id(), std::to_string(id.value));
  preparing_.erase(id);
  SendExit(
      id, {.exit_code = -1, .signal = SIGTERM, .log_tail = "agent: stopped before it was started"});
}

absl::Status Agent::Admit(const tactus::v1::Start& start) const {
  if (absl::Status status = CheckTorchscript(start.spec(), options_.torchscript); !status.ok()) {
    return status;
  }
  return box_->CheckPaths(start.spec());
}

absl::Status Agent::EnterBox(Preparing& prepared) const {
  const tactus::v1::Start& start = prepared.options.start;
  WorkerCommand& command = prepared.options.command;
  std::optional<ProgramCommand> program;
  if (start.spec().has_program()) {
    absl::StatusOr<ProgramCommand> found =
        PrepareProgram(start.spec().program(), box_->PlaceOf(start.job_id()), options_.environment);
    if (!found.ok()) return found.status();
    program = *std::move(found);
    command.arguments = program->arguments;
    command.directory = program->directory;
  }
  absl::StatusOr<std::shared_ptr<const box::Held>> held =
      box_->Confine(start, prepared.folders, program ? &*program : nullptr, prepared.gpu);
  if (!held.ok()) return held.status();
  command.held = *std::move(held);
  return absl::OkStatus();
}

// Starts the process; all that it reads is here.
absl::Status Agent::Launch(Preparing prepared) {
  const WorkerId id = prepared.options.id;
  absl::Status entered = prepared.array.empty() ? EnterBox(prepared) : EnterArray(prepared);
  if (!entered.ok()) return entered;
  MemoryKillFiles files = options_.memory_kill_files;
  std::error_code ignored;
  // Of its own limit, where it has one; else of whatever bounds the agent.
  if (const auto& cgroup = prepared.options.command.held->cgroup;
      cgroup != nullptr && options_.box.memory_bytes_max > 0 &&
      std::filesystem::exists(cgroup->memory_events(), ignored)) {
    files.cgroup = "the worker's own";
    files.cgroup_events = cgroup->memory_events();
  }
  const MemoryKills memory_kills = CountMemoryKills(files);
  absl::StatusOr<std::unique_ptr<Worker>> worker = Worker::Start(
      control_, prepared.options,
      {.said = [this,
                id](tactus::v1::FromWorker message) { return OnSaid(id, std::move(message)); },
       .exited = [this, id](const WorkerExit& exit) { OnExited(id, exit); },
       .wrote = [this, id](std::string_view output) { OnWrote(id, output); }});
  if (!worker.ok()) return worker.status();
  Running& running = workers_[id];
  running.worker = *std::move(worker);
  running.device = prepared.options.device;
  running.pins = std::move(prepared.pins);
  running.memory_kill_files = std::move(files);
  running.memory_kills = memory_kills;
  for (const tactus::v1::ToWorker& message : prepared.messages) running.worker->Send(message);
  Logger("agent")->info("worker started worker={} job={} device={}", id.value,
                        prepared.options.start.job_id(), prepared.options.device);
  metrics_.SetWorkers(workers_.size());
  CollectOrphans();
  return absl::OkStatus();
}

absl::StatusOr<Agent::Preparing> Agent::Prepare(
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
  if (device->cuda && device->uuid.empty()) {
    return absl::FailedPreconditionError("device '" + device->name + "': " + device->fault);
  }
  const tactus::v1::JobSpec& spec = request.start().spec();
  if (spec.has_program() && !options_.allow_programs) {
    return absl::PermissionDeniedError("program: node " + options_.node +
                                       " takes none; tactus-agent --allow-programs does");
  }
  // A device's speed is made up by the time of a process of one job.
  const bool of_array = !request.array().empty() && device->emulated_speed == 0;
  if (absl::Status status = CheckCount(of_array); !status.ok()) return status;
  const std::string id = std::to_string(request.worker_id());
  absl::StatusOr<WorkerFolders> folders = box_->MakeFolders(job, id);
  if (!folders.ok()) return folders.status();
  Preparing preparing{.folders = *std::move(folders),
                      .gpu = device->cuda,
                      .array = of_array ? request.array() : ""};
  Worker::Options& options = preparing.options;
  options.id = WorkerId{request.worker_id()};
  options.user = box_->user();
  options.socket_path = box_->socket_folder() + "/" + id + ".sock";
  options.start = request.start();
  options.device = device->name;
  options.start.set_worker_id(request.worker_id());
  if (device->cuda) options.start.set_device(kOnlyGpu);
  options.start.set_address(options_.address);
  options.start.set_wants_standing(true);
  options.start.set_output_directory(preparing.folders.result);
  options.start.set_emulated_speed(device->emulated_speed);
  options.start.set_emulated_cpu_factor(options_.emulated_cpu_factor);
  options.start.set_memory_bytes(MemoryOf(*device, options_));
  options.command = {.arguments = {options_.worker_binary, "--socket", options.socket_path},
                     .environment = WorkerEnvironment(
                         options_.environment, options_.worker_env,
                         {.job_id = job,
                          .control_socket = options.socket_path,
                          .local_rank = static_cast<std::size_t>(device - options_.devices.begin()),
                          .local_world_size = options_.devices.size(),
                          .program = spec.has_program(),
                          .threads = device->cuda ? 0 : options_.threads_per_cpu_device,
                          .blas_kernels = OpenBlasKernels(),
                          .device = device->cuda ? kOnlyGpu : "cpu",
                          .gpu_uuid = device->cuda ? device->uuid : "",
                          .network_interface = device->cuda ? InterfaceOf(options_.address) : "",
                          .scratch = preparing.folders.scratch}),
                     .log_path = options_.state_folder + "/jobs/" + job + "/worker-" + id + ".log",
                     .cpus = device->cpus};
  // The threads of a worker on a GPU (libtorch's, NCCL's, the reader's) wait for each other.
  if (!device->cuda) {
    options.command.cpus = OwnCore(static_cast<std::size_t>(device - options_.devices.begin()),
                                   options_.devices.size());
  }
  return preparing;
}

void Agent::OnWrote(WorkerId worker, std::string_view output) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  found->second.output.Append(output);
  if (std::exchange(output_due_, true)) return;
  output_timer_.After(kOutputInterval, [this] { FlushOutput(); });
}

void Agent::FlushOutput() {
  output_due_ = false;
  const Instant now = runtime::Now();
  for (auto& [id, running] : workers_) {
    SendOutput(*running.worker, running.output.Take(now));
    output_due_ = output_due_ || running.output.waiting();
  }
  if (output_due_) output_timer_.After(kOutputInterval, [this] { FlushOutput(); });
}

void Agent::SendOutput(const Worker& worker, std::vector<LogPieces::Piece> pieces) {
  for (LogPieces::Piece& piece : pieces) {
    tactus::agent::v1::FromAgent up;
    up.mutable_log_lines()->set_worker_id(worker.id().value);
    up.mutable_log_lines()->set_job_id(worker.job_id());
    up.mutable_log_lines()->set_offset(piece.offset);
    up.mutable_log_lines()->set_text(std::move(piece.text));
    // Never refused: what finds no room is lost.
    static_cast<void>(link_.Send(up, Importance::kLogLines));
  }
}

}  // namespace tactus::agent
