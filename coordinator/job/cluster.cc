#include "coordinator/job/cluster.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "coordinator/job/wording.h"
#include "policies/batch_policy.h"

namespace tactus::job {
namespace {

const char* const kBehindOthers = "waiting for earlier jobs in the queue";

std::unique_ptr<policies::BatchPolicy> PolicyOf(const JobSettings& settings) {
  const policies::BatchOptions options{.per_worker = settings.batch_per_worker,
                                       .batch_min = settings.batch_min,
                                       .batch_max = settings.batch_max};
  auto policy = policies::MakeBatchPolicy(settings.batch_policy, options);
  // The job is rejected, but a controller has to have one to say so.
  return policy ? std::move(policy) : policies::MakeBatchPolicy("fixed", options);
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
  for (const MemberRecord& member : record.members) {
    last_worker_ = std::max(last_worker_, member.worker.value);
  }
  JobController& job = Add(std::move(record));
  if (!RejectUnknownPolicy(job, turn)) job.Restore(turn);
  if (job.record().state == JobState::kRunning || job.record().state == JobState::kStopping) {
    for (const MemberRecord& member : job.record().members) {
      routes_[member.worker] = job.record().id;
      membership_.Hold(member, job.record().id, job.record().name);
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
  job.Submit(first ? "looking for devices" : kBehindOthers, turn);
  RejectUnknownPolicy(job, turn);
}

void Cluster::Handle(const JobCancelled& event, Turn turn) {
  const auto found = jobs_.find(event.job);
  if (found != jobs_.end()) found->second->Cancel(event, turn);
}

void Cluster::Handle(const NodeJoined& event, Turn turn) {
  for (const WorkerId worker : event.running_workers) {
    last_worker_ = std::max(last_worker_, worker.value);
  }
  membership_.Join(event.node, event.devices);
  for (auto& [id, job] : jobs_) {
    job->OnNodeJoined(event, turn);
    ReleaseGone(*job, event.node);
  }
  SetStrays(event, turn);
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
  const std::string& name = job.record().settings.batch_policy;
  const std::vector<std::string> known = policies::BatchPolicyNames();
  if (std::ranges::find(known, name) != known.end()) return false;
  job.Reject("this coordinator has no batch policy \"" + name + "\"", "adapt.batch.policy", turn);
  return true;
}

// The first job in the queue holds up those behind it, so that a large one gets its turn.
void Cluster::Admit(Turn turn) {
  for (auto& [id, job] : jobs_) {
    if (job->record().state == JobState::kQueued && !TryStart(*job, turn)) return;
  }
}

bool Cluster::TryStart(JobController& job, Turn turn) {
  const JobSettings& settings = job.record().settings;
  std::vector<MemberRecord> members = membership_.Free(settings.device);
  if (members.size() < settings.workers_min) {
    job.ExplainWait("needs " + DeviceCount(settings.workers_min, settings.device) + "; " +
                        std::to_string(members.size()) + " free",
                    turn);
    return false;
  }
  members.resize(std::min<std::size_t>(members.size(), settings.workers_max));
  const JobId id = job.record().id;
  last_worker_ =
      std::max(last_worker_, (id.value - std::min<std::uint64_t>(id.value, 1)) * kWorkerIdsPerJob);
  for (MemberRecord& member : members) {
    member.worker = WorkerId{++last_worker_};
    routes_[member.worker] = id;
    membership_.Hold(member, id, job.record().name);
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
