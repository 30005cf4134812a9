#include "coordinator/job/cluster.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "coordinator/job/wording.h"
#include "policies/axis_policy.h"
#include "policies/catalogue.h"
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

// What a worker says frees no device: that it is gone is said apart.
bool Frees(const Event& event) { return !std::holds_alternative<WorkerSaid>(event); }

}  // namespace

Cluster::Cluster(WallTime wall_now_minus_now) : wall_offset_(wall_now_minus_now) {}

Actions Cluster::Restore(JobRecord record, Instant now) {
  Actions actions;
  if (IsFinal(record.state) || jobs_.contains(record.id)) return actions;
  const Turn turn{now, actions};
  JobController& job = Add(std::move(record));
  if (!RejectUnknownPolicy(job, turn)) job.Restore(turn);
  const JobState state = job.record().state;
  if (state == JobState::kRunning || state == JobState::kStopping ||
      state == JobState::kSuspending) {
    for (const MemberRecord& member : job.record().members) {
      routes_[member.worker] = job.record().id;
    }
  }
  File(job);
  Retire();
  PlanWake(turn);
  return actions;
}

Actions Cluster::Step(const Event& event, Instant now) {
  Actions actions;
  const Turn turn{now, actions};
  std::visit([&](const auto& one) { Handle(one, turn); }, event);
  if (Frees(event)) {
    FileActive();
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

std::optional<JobId> Cluster::QueueHead() const { return waiting_.First(); }

void Cluster::Handle(const JobSubmitted& event, Turn turn) {
  if (jobs_.contains(event.record.id)) return;
  JobController& job = Add(event.record);
  const JobRecord& record = job.record();
  const std::optional<JobId> head = waiting_.First();
  const bool first =
      !head || ComesBefore(record.settings, record.id, jobs_.at(*head)->record().settings, *head);
  job.Submit(first ? WaitReason(record.settings) : kBehindOthers, turn);
  RejectUnknownPolicy(job, turn);
  File(job);
}

void Cluster::Handle(const JobCancelled& event, Turn turn) {
  const auto found = jobs_.find(event.job);
  if (found == jobs_.end()) return;
  found->second->Cancel(event, turn);
  File(*found->second);
}

void Cluster::Handle(const JobUpdated& event, Turn turn) {
  const auto found = jobs_.find(event.job);
  if (found == jobs_.end()) return;
  JobController& job = *found->second;
  const bool same = event.settings.adapt == job.record().settings.adapt;
  job.Update(event, same ? nullptr : PolicyOf(event.settings), turn);
  File(job);
}

void Cluster::Handle(const JobPaused& event, Turn turn) {
  const auto found = jobs_.find(event.job);
  if (found == jobs_.end()) return;
  found->second->Pause(turn);
  File(*found->second);
}

void Cluster::Handle(const JobResumed& event, Turn turn) {
  const auto found = jobs_.find(event.job);
  if (found == jobs_.end()) return;
  found->second->Resume(turn);
  File(*found->second);
}

void Cluster::Handle(const NodeMarked& event, Turn turn) {
  membership_.Mark(event.node);
  turn.actions.push_back(PersistNode{event.node});
}

// Jobs that hold such a device are left alone: what breaks them is seen where they break.
void Cluster::Handle(const DeviceFaultsChanged& event, Turn) {
  membership_.SetFaults(event.node, event.faults);
}

void Cluster::Handle(const NodeJoined& event, Turn turn) {
  membership_.Join(event.node, event.devices, event.traits);
  joined_ = turn.now;
  for (auto& [id, job] : active_) {
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
  for (auto& [id, job] : active_) {
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
  for (auto& [id, job] : active_) job->Tick(turn);
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

// Puts the job where its state belongs.
void Cluster::File(JobController& job) {
  const JobRecord& record = job.record();
  waiting_.Remove(record.id);
  active_.erase(record.id);
  if (record.state == JobState::kQueued) {
    waiting_.Put(record.id, record.settings);
  } else if (record.state != JobState::kPaused) {
    active_[record.id] = &job;
  }
}

void Cluster::FileActive() {
  std::vector<JobController*> moved;
  for (const auto& [id, job] : active_) {
    const JobState state = job->record().state;
    if (state == JobState::kQueued || state == JobState::kPaused) moved.push_back(job);
  }
  for (JobController* job : moved) {
    File(*job);
    // Its last group is gone; the next one has other workers.
    for (const MemberRecord& member : job->record().members) routes_.erase(member.worker);
  }
}

void Cluster::Admit(Turn turn) {
  reschedule_.reset();
  if (!membership_.marked().empty()) Drain(turn);
  if (waiting_.empty() && !membership_.AnyFree()) return;
  if (waiting_.empty() && active_.empty()) return;
  const Schedule schedule = MakeSchedule(View(turn.now));
  for (const Schedule::Displaced& displaced : schedule.displaced) {
    jobs_.at(displaced.job)->Suspend(false, displaced.reason, turn);
  }
  for (const Schedule::Grant& grant : schedule.starts) Start(grant, turn);
  FileActive();
  ExplainWaits(schedule, turn);
  PlanReschedule(schedule, turn.now);
}

void Cluster::PlanReschedule(const Schedule& schedule, Instant now) {
  const auto look_again = [&](Instant due) {
    if (due > now) reschedule_ = std::min(reschedule_.value_or(due), due);
  };
  if (schedule.head != head_) head_since_ = now;
  head_ = schedule.head;
  if (head_.value != 0 && waiting_.size() > 1) look_again(head_since_ + JobDeadlines{}.lend);
  if (!waiting_.empty()) look_again(joined_ + JobDeadlines{}.lend);
  if (!schedule.awaits_steady) return;
  for (const auto& [id, job] : active_) {
    const std::optional<Instant> since = job->TrainingSince();
    if (since) look_again(*since + JobDeadlines{}.resize);
  }
}

// Jobs with workers on a node that is drained go on elsewhere.
void Cluster::Drain(Turn turn) {
  for (const auto& [id, job] : active_) {
    if (!job->Movable()) continue;
    for (const MemberRecord& member : job->record().members) {
      if (!membership_.MarkOf(member.node).draining || !job->HasLive(member.worker)) continue;
      job->Suspend(false, "node " + member.node + " is drained", turn);
      break;
    }
  }
  FileActive();
}

// A job for which all devices that are there would not do holds nobody up, once nodes have had the
// time to come back.
ScheduleView Cluster::View(Instant now) {
  ScheduleView view{.free = membership_.Free(), .standard = membership_.Standard()};
  if (now - head_since_ >= JobDeadlines{}.lend) view.patient = head_;
  for (const auto& [id, job] : active_) view.groups.push_back(Grouped(*job, now));
  const bool settled = now - joined_ >= JobDeadlines{}.lend;
  aside_.clear();
  // What makes two jobs ask for the same devices, whatever their number.
  using Requirement =
      std::tuple<DeviceKind, std::map<std::string, std::string>, std::vector<std::string>>;
  std::map<Requirement, std::size_t> attainable;
  const auto attainable_to = [&](const JobSettings& settings) {
    const auto [known, fresh] = attainable.try_emplace(
        Requirement{settings.device, settings.selector, settings.tolerations});
    if (fresh) known->second = Attainable(view, settings);
    return known->second;
  };
  const auto servable = [&](JobId first) {
    const JobSettings& settings = jobs_.at(first)->record().settings;
    const bool would_do = !settled || attainable_to(settings) >= settings.workers_min;
    if (!would_do) aside_.insert(first);
    return would_do;
  };
  for (const JobId id : waiting_.Front(kWaitingLookedAt, servable)) {
    view.waiting.push_back({.job = id, .settings = &jobs_.at(id)->record().settings});
  }
  return view;
}

GroupedJob Cluster::Grouped(const JobController& job, Instant now) const {
  const JobRecord& record = job.record();
  const std::optional<Instant> since = job.TrainingSince();
  GroupedJob group{.job = record.id,
                   .settings = &record.settings,
                   .leaving = !job.Movable() && record.state != JobState::kRunning,
                   .movable = job.Movable(),
                   .steady = job.Movable() && since && now - *since >= JobDeadlines{}.resize};
  for (const MemberRecord& member : record.members) {
    const Holder* const holder = membership_.HolderOf(member.node, member.device);
    if (holder == nullptr || holder->worker != member.worker) continue;
    const auto found = membership_.nodes().find(member.node);
    HeldDevice device;
    if (found != membership_.nodes().end()) {
      const Node& node = found->second;
      const auto at = std::ranges::find(node.devices, member.device, &DeviceRecord::name);
      const bool there = at != node.devices.end();
      if (there) device.kind = at->kind;
      device.traits = &node.traits;
      device.usable =
          node.connected && !node.cordoned && node.strays.empty() && !(there && !at->fault.empty());
    }
    group.devices.push_back(device);
  }
  return group;
}

void Cluster::ExplainWaits(const Schedule& schedule, Turn turn) {
  std::map<JobId, std::string> reasons;  // by the first job of a need
  for (const JobId id : waiting_.Front(kWaitingLookedAt)) {
    JobController& job = *jobs_.at(id);
    const JobId alike = waiting_.FirstAlike(id);
    if (id != schedule.head && !aside_.contains(alike)) {
      job.ExplainWait(kBehindOthers, turn);
      continue;
    }
    std::string& reason = reasons[alike];
    if (reason.empty()) reason = WaitReason(job.record().settings);
    job.ExplainWait(reason, turn);
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
  std::size_t free = 0;
  for (const FreeDevice& device : membership_.Free()) {
    if (Accepts(settings, device.kind, *device.traits, membership_.Standard())) ++free;
  }
  std::size_t known = 0, cordoned = 0, at_fault = 0;
  for (const auto& [name, node] : membership_.nodes()) {
    for (const DeviceRecord& device : node.devices) {
      if (!Accepts(settings, device.kind, node.traits, membership_.Standard())) continue;
      ++known;
      if (node.cordoned) {
        ++cordoned;
      } else if (!device.fault.empty()) {
        ++at_fault;
      }
    }
  }
  std::string reason = "needs " + DeviceCount(settings.workers_min, settings.device) + "; " +
                       std::to_string(free) + " free";
  if (cordoned > 0) reason += ", " + std::to_string(cordoned) + " on cordoned nodes";
  if (at_fault > 0) reason += ", " + std::to_string(at_fault) + " at fault";
  if (known < settings.workers_min) {
    const bool picky = !settings.selector.empty() || !settings.tolerations.empty();
    reason += ", " + std::to_string(known) + (picky ? " known that fit its selector" : " known");
  }
  return reason;
}

void Cluster::Start(const Schedule::Grant& grant, Turn turn) {
  JobController& job = *jobs_.at(grant.job);
  std::vector<MemberRecord> members = grant.members;
  const std::vector<WorkerId> workers = NewWorkers(job.record(), members.size());
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    members[rank].worker = workers[rank];
    routes_[workers[rank]] = job.record().id;
    membership_.Hold(members[rank], job.record().id, job.record().name);
  }
  job.Start(std::move(members), turn);
  File(job);
}

void Cluster::Retire() {
  std::vector<JobId> done;
  for (const auto& [id, job] : active_) {
    if (job->Done()) done.push_back(id);
  }
  for (const JobId id : done) {
    for (const MemberRecord& member : jobs_.at(id)->record().members) {
      membership_.Release(member.worker);
      routes_.erase(member.worker);
    }
    active_.erase(id);
    jobs_.erase(id);
  }
}

void Cluster::PlanWake(Turn turn) {
  std::optional<Instant> next = reschedule_;
  for (const auto& [id, job] : active_) {
    const std::optional<Instant> due = job->Deadline();
    if (due && (!next || *due < *next)) next = due;
  }
  if (!next || (wake_ && *wake_ <= *next)) return;
  wake_ = next;
  turn.actions.push_back(WakeAt{*next});
}

}  // namespace tactus::job
