// The part of JobController that goes on where a former coordinator left off.

#include <algorithm>
#include <utility>

#include "coordinator/job/job_controller.h"
#include "coordinator/job/wording.h"

namespace tactus::job {

void JobController::Restore(Turn turn) {
  if (record_.state == JobState::kStarting || Secured()) {
    // The members stay on record, so that their ids are not given to others.
    const bool pause = Secured() && record_.suspension->pause;
    const std::string reason =
        Secured() ? record_.suspension->reason
                  : "queued again: the coordinator restarted while it was starting";
    if (Secured()) ++record_.suspensions;
    record_.suspension.reset();
    if (!record_.checkpoint) record_.progress = {};
    SetState(pause ? JobState::kPaused : JobState::kQueued, reason);
    Announce(turn);
    return;
  }
  if (record_.state != JobState::kRunning && record_.state != JobState::kStopping &&
      record_.state != JobState::kSuspending) {
    return;
  }
  Enlist(false);
  steering_.Resume(record_.progress.plan, record_.newest_plan);
  tracker_.emplace(size(), record_.progress);
  awaiting_return_ = true;
  deadline_ = turn.now + deadlines_.rejoin;
  record_.state_reason =
      "the coordinator restarted and waits for " + WorkerCount(size()) + " to report back";
  Announce(turn);
  ResumeIfAllBack(turn);  // where all had said their last word
  if (results_->AllFinished()) TryFinish(turn);
}

void JobController::OnNodeJoined(const NodeJoined& event, Turn turn) {
  std::vector<std::uint32_t> lost;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const MemberRecord& where = record_.members[rank];
    if (where.node != event.node || members_[rank].gone) continue;
    if (std::ranges::find(event.running_workers, where.worker) != event.running_workers.end()) {
      members_[rank].present = true;
    } else if (!event.same_incarnation) {
      lost.push_back(rank);
    }
  }
  Depart(lost, {.kind = Departure::Kind::kAgentRestarted}, turn);
  ResumeIfAllBack(turn);
}

void JobController::ResumeIfAllBack(Turn turn) {
  if (!awaiting_return_ || inquiry_.open()) return;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (!members_[rank].present && !results_->Finished(rank)) return;
  }
  awaiting_return_ = false;
  deadline_.reset();
  training_since_ = turn.now;
  if (record_.state == JobState::kRunning) {
    record_.state_reason = "training on " + WorkerCount(size());
  } else if (record_.suspension) {
    record_.state_reason = record_.suspension->reason;
  } else {
    record_.state_reason = record_.cancel_reason.empty() ? "finishing" : record_.cancel_reason;
  }
  Announce(turn);
  ExpectReport(turn.now);
  // Nobody knows whether the former coordinator's last plan and stop reached them all; workers know
  // a plan by its version and a stop by being asked.
  if (steering_.newest().version != steering_.adopted().version) {
    SendToAll(steering_.newest(), turn);
  }
  const bool asked = !record_.cancel_reason.empty() || record_.suspension;
  if (results_->AllFinished()) return;
  if (asked) {
    AskToStop(turn);
  } else if (record_.state == JobState::kStopping) {
    limit_ = deadlines_.stall;
    deadline_ = turn.now + limit_;
  }
}

void JobController::OnRejoinDeadline(Turn turn) {
  std::vector<MemberRecord> absent;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (!members_[rank].present && !results_->Finished(rank)) {
      absent.push_back(record_.members[rank]);
    }
  }
  Fail("the coordinator restarted and " + WorkerNames(absent) + " did not come back", "", turn);
}

}  // namespace tactus::job
