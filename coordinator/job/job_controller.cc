#include "coordinator/job/job_controller.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "base/check.h"
#include "coordinator/job/eta.h"
#include "coordinator/job/wording.h"

namespace tactus::job {
namespace {

constexpr double kStallSecondsMax = 30 * 86400.0;

WallTime WallAt(Instant now, WallTime offset) { return now.time_since_epoch().count() + offset; }

}  // namespace

JobController::JobController(JobRecord record, std::unique_ptr<policies::PlanPolicy> policy,
                             WallTime wall_offset, JobDeadlines deadlines)
    : wall_offset_(wall_offset),
      deadlines_(deadlines),
      record_(std::move(record)),
      steering_(std::move(policy), record_.newest_plan.version) {}

void JobController::Submit(const std::string& reason, Turn turn) {
  SetState(JobState::kQueued, reason);
  Announce(turn);
}

void JobController::Reject(const std::string& reason, const std::string& field, Turn turn) {
  Fail(reason, field, turn);
}

void JobController::ExplainWait(const std::string& reason, Turn turn) {
  TACTUS_CHECK(record_.state == JobState::kQueued);
  if (record_.state_reason == reason) return;
  record_.state_reason = reason;
  Announce(turn);
}

void JobController::Start(std::vector<MemberRecord> members, Turn turn) {
  TACTUS_CHECK(record_.state == JobState::kQueued && !members.empty());
  record_.members = std::move(members);
  record_.ending = {};
  record_.suspension.reset();
  record_.elapsed_before_seconds = record_.progress.elapsed_seconds;
  record_.group_start_time = 0;
  inquiry_ = {};
  tracker_.reset();
  training_since_.reset();
  Enlist(true);
  formation_.emplace(size());
  deadline_ = turn.now + deadlines_.start;
  SetState(JobState::kStarting, WorkerCount(size()) + " loading model and data");
  Announce(turn);
  const std::string checkpoint = record_.checkpoint ? record_.checkpoint->sha256 : "";
  for (const MemberRecord& member : record_.members) {
    turn.actions.push_back(StartWorker{.node = member.node,
                                       .worker = member.worker,
                                       .job = record_.id,
                                       .job_name = record_.name,
                                       .spec = record_.spec,
                                       .device = member.device,
                                       .checkpoint = checkpoint});
  }
}

void JobController::OnWorkerSaid(WorkerId worker, const FromWorker& message, Turn turn) {
  const std::optional<std::uint32_t> rank = RankOf(worker);
  if (!rank || IsFinal(record_.state)) return;
  std::visit([&](const auto& said) { On(*rank, said, turn); }, message);
}

void JobController::Tick(Turn turn) {
  if (!IsFinal(record_.state) && inquiry_.open() &&
      turn.now >= inquiry_.opened() + deadlines_.inquiry) {
    Conclude(turn);
  } else if (deadline_ && turn.now >= *deadline_) {
    OnDeadline(turn);
  }
}

bool JobController::HasLive(WorkerId worker) const {
  const std::optional<std::uint32_t> rank = RankOf(worker);
  return rank && !members_[*rank].gone;
}

bool JobController::Done() const {
  return IsFinal(record_.state) && std::ranges::all_of(members_, &Member::gone);
}

std::optional<Instant> JobController::Deadline() const {
  if (IsFinal(record_.state) || !inquiry_.open()) return deadline_;
  const Instant verdict = inquiry_.opened() + deadlines_.inquiry;
  return deadline_ ? std::min(*deadline_, verdict) : verdict;
}

void JobController::SetState(JobState state, std::string reason) {
  TACTUS_CHECK(!IsFinal(record_.state));
  record_.state = state;
  record_.state_reason = std::move(reason);
}

void JobController::Persist(Turn turn) {
  RefreshProgress(turn.now);
  ++record_.revision;
  record_.update_time = WallAt(turn.now, wall_offset_);
  if (IsFinal(record_.state)) record_.end_time = record_.update_time;
  persisted_ = turn.now;
  turn.actions.push_back(PersistJob{record_});
}

void JobController::Announce(Turn turn) {
  record_.announced = record_.revision + 1;
  Persist(turn);
  turn.actions.push_back(PublishJob{record_});
}

void JobController::RefreshProgress(Instant now) {
  if (!tracker_) return;
  Progress& progress = record_.progress;
  const double elapsed_so_far = progress.elapsed_seconds;
  progress = tracker_->progress();
  progress.eta_seconds.reset();
  progress.plan = steering_.adopted();
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    progress.workers[rank].batch_size = progress.plan.batch_sizes[rank];
  }
  // A record of an older version has only the start of its first and only group.
  const bool first = record_.suspensions == 0 && record_.group_start_time == 0;
  const WallTime since = first ? record_.start_time : record_.group_start_time;
  progress.elapsed_seconds = Secured() ? elapsed_so_far : record_.elapsed_before_seconds;
  if (since != 0 && !Secured()) {
    const Duration elapsed(WallAt(now, wall_offset_) - since);
    progress.elapsed_seconds += std::max(ToSeconds(elapsed), 0.0);
  }
  if (record_.state == JobState::kRunning) {
    progress.eta_seconds = ForeseeEnd(record_.settings, progress, tracker_->RoundSeconds());
  }
}

void JobController::Send(std::uint32_t rank, ToWorker message, Turn turn) {
  if (members_[rank].gone || !members_[rank].present) return;
  const MemberRecord& member = record_.members[rank];
  turn.actions.push_back(
      SendToWorker{.node = member.node, .worker = member.worker, .message = std::move(message)});
}

void JobController::SendToAll(const ToWorker& message, Turn turn) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) Send(rank, message, turn);
}

std::optional<std::uint32_t> JobController::RankOf(WorkerId worker) const {
  const auto found = ranks_.find(worker);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

void JobController::Enlist(bool present) {
  members_.assign(record_.members.size(), Member{.present = present});
  ranks_.clear();
  for (std::uint32_t rank = 0; rank < size(); ++rank) ranks_[record_.members[rank].worker] = rank;
  results_.emplace(size(), record_.ending);
}

void JobController::OnDeadline(Turn turn) {
  deadline_.reset();
  if (awaiting_return_) {
    OnRejoinDeadline(turn);
  } else if (record_.state == JobState::kStarting) {
    OnStartDeadline(turn);
  } else if (record_.state == JobState::kRunning) {
    OnStall(turn);
  } else if (IsFinal(record_.state) || Secured()) {
    StopWorkers(turn);
    LeaveIfGone(turn);
  } else if (results_->AllFinished()) {
    Fail("the result's file " + results_->MissingFiles().front() + " did not arrive within " +
             DurationWords(deadlines_.artifacts),
         "", turn);
  } else {
    Fail("its workers did not finish within " + DurationWords(limit_), "", turn);
  }
}

// What was said while the coordinator itself stood still comes within moments of its waking.
void JobController::OnStall(Turn turn) {
  const Instant due = heard_ + StallLimit();
  if (turn.now < due) {
    deadline_ = due;
    return;
  }
  if (!std::exchange(stall_suspected_, true)) {
    deadline_ = turn.now + deadlines_.rejoin;
    return;
  }
  Fail("no worker reported anything for " + DurationWords(StallLimit()) + ", after " +
           std::to_string(tracker_->rounds()) + " rounds",
       "", turn);
}

// Rounded up to a second, for people.
Duration JobController::StallLimit() const {
  const double rounds = deadlines_.stall_rounds * tracker_->RoundSeconds();
  return std::max(deadlines_.stall, Seconds(std::ceil(std::min(rounds, kStallSecondsMax))));
}

void JobController::OnStartDeadline(Turn turn) {
  std::vector<MemberRecord> missing;
  for (const std::uint32_t rank : formation_->Missing()) missing.push_back(record_.members[rank]);
  std::string reason = "not ready within " + DurationWords(deadlines_.start) + ": ";
  switch (formation_->phase()) {
    case GroupFormation::Phase::kLoading:
      reason += WorkerNames(missing) + " still loading model and data";
      break;
    case GroupFormation::Phase::kMeeting:
      reason += WorkerNames(missing) + " gave no address to the group";
      break;
    case GroupFormation::Phase::kFormed:
      reason += "the group of " + WorkerCount(size()) + " finished no round";
      break;
  }
  Fail(reason, "", turn);
}

}  // namespace tactus::job
