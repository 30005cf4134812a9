#include "coordinator/job/cluster.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "coordinator/job/wording.h"
#include "policies/axis_policy.h"
#include "policies/planner.h"

namespace tactus::job {
namespace {

const char* const kBehindOthers = "waiting for earlier jobs in the queue";

std::unique_ptr<policies::PlanPolicy> PolicyOf(const JobSettings& settings) {
  // Where a policy is unknown the job is rejected, but a controller has to have one to say so.
  const bool known = policies::UnknownPolicies(settings.adapt).empty();
  return std::make_unique<policies::Planner>(known ? settings.adapt : policies::PlannerOptions{});
}

// Worker ids are the job's own numbers, because a restarted coordinator knows only unfinished jobs,
// while the last workers of a finished one may still run on a node that is not back. Ids for people
// first: job 3 has 2001 to 3000, and wide ones beyond; 2^24 workers a job and 2^30 jobs are room
// enough.
constexpr std::uint64_t kShortIds = 1000;
constexpr std::uint64_t kWideIds = std::uint64_t{1} << 40;
constexpr int kWideShift = 24;

WorkerId WorkerOf(JobId job, std::uint64_t ordinal) {
  if (ordinal < kShortIds) return {(job.value - 1) * kShortIds + ordinal + 1};
  return {kWideIds + (job.value << kWideShift) + ordinal};
}

// The inverse of WorkerOf.
std::uint64_t OrdinalOf(JobId job, WorkerId worker) {
  if (worker.value < kWideIds) return worker.value - (job.value - 1) * kShortIds - 1;
  return worker.value - kWideIds - (job.value << kWideShift);
}

bool Frees(const Event& event) {
  return !std::holds_alternative<WorkerSaid>(event) &&
         !std::holds_alternative<ArtifactStored>(event);
}

}  // namespace

Cluster::Cluster(WallTime wall_now_minus_now) : wall_offset_(wall_now_minus_now) {}

Actions Cluster::Restore(JobRecord record, Instant now) {
  Actions actions;
  if (IsFinal(record.state) || jobs_.contains(record.id)) return actions;
  const Turn turn{now, actions};
  JobController& job = Add(std::move(record));
  if (!RejectUnknownPolicy(job, turn)) job.Restore(turn);
  if (job.record().state == JobState::kRunning || job.record().state == JobState::kStopping) {
    for (const MemberRecord& member : job.record().members) {
      routes_[member.worker] = job.record().id;
    }
  }
  Retire();
  PlanWake(turn);
  return actions;
}

Actions Cluster::Step(const Event& event, Instant now) {
  Actions actions;
  const Turn turn{now, actions};
  std::visit([&](const auto& one) { Handle(one, turn); }, event);
  if (Frees(event)) {
    Retire();
    Admit(turn);
  }
  PlanWake(turn);
  return actions;
}

const JobRecord* Cluster::Find(JobId job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end() || IsFinal(found->second->record().state)) return nullptr;
  return &found->second->record();
}

std::vector<const JobRecord*> Cluster::Jobs() const {
  std::vector<const JobRecord*> records;
  for (const auto& [id, job] : jobs_) {
    if (!IsFinal(job->record().state)) records.push_back(&job->record());
  }
  return records;
}

void Cluster::Handle(const JobSubmitted& event, Turn turn) {
  if (jobs_.contains(event.record.id)) return;
  const bool first = std::ranges::none_of(
      jobs_, [](const auto& entry) { return entry.second->record().state == JobState::kQueued; });
  JobController& job = Add(event.record);
  job.Submit(first ? WaitReason(job.record().settings) : kBehindOthers, turn);
  RejectUnknownPolicy(job, turn);
}

void Cluster::Handle(const JobCancelled& event, Turn turn) {
  const auto found = jobs_.find(event.job);
  if (found != jobs_.end()) found->second->Cancel(event, turn);
}

void Cluster::Handle(const NodeJoined& event, Turn turn) {
  membership_.Join(event.node, event.devices);
  for (auto& [id, job] : jobs_) {
    job->OnNodeJoined(event, turn);
    ReleaseGone(*job, event.node);
    HoldReturned(*job, event);
  }
  SetStrays(event, turn);
}

// After a restart: members that are back sit on their devices. Not before, because the record of a
// job may name a device that its worker had left and that another job was given since.
void Cluster::HoldReturned(const JobController& job, const NodeJoined& event) {
  for (const MemberRecord& member : job.record().members) {
    const bool back =
        member.node == event.node && job.HasLive(member.worker) &&
        std::ranges::find(event.running_workers, member.worker) != event.running_workers.end();
    if (back && membership_.HolderOf(member.node, member.device) == nullptr) {
      membership_.Hold(member, job.record().id, job.record().name);
    }
  }
}

// Who runs on the node for no job is told to stop.
void Cluster::SetStrays(const NodeJoined& event, Turn turn) {
  std::set<WorkerId> strays;
  for (const WorkerId worker : event.running_workers) {
    const JobController* job = JobOf(worker);
    if (job == nullptr || !job->HasLive(worker)) strays.insert(worker);
  }
  for (const WorkerId worker : membership_.SetStrays(event.node, strays)) {
    turn.actions.push_back(
        StopWorker{.node = event.node, .worker = worker, .grace = JobDeadlines{}.grace});
  }
}

void Cluster::Handle(const NodeLost& event, Turn turn) {
  membership_.Lose(event.node);
  for (auto& [id, job] : jobs_) {
    job->OnNodeLost(event, turn);
    ReleaseGone(*job, event.node);
  }
}

void Cluster::ReleaseGone(const JobController& job, const std::string& node) {
  for (const MemberRecord& member : job.record().members) {
    if (member.node == node && !job.HasLive(member.worker)) membership_.Release(member.worker);
  }
}

void Cluster::Handle(const WorkerSaid& event, Turn turn) {
  if (JobController* job = JobOf(event.worker))
    job->OnWorkerSaid(event.worker, event.message, turn);
}

void Cluster::Handle(const WorkerExited& event, Turn turn) {
  membership_.RemoveStray(event.worker);
  if (JobController* job = JobOf(event.worker)) {
    job->OnWorkerExited(event, turn);
    membership_.Release(event.worker);
  }
}

void Cluster::Handle(const ArtifactStored& event, Turn turn) {
  const auto found = jobs_.find(event.job);
  if (found != jobs_.end()) found->second->OnArtifactStored(event.artifact, turn);
}

void Cluster::Handle(const Ticked&, Turn turn) {
  wake_.reset();
  for (auto& [id, job] : jobs_) job->Tick(turn);
}

JobController* Cluster::JobOf(WorkerId worker) {
  const auto route = routes_.find(worker);
  return route == routes_.end() ? nullptr : jobs_.at(route->second).get();
}

JobController& Cluster::Add(JobRecord record) {
  const JobId id = record.id;
  auto policy = PolicyOf(record.settings);
  return *(jobs_[id] =
               std::make_unique<JobController>(std::move(record), std::move(policy), wall_offset_));
}

// A record of a newer version may name a policy that this one does not have.
bool Cluster::RejectUnknownPolicy(JobController& job, Turn turn) {
  const auto unknown = policies::UnknownPolicies(job.record().settings.adapt);
  if (unknown.empty()) return false;
  const std::string axis(policies::FieldOf(unknown.front().axis));
  job.Reject("this coordinator has no policy \"" + unknown.front().name + "\" for " + axis,
             "adapt." + axis + ".policy", turn);
  return true;
}

// The first job in the queue holds up those behind it, so that a large one gets its turn.
void Cluster::Admit(Turn turn) {
  for (auto& [id, job] : jobs_) {
    if (job->record().state == JobState::kQueued && !TryStart(*job, turn)) return;
  }
}

// Ids above those of the job's earlier workers, which stay on its record.
std::vector<WorkerId> Cluster::NewWorkers(const JobRecord& record, std::size_t count) const {
  std::uint64_t ordinal = 0;
  for (const MemberRecord& member : record.members) {
    ordinal = std::max(ordinal, OrdinalOf(record.id, member.worker) + 1);
  }
  std::vector<WorkerId> workers;
  for (; workers.size() < count; ++ordinal) {
    const WorkerId worker = WorkerOf(record.id, ordinal);
    if (!routes_.contains(worker) && !membership_.IsStray(worker)) workers.push_back(worker);
  }
  return workers;
}

std::string Cluster::WaitReason(const JobSettings& settings) const {
  return "needs " + DeviceCount(settings.workers_min, settings.device) + "; " +
         std::to_string(membership_.Free(settings.device).size()) + " free";
}

bool Cluster::TryStart(JobController& job, Turn turn) {
  const JobSettings& settings = job.record().settings;
  std::vector<MemberRecord> members = membership_.Free(settings.device);
  if (members.size() < settings.workers_min) {
    job.ExplainWait(WaitReason(settings), turn);
    return false;
  }
  members.resize(std::min<std::size_t>(members.size(), settings.workers_max));
  const std::vector<WorkerId> workers = NewWorkers(job.record(), members.size());
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    members[rank].worker = workers[rank];
    routes_[workers[rank]] = job.record().id;
    membership_.Hold(members[rank], job.record().id, job.record().name);
  }
  job.Start(std::move(members), turn);
  return true;
}

void Cluster::Retire() {
  std::erase_if(jobs_, [this](const auto& entry) {
    if (!entry.second->Done()) return false;
    for (const MemberRecord& member : entry.second->record().members) {
      membership_.Release(member.worker);
      routes_.erase(member.worker);
    }
    return true;
  });
}

void Cluster::PlanWake(Turn turn) {
  std::optional<Instant> next;
  for (const auto& [id, job] : jobs_) {
    const std::optional<Instant> due = job->Deadline();
    if (due && (!next || *due < *next)) next = due;
  }
  if (!next || (wake_ && *wake_ <= *next)) return;
  wake_ = next;
  turn.actions.push_back(WakeAt{*next});
}

}  // namespace tactus::job
