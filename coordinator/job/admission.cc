#include "coordinator/job/admission.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "coordinator/job/arrays.h"
#include "coordinator/job/wait_reason.h"
#include "protocol/arrays.h"

namespace tactus::job {
namespace {

HeldDevice Held(const MemberRecord& member, const Membership& membership) {
  HeldDevice device{.worker = member.worker};
  const auto found = membership.nodes().find(member.node);
  if (found == membership.nodes().end()) return device;
  const Node& node = found->second;
  const auto at = std::ranges::find(node.devices, member.device, &DeviceRecord::name);
  const bool there = at != node.devices.end();
  if (there) device.kind = at->kind;
  device.traits = &node.traits;
  device.usable = node.connected && !node.cordoned && node.leaving.empty() && node.strays.empty() &&
                  !(there && !at->fault.empty());
  return device;
}

// After a restart, a member that is not back holds nothing yet, and its device may be another's.
std::vector<HeldDevice> HeldBy(const std::vector<MemberRecord>& members,
                               const Membership& membership) {
  std::vector<HeldDevice> devices;
  for (const MemberRecord& member : members) {
    const std::vector<Holder> holders = membership.HoldersOf(member.node, member.device);
    if (std::ranges::find(holders, member.worker, &Holder::worker) == holders.end()) continue;
    devices.push_back(Held(member, membership));
    // Of an array one after the other leaves where room is made.
    if (holders.front().worker != member.worker) devices.back().usable = false;
    for (const Holder& holder : holders) {
      if (holder.worker != member.worker) devices.back().others.push_back(holder.job);
    }
  }
  return devices;
}

GroupedJob Grouped(const JobController& job, const Membership& membership, Instant now) {
  const JobRecord& record = job.record();
  const std::optional<Instant> steady = job.SteadyFrom();
  const std::optional<Instant> grows = job.GrowsFrom();
  std::vector<HeldDevice> devices = HeldBy(job.Keeps(), membership);
  for (HeldDevice& device : devices) {
    device.joining = std::ranges::find(record.joiners, device.worker, &MemberRecord::worker) !=
                     record.joiners.end();
  }
  return {.job = record.id,
          .settings = &record.settings,
          .devices = std::move(devices),
          .given_back = HeldBy(job.GivesBack(), membership),
          .leaving = !job.Movable() && record.state != JobState::kRunning,
          .movable = job.Movable(),
          .steady = job.Movable() && steady && now >= *steady,
          .shrinks = job.Shrinks(),
          .in_place = job.GrowsInPlace(),
          .grows = grows && now >= *grows};
}

}  // namespace

void Admission::File(JobController& job) {
  const JobRecord& record = job.record();
  Drop(record.id);
  if (const std::optional<Instant> until = job.RestsUntil()) {
    resting_[{*until, record.id}] = &job;
  } else if (record.state == JobState::kQueued) {
    line_.Put(record.id, record.settings);
    waiting_[record.id] = &job;
  } else if (record.state != JobState::kPaused) {
    active_[record.id] = &job;
  }
}

void Admission::Drop(JobId job) {
  line_.Remove(job);
  waiting_.erase(job);
  active_.erase(job);
  std::erase_if(resting_, [job](const auto& rest) { return rest.first.second == job; });
}

// Those whose rest is over stand in line, wherever their priority and age put them.
void Admission::Wake(Instant now) {
  while (!resting_.empty() && resting_.begin()->first.first <= now) {
    JobController* const job = resting_.begin()->second;
    resting_.erase(resting_.begin());
    line_.Put(job->record().id, job->record().settings);
    waiting_[job->record().id] = job;
  }
}

std::optional<Instant> Admission::Due() const {
  if (resting_.empty()) return due_;
  const Instant rested = resting_.begin()->first.first;
  return std::min(due_.value_or(rested), rested);
}

std::vector<JobController*> Admission::FileActive() {
  std::vector<JobController*> moved;
  for (const auto& [id, job] : active_) {
    const JobState state = job->record().state;
    if (state == JobState::kQueued || state == JobState::kPaused) moved.push_back(job);
  }
  for (JobController* job : moved) File(*job);
  return moved;
}

bool Admission::ComesFirst(const JobRecord& record) const {
  const std::optional<JobId> first = line_.First();
  return !first ||
         ComesBefore(record.settings, record.id, waiting_.at(*first)->record().settings, *first);
}

std::optional<Schedule> Admission::MakeSchedule(const Membership& membership, Instant now) {
  due_.reset();
  Wake(now);
  if (waiting_.empty() && (active_.empty() || !membership.AnyFree())) return std::nullopt;
  return job::MakeSchedule(View(membership, now));
}

// Of the array's devices each as often as jobs may still enter there, those with the fewest first.
std::vector<MemberRecord> Admission::SeatsOf(const std::string& array,
                                             const Membership& membership) const {
  std::multimap<std::size_t, MemberRecord> by_jobs;
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& [id, job] : active_) {
    const JobRecord& record = job->record();
    const bool begun = record.state == JobState::kStarting || record.state == JobState::kRunning;
    if (!begun || record.members.size() != 1) continue;
    const MemberRecord& member = record.members.front();
    if (member.array != array) continue;
    const std::size_t jobs = membership.HoldersOf(member.node, member.device).size();
    const auto seat = membership.Seat(member.node, member.device);
    if (!seat || seat->place.emulated_speed > 0 || !seat->traits->arrays ||
        !seen.insert({member.node, member.device}).second)
      continue;
    if (!membership.MayHold(member)) continue;
    const std::size_t most =
        std::min(protocol::kArrayJobsMax, membership.RoomFor(member.node, member.device));
    for (std::size_t more = jobs; more < most; ++more) by_jobs.insert({more, seat->place});
  }
  std::vector<MemberRecord> seats;
  for (const auto& [jobs, place] : by_jobs) seats.push_back(place);
  return seats;
}

std::vector<Schedule::Grant> Admission::Boarding(const Membership& membership) const {
  std::vector<Schedule::Grant> grants;
  const std::vector<JobId> front = line_.Front(kWaitingLookedAt);
  const auto array_of = [&](JobId id) { return ArrayOf(waiting_.at(id)->record()); };
  if (std::ranges::all_of(front, [&](JobId id) { return array_of(id).empty(); })) return grants;
  std::vector<FreeDevice> free = membership.Free();
  std::map<std::string, std::vector<MemberRecord>> seats;
  for (const JobId id : front) {
    const JobSettings& settings = waiting_.at(id)->record().settings;
    const auto accepted = [&](DeviceKind kind, const NodeTraits& traits) {
      return Accepts(settings, kind, traits, membership.Standard());
    };
    if (aside_.contains(line_.FirstAlike(id))) continue;
    const auto fits = [&](const FreeDevice& one) { return accepted(one.kind, *one.traits); };
    if (std::cmp_greater_equal(std::ranges::count_if(free, fits), settings.workers_min)) {
      for (std::uint32_t taken = 0; taken < settings.workers_min; ++taken) {
        free.erase(std::ranges::find_if(free, fits));
      }
      continue;
    }
    const std::string array = array_of(id);
    if (array.empty()) return grants;
    const auto [of_array, fresh] = seats.try_emplace(array);
    if (fresh) of_array->second = SeatsOf(array, membership);
    const auto seat = std::ranges::find_if(of_array->second, [&](const MemberRecord& place) {
      return accepted(place.kind, membership.nodes().at(place.node).traits);
    });
    if (seat == of_array->second.end()) return grants;
    grants.push_back({.job = id, .members = {*seat}});
    of_array->second.erase(seat);
  }
  return grants;
}

ScheduleView Admission::View(const Membership& membership, Instant now) {
  ScheduleView view{.free = membership.Free(), .standard = membership.Standard()};
  if (now - head_since_ >= JobDeadlines{}.lend) view.patient = head_;
  for (const auto& [id, job] : active_) view.groups.push_back(Grouped(*job, membership, now));
  view.waiting = Servable(view, now - joined_ >= JobDeadlines{}.lend);
  return view;
}

// A job for which all devices that are there would not do holds nobody up, once nodes have had the
// time to come back.
std::vector<WaitingJob> Admission::Servable(const ScheduleView& view, bool settled) {
  // What makes two jobs ask for the same devices, whatever their number: counting devices is what
  // costs here, and thousands of jobs have few requirements.
  using Requirement =
      std::tuple<DeviceKind, std::map<std::string, std::string>, std::vector<std::string>>;
  std::map<Requirement, std::size_t> attainable;
  const auto attainable_to = [&](const JobSettings& settings) {
    const auto [known, fresh] = attainable.try_emplace(
        Requirement{settings.device, settings.selector, settings.tolerations});
    if (fresh) known->second = Attainable(view, settings);
    return known->second;
  };
  aside_.clear();
  const auto servable = [&](JobId first) {
    const JobSettings& settings = waiting_.at(first)->record().settings;
    const bool would_do = !settled || attainable_to(settings) >= settings.workers_min;
    if (!would_do) aside_.insert(first);
    return would_do;
  };
  std::vector<WaitingJob> jobs;
  for (const JobId id : line_.Front(kWaitingLookedAt, servable)) {
    jobs.push_back({.job = id, .settings = &waiting_.at(id)->record().settings});
  }
  return jobs;
}

void Admission::Conclude(const Schedule& schedule, const Membership& membership, Turn turn) {
  ExplainWaits(schedule.head, membership, turn);
  if (schedule.head != head_) head_since_ = turn.now;
  head_ = schedule.head;
  PlanNext(schedule.awaits_steady, turn.now);
}

void Admission::ExplainWaits(JobId head, const Membership& membership, Turn turn) {
  std::map<JobId, std::string> reasons;  // by the first job of a need
  for (const JobId id : line_.Front(kWaitingLookedAt)) {
    JobController& job = *waiting_.at(id);
    const JobId alike = line_.FirstAlike(id);
    if (id != head && !aside_.contains(alike)) {
      job.ExplainWait(kBehindOthers, turn);
      continue;
    }
    std::string& reason = reasons[alike];
    if (reason.empty()) reason = WaitReason(job.record().settings, membership);
    job.ExplainWait(reason, turn);
  }
}

// Only what time alone changes: whatever else does comes with an event, after which all is looked
// at anyway.
void Admission::PlanNext(bool awaits_steady, Instant now) {
  const auto look_again = [&](Instant due) {
    if (due > now) due_ = std::min(due_.value_or(due), due);
  };
  if (head_.value != 0 && waiting_.size() > 1) look_again(head_since_ + JobDeadlines{}.lend);
  if (!waiting_.empty()) look_again(joined_ + JobDeadlines{}.lend);
  if (!awaits_steady) return;
  for (const auto& [id, job] : active_) {
    const std::optional<Instant> steady = job->SteadyFrom();
    if (steady) look_again(*steady);
    const std::optional<Instant> grows = job->GrowsFrom();
    if (grows) look_again(*grows);
  }
}

}  // namespace tactus::job
