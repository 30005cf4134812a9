#include "tests/coordinator/job/rig.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tactus::job {
namespace {

constexpr double kSpeeds[] = {100, 100, 50};
constexpr double kTransferSeconds = 0.01;
constexpr double kStepSeconds = 0.1;
constexpr std::uint64_t kTrainSamples = 1000;

double ComputeSeconds(std::uint32_t rank, std::uint32_t batch_size) {
  return batch_size / kSpeeds[rank % 3];
}

}  // namespace

Instant At(double seconds) { return Instant{} + Seconds(seconds); }

std::vector<DeviceRecord> Devices(const std::string& kind, int count) {
  std::vector<DeviceRecord> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back({.name = kind + ":" + std::to_string(i),
                       .kind = kind == "cuda" ? DeviceKind::kCuda : DeviceKind::kCpu});
  }
  return devices;
}

NodeJoined Join(const std::string& node, int cpus) {
  return {.node = node, .devices = Devices("cpu", cpus)};
}

JobRecord Job(std::uint64_t id, const JobSettings& settings) {
  JobRecord record{.id = JobId{id}, .name = "alpha-" + std::to_string(id), .spec = "spec"};
  record.settings = settings;
  record.create_time = kWallOffset;
  return record;
}

JobRecord JobOnce(std::uint64_t id) {
  return Job(id, {.workers_min = 1, .workers_max = 3, .retries = 0});
}

WorkerSaid Said(std::uint64_t worker, FromWorker message) {
  return {.worker = WorkerId{worker}, .message = std::move(message)};
}

ReadyMessage Ready() {
  return {
      .parameters = 10, .train_samples = kTrainSamples, .validation_samples = 100, .mesh_version = 1};
}

ReportMessage ReportOf(std::uint32_t rank, const RoundOf& round, std::uint64_t generation) {
  double slowest = 0;
  for (std::uint32_t other = 0; other < round.batch_sizes.size(); ++other) {
    slowest = std::max(slowest, ComputeSeconds(other, round.batch_sizes[other]));
  }
  const auto samples =
      std::accumulate(round.batch_sizes.begin(), round.batch_sizes.end(), std::uint64_t{0});
  const double compute = ComputeSeconds(rank, round.batch_sizes[rank]);
  const std::uint64_t consumed = (round.round + 1) * samples;
  return {.generation = generation,
          .report = {.round = round.round,
                     .plan_version = round.plan_version,
                     .rank = rank,
                     .samples = round.batch_sizes[rank],
                     .loss_sum = 2.0 * round.batch_sizes[rank],
                     .compute_seconds = compute,
                     .blocked_seconds = slowest - compute + kTransferSeconds,
                     .round_seconds = slowest + kTransferSeconds,
                     .bytes_sent = 4096,
                     .samples_global = samples,
                     .loss_mean_global = 2.0,
                     .epoch = consumed / kTrainSamples,
                     .epoch_consumed = consumed % kTrainSamples}};
}

FinishedMessage Finished(std::uint32_t rank) {
  FinishedMessage message{.reason = "3 rounds",
                          .rounds = 3,
                          .samples = 96,
                          .samples_global = 288,
                          .epochs = 0,
                          .train_loss = 2,
                          .train_seconds = 2,
                          .parameters_hash = 77};
  if (rank == 0) message.files = {"model.pt", "model.safetensors"};
  return message;
}

std::vector<policies::Plan> PlansSent(const Actions& actions) {
  return Sent<policies::Plan>(actions);
}

std::vector<WorkerId> Stopped(const Actions& actions) {
  std::vector<WorkerId> workers;
  for (const StopWorker& stop : Only<StopWorker>(actions)) workers.push_back(stop.worker);
  return workers;
}

Actions Rig::Step(const Event& event) { return StepAt(seconds_ + kStepSeconds, event); }

Actions Rig::StepAt(double seconds, const Event& event) {
  seconds_ = seconds;
  Actions actions = cluster_->Step(event, At(seconds_));
  Note(actions);
  return actions;
}

Actions Rig::SilentAt(double seconds) {
  for (const double at : {seconds, seconds + 2}) {
    for (const LookAtWorker& look : Only<LookAtWorker>(StepAt(at, Ticked{}))) {
      Step(WorkerSaid{.worker = look.worker, .message = StandingMessage{}});
    }
  }
  return StepAt(seconds + 4, Ticked{});
}

void Rig::ToStarting() {
  Step(Join("a", 2));
  Step(Join("b", 1));
  Step(JobSubmitted{job_});
}

void Rig::ToFormed() {
  ToStarting();
  for (std::uint64_t worker = 1; worker <= 3; ++worker) Step(Said(worker, Ready()));
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    Step(Said(worker, EndpointMessage{.generation = 1, .endpoint = "e" + std::to_string(worker)}));
  }
}

void Rig::ToRunning() {
  ToFormed();
  Round();
}

Actions Rig::Round(std::uint64_t plan_version) {
  const RoundOf round{
      .round = next_round_++, .plan_version = plan_version, .batch_sizes = {32, 32, 32}};
  Actions all;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    for (Action& action : Step(Said(rank + 1, ReportOf(rank, round)))) {
      all.push_back(std::move(action));
    }
  }
  return all;
}

void Rig::FinishAll() {
  for (std::uint32_t rank = 0; rank < 3; ++rank) Step(Said(rank + 1, Finished(rank)));
}

void Rig::StoreAll() {
  for (const char* path : {"model.pt", "model.safetensors"}) {
    Step(ArtifactStored{.job = JobId{1}, .artifact = {.path = path, .size_bytes = 1}});
  }
}

Actions Rig::Restart() {
  cluster_ = std::make_unique<Cluster>(kWallOffset);
  seconds_ += kStepSeconds;
  cluster_->RestoreMemory(memory_);
  for (const auto& [key, prior] : priors_) cluster_->RestorePrior(prior);
  Actions actions = cluster_->Restore(record(), At(seconds_));
  Note(actions);
  return actions;
}

Actions Rig::Rejoin(const std::string& node, int cpus, std::vector<WorkerId> running) {
  NodeJoined event = Join(node, cpus);
  event.running_workers = std::move(running);
  return Step(event);
}

void Rig::Note(const Actions& actions) {
  for (const PersistJob& persist : Only<PersistJob>(actions)) last_ = persist.record;
  for (const PersistMemory& persist : Only<PersistMemory>(actions)) memory_ = persist.memory;
  for (const PersistPrior& persist : Only<PersistPrior>(actions)) {
    priors_[persist.prior.key] = persist.prior;
  }
}

}  // namespace tactus::job
