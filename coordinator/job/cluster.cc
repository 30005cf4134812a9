#include "coordinator/job/cluster.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "coordinator/job/arrays.h"
#include "coordinator/job/links.h"
#include "coordinator/job/transport_choice.h"
#include "coordinator/job/wait_reason.h"
#include "coordinator/job/worker_ids.h"
#include "policies/axis_policy.h"
#include "policies/catalogue.h"
#include "policies/planner.h"

namespace tactus::job {
namespace {

std::unique_ptr<policies::PlanPolicy> PolicyOf(const JobSettings& settings) {
  // Where a policy is unknown the job is rejected, but a controller has to have one to say so.
  const bool known = policies::UnknownPolicies(settings.adapt).empty();
  return std::make_unique<policies::Planner>(known ? settings.adapt : policies::PlannerOptions{});
}

// What a worker says frees no device: that it is gone is said apart.
bool Frees(const Event& event) { return !std::holds_alternative<WorkerSaid>(event); }

}  // namespace

Cluster::Cluster(WallTime wall_now_minus_now) : wall_offset_(wall_now_minus_now) {}

Actions Cluster::Restore(JobRecord record, Instant now) {
  Actions actions;
  if (IsFinal(record.state) || jobs_.contains(record.id)) return actions;
  const Turn turn{now, actions};
  // Before it is taken up: it may be over at once, with exits of its workers still to come.
  if (record.state == JobState::kRunning || record.state == JobState::kStopping ||
      record.state == JobState::kSuspending) {
    for (const MemberRecord& member : record.members) {
      routes_[member.worker] = {.job = record.id, .node = member.node};
    }
  }
  const auto memory = memories_.extract(record.id);
  JobController& job = Add(std::move(record));
  if (!RejectUnknownPolicy(job, turn)) job.Restore(memory ? memory.mapped() : "", turn);
  admission_.File(job);
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

bool Cluster::RunsElsewhere(WorkerId worker, const std::string& node) const {
  const auto route = routes_.find(worker);
  if (route != routes_.end()) return route->second.node != node;
  const auto known = membership_.nodes().find(node);
  const bool here = known != membership_.nodes().end() && known->second.strays.contains(worker);
  return !here && membership_.IsStray(worker);
}

std::string Cluster::JobNameOf(WorkerId worker) const {
  const auto route = routes_.find(worker);
  const JobRecord* const record = route == routes_.end() ? nullptr : Find(route->second.job);
  return record == nullptr ? "" : record->name;
}

std::string Cluster::WhyNotReverted(JobId job, const policies::Decision& decision) const {
  return jobs_.at(job)->WhyNotReverted(decision);
}

std::optional<policies::MeasuredGroup> Cluster::Measured(JobId job) const {
  return jobs_.at(job)->Measured();
}

// Members of before a restart hold their devices only once their node is back.
std::string Cluster::JobOn(const std::string& node) const {
  const Holder* const holder = membership_.AnyHolderOn(node);
  if (holder != nullptr) return holder->job_name;
  for (const auto& [id, job] : admission_.active()) {
    for (const MemberRecord& member : job->record().members) {
      if (member.node == node && job->HasLive(member.worker)) return job->record().name;
    }
  }
  return "";
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
  JobController& job = Add(event.record);
  const JobRecord& record = job.record();
  const bool first = admission_.ComesFirst(record);
  job.Submit(first ? WaitReason(record.settings, membership_) : kBehindOthers, turn);
  RejectUnknownPolicy(job, turn);
  admission_.File(job);
}

template <typename Change>
void Cluster::Handle(const Change& event, Turn turn) {
  JobController* const job = JobOf(event.job);
  if (job == nullptr) return;
  job->Change(event, turn);
  FileWaiting(*job);
}

void Cluster::Handle(const JobUpdated& event, Turn turn) {
  JobController* const job = JobOf(event.job);
  if (job == nullptr) return;
  const bool same = event.settings.adapt == job->record().settings.adapt;
  job->Update(event, same ? nullptr : PolicyOf(event.settings), turn);
  FileWaiting(*job);
}

void Cluster::Handle(const NodeMarked& event, Turn turn) {
  membership_.Mark(event.node);
  turn.actions.push_back(PersistNode{event.node});
}

void Cluster::Handle(const NodeDeleted& event, Turn turn) {
  const auto found = membership_.nodes().find(event.node);
  if (found == membership_.nodes().end() || found->second.connected) return;
  if (!JobOn(event.node).empty()) return;
  membership_.Forget(event.node);
  turn.actions.push_back(PersistNode{{.name = event.node}});
  priors_.Drop(LinkKey(event.node), turn.actions);
}

// Jobs that hold such a device are left alone: what breaks them is seen where they break.
void Cluster::Handle(const DeviceFaultsChanged& event, Turn) {
  membership_.SetFaults(event.node, event.faults);
}

void Cluster::Handle(const LinkProbed& event, Turn turn) {
  if (membership_.nodes().contains(event.to)) {
    NoteProbe(event.to, event.bytes_per_second, priors_, turn.actions);
  }
  const auto found = probed_.find(event.to);
  if (found == probed_.end()) return;
  const JobController* const job = JobOf(found->second.job);
  const bool again = job != nullptr && job->Loads() && ++found->second.times <= kProbes &&
                     !HasOthers(event.from, found->second.job) &&
                     !HasOthers(event.to, found->second.job);
  if (!again) {
    probed_.erase(found);
  } else {
    turn.actions.push_back(ProbeLink{.from = event.from, .to = event.to});
  }
}

void Cluster::Handle(const NodeJoined& event, Turn turn) {
  membership_.Join(event.node, event.devices, event.traits, event.incarnation);
  membership_.SetLeaving(event.node, event.leave ? event.leave->reason : "");
  // That they are to stop may not have reached them: they are told again.
  if (!event.same_incarnation) membership_.SetStrays(event.node, {});
  admission_.NodeJoined(turn.now);
  for (const auto& [id, job] : admission_.active()) {
    job->OnNodeJoined(event, turn);
    ReleaseGone(*job, event.node);
    HoldReturned(*job, event);
  }
  SetStrays(event, turn);
  if (event.leave) Handle(NodeLeaving{.node = event.node, .leave = *event.leave}, turn);
}

// After a restart: members that are back, or whose exit comes, sit on their devices. Not before,
// because the record of a job may name a device that its worker had left and that another job was
// given since.
void Cluster::HoldReturned(const JobController& job, const NodeJoined& event) {
  for (const MemberRecord& member : job.record().members) {
    const bool back = member.node == event.node && job.HasLive(member.worker) &&
                      (event.Runs(member.worker) || event.HasToTellOf(member.worker));
    if (back && !membership_.Holds(member.worker) && membership_.MayHold(member)) {
      membership_.Hold(member, job.record().id, job.record().name);
    }
  }
}

// Who runs on the node for no job is told to stop.
void Cluster::SetStrays(const NodeJoined& event, Turn turn) {
  std::set<WorkerId> strays;
  for (const WorkerId worker : event.running_workers) {
    const JobController* job = JobOf(worker);
    // A former member, too: that it is to end may not have reached it.
    if (job == nullptr || !job->HasMember(worker)) strays.insert(worker);
  }
  for (const WorkerId worker : membership_.SetStrays(event.node, strays)) {
    turn.actions.push_back(
        StopWorker{.node = event.node, .worker = worker, .grace = JobDeadlines{}.grace});
  }
}

void Cluster::Handle(const NodeUnreachable& event, Turn turn) {
  membership_.Miss(event.node);
  for (const auto& [id, job] : admission_.active()) {
    job->OnNodeUnreachable(event, turn);
    ReleaseGone(*job, event.node);
  }
}

void Cluster::Handle(const NodeLost& event, Turn turn) {
  membership_.Lose(event.node);
  for (const auto& [id, job] : admission_.active()) {
    job->OnNodeLost(event, turn);
    ReleaseGone(*job, event.node);
  }
}

void Cluster::Handle(const NodeLeaving& event, Turn turn) {
  membership_.SetLeaving(event.node, event.leave.reason);
  for (const auto& [id, job] : admission_.active()) job->OnNodeLeaving(event, turn);
}

void Cluster::ReleaseGone(const JobController& job, const std::string& node) {
  for (const WorkerId worker : membership_.HoldersOn(node, job.record().id)) {
    if (!job.HasLive(worker)) membership_.Release(worker);
  }
}

void Cluster::Handle(const WorkerSaid& event, Turn turn) {
  JobController* const job = JobOf(event.worker);
  if (job == nullptr) return;
  if (std::holds_alternative<DifferedMessage>(event.message)) return Strike(*job, event, turn);
  job->OnWorkerSaid(event.worker, event.message, turn);
  const auto* const report = std::get_if<ReportMessage>(&event.message);
  const bool room =
      report != nullptr && membership_.NoteMemory(event.worker, report->memory_used_bytes);
  // The last word may come after the exit: of an agent that restarted.
  const JobState state = job->record().state;
  if (!room && state != JobState::kQueued && state != JobState::kPaused) return;
  FileActive();
  Admit(turn);
}

// Only where most members say who was wrong, and the job takes their word.
void Cluster::Strike(JobController& job, const WorkerSaid& event, Turn turn) {
  const auto& message = std::get<DifferedMessage>(event.message);
  const std::vector<MemberRecord> members = job.record().members;  // a copy, for who is left out
  const std::uint32_t differences = job.record().differences;
  job.OnWorkerSaid(event.worker, event.message, turn);
  if (job.record().differences == differences || !message.majority) return;
  std::vector<MemberRecord> again;
  for (const std::uint32_t rank : std::set(message.wrong.begin(), message.wrong.end())) {
    const MemberRecord& member = members[rank];
    if (membership_.Strike(member.node, member.device)) again.push_back(member);
  }
  job.LeaveOut(again, "held wrong parameters again, and its device is set aside", turn);
}

void Cluster::Handle(const WorkerExited& event, Turn turn) {
  membership_.RemoveStray(event.worker);
  if (JobController* job = JobOf(event.worker)) {
    job->OnWorkerExited(event, turn);
    membership_.Release(event.worker);
  }
}

void Cluster::Handle(const ArtifactComing& event, Turn turn) {
  JobController* const job = JobOf(event.job);
  if (job == nullptr) return;
  if (event.worker == WorkerId{}) return job->OnUpload("", turn);
  const auto& members = job->record().members;
  const auto whose = std::ranges::find(members, event.worker, &MemberRecord::worker);
  if (whose == members.end()) return;
  // A copy: who is lost has no members any more.
  const std::string node = whose->node;
  for (const auto& [id, one] : admission_.active()) one->OnUpload(node, turn);
}

void Cluster::Handle(const ArtifactStored& event, Turn turn) {
  if (JobController* job = JobOf(event.job)) job->OnArtifactStored(event, turn);
}

void Cluster::Handle(const Ticked&, Turn turn) {
  wake_.reset();
  for (const auto& [id, job] : admission_.active()) job->Tick(turn);
}

JobController* Cluster::JobOf(JobId job) {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : found->second.get();
}

JobController* Cluster::JobOf(WorkerId worker) {
  const auto route = routes_.find(worker);
  return route == routes_.end() ? nullptr : JobOf(route->second.job);
}

JobController& Cluster::Add(JobRecord record) {
  const JobId id = record.id;
  auto policy = PolicyOf(record.settings);
  return *(jobs_[id] = std::make_unique<JobController>(std::move(record), std::move(policy),
                                                       priors_, wall_offset_));
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

// An active one may have given its last group up at once, as nobody of it was heard: FileActive
// sees to it, and to its devices.
void Cluster::FileWaiting(JobController& job) {
  if (!admission_.active().contains(job.record().id)) admission_.File(job);
}

void Cluster::FileActive() {
  // Its last group is gone; the next one has other workers. Those that were given up unheard have
  // not said that they left.
  for (const JobController* job : admission_.FileActive()) Forget(job->record().id);
}

// The job's workers.
void Cluster::Forget(JobId job) {
  membership_.Release(job);
  std::erase_if(routes_, [job](const auto& route) { return route.second.job == job; });
}

void Cluster::Admit(Turn turn) {
  if (!membership_.marked().empty()) Drain(turn);
  Board(turn);
  const std::optional<Schedule> schedule = admission_.MakeSchedule(membership_, turn.now);
  if (!schedule) return;
  for (const Schedule::Displaced& displaced : schedule->displaced) {
    jobs_.at(displaced.job)->Suspend(false, displaced.reason, turn);
  }
  for (const Schedule::Reduction& reduction : schedule->reductions) {
    jobs_.at(reduction.job)->GiveBack(reduction.workers, reduction.reason, turn);
  }
  for (const Schedule::Grant& growth : schedule->growths) {
    jobs_.at(growth.job)->Grow(Employ(growth), turn);
  }
  for (const Schedule::Grant& grant : schedule->starts) Start(grant, turn);
  FileActive();
  Board(turn);
  admission_.Conclude(*schedule, membership_, turn);
}

// Those of an array that has begun need no device of their own; before the queue is looked at, so
// that nobody makes room for them, and behind it, as the first of an array may have been started.
void Cluster::Board(Turn turn) {
  for (const Schedule::Grant& grant : admission_.Boarding(membership_)) Start(grant, turn);
}

// Jobs with workers on a node that is drained go on without them, or elsewhere.
void Cluster::Drain(Turn turn) {
  for (const auto& [id, job] : admission_.active()) {
    if (!job->Movable()) continue;
    std::vector<WorkerId> workers;
    std::string node;  // the first
    for (const MemberRecord& member : job->Keeps()) {
      if (!membership_.MarkOf(member.node).draining || !job->HasLive(member.worker)) continue;
      workers.push_back(member.worker);
      if (node.empty()) node = member.node;
    }
    if (!workers.empty()) job->GiveBack(workers, "node " + node + " is drained", turn);
  }
  FileActive();
}

// Ids above those of the job's earlier workers, which stay on its record.
std::vector<WorkerId> Cluster::NewWorkers(const JobRecord& record, std::size_t count) const {
  std::vector<WorkerId> workers;
  for (std::uint64_t ordinal = NextOrdinal(record); workers.size() < count; ++ordinal) {
    const WorkerId worker = WorkerOf(record.id, ordinal);
    if (!routes_.contains(worker) && !membership_.IsStray(worker)) workers.push_back(worker);
  }
  return workers;
}

void Cluster::Start(const Schedule::Grant& grant, Turn turn) {
  JobController& job = *jobs_.at(grant.job);
  job.Start(Employ(grant), turn);
  admission_.File(job);
  ProbeLinks(job.record(), turn);
}

// While the workers load, so that the first plan goes by what is found, if it is there in time. The
// rounds of other jobs would take longer for it, and their members measure these links themselves.
void Cluster::ProbeLinks(const JobRecord& record, Turn turn) {
  const std::vector<std::string> versions(record.members.size());  // not known yet
  const TransportRecord transport = ChooseTransport({.members = record.members,
                                                     .nccl_versions = versions,
                                                     .encrypted = record.settings.encrypted});
  if (transport.kind == TransportKind::kNccl) return;
  for (ProbeLink& probe : UnknownLinks(record, priors_)) {
    if (HasOthers(probe.from, record.id) || HasOthers(probe.to, record.id)) continue;
    const bool first = probed_.try_emplace(probe.to, Probing{.job = record.id}).second;
    if (first) turn.actions.push_back(std::move(probe));
  }
}

bool Cluster::HasOthers(const std::string& node, JobId job) const {
  const auto found = membership_.nodes().find(node);
  if (found == membership_.nodes().end()) return false;
  return std::ranges::any_of(found->second.devices, [&](const DeviceRecord& device) {
    return std::ranges::any_of(membership_.HoldersOf(node, device.name),
                               [job](const Holder& holder) { return holder.job != job; });
  });
}

// New workers of the job sit on the devices.
std::vector<MemberRecord> Cluster::Employ(const Schedule::Grant& grant) {
  const JobRecord& record = jobs_.at(grant.job)->record();
  std::vector<MemberRecord> members = grant.members;
  const std::vector<WorkerId> workers = NewWorkers(record, members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    members[i].worker = workers[i];
    members[i].array = ArrayOf(record);
    routes_[workers[i]] = {.job = record.id, .node = members[i].node};
    membership_.Hold(members[i], record.id, record.name);
  }
  return members;
}

void Cluster::Retire() {
  std::vector<JobId> done;
  for (const auto& [id, job] : admission_.active()) {
    if (job->Done()) done.push_back(id);
  }
  for (const JobId id : done) {
    Forget(id);
    admission_.Drop(id);
    jobs_.erase(id);
  }
}

void Cluster::PlanWake(Turn turn) {
  std::optional<Instant> next = admission_.Due();
  for (const auto& [id, job] : admission_.active()) {
    const std::optional<Instant> due = job->Deadline();
    if (due && (!next || *due < *next)) next = due;
  }
  if (!next) return;
  // One that stood still may be past when it runs again.
  next = std::max(*next, turn.now);
  if (wake_ && *wake_ <= *next) return;
  wake_ = next;
  turn.actions.push_back(WakeAt{*next});
}

}  // namespace tactus::job
