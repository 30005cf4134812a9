// The part of JobController that ends a group so that the job goes on later: for a user's pause,
// for another job, for another size, for a change that workers read only when they start.

#include <algorithm>
#include <cmath>
#include <utility>

#include "coordinator/job/job_controller.h"
#include "coordinator/job/wording.h"

namespace tactus::job {
namespace {

// Freezing an axis or freeing it needs no new plan.
bool AdaptsAlike(policies::PlannerOptions a, const policies::PlannerOptions& b) {
  a.frozen = b.frozen;
  return a == b;
}

}  // namespace

bool JobController::Movable() const {
  if (record_.state == JobState::kStarting) return true;
  return record_.state == JobState::kRunning && !awaiting_return_ && !inquiry_.open() &&
         training_since_.has_value();
}

std::optional<Instant> JobController::TrainingSince() const {
  return record_.state == JobState::kRunning ? training_since_ : std::nullopt;
}

void JobController::Suspend(bool pause, const std::string& reason, Turn turn) {
  switch (record_.state) {
    case JobState::kSuspending:
      if (record_.suspension->pause || !pause) return;
      record_.suspension->pause = true;
      record_.suspension->reason = record_.state_reason = reason;
      return Announce(turn);
    case JobState::kStarting:
    case JobState::kRunning:
      break;
    default:
      return;
  }
  const bool trains = record_.state == JobState::kRunning;
  record_.suspension = Suspension{.pause = pause, .reason = reason, .secured = !trains};
  SetState(JobState::kSuspending, reason);
  formation_.reset();
  Announce(turn);
  if (trains) {
    if (!awaiting_return_) AskToStop(turn);
  } else {
    StopWorkers(turn);
    LeaveIfGone(turn);
  }
}

void JobController::Pause(Turn turn) {
  if (record_.state == JobState::kQueued) {
    SetState(JobState::kPaused, "paused by the user");
    return Announce(turn);
  }
  Suspend(true, "paused by the user", turn);
}

void JobController::Resume(Turn turn) {
  if (record_.state == JobState::kSuspending && record_.suspension->pause) {
    record_.suspension->pause = false;
    record_.suspension->reason = record_.state_reason = "resumed by the user";
    Announce(turn);
  } else if (record_.state == JobState::kPaused) {
    SetState(JobState::kQueued, "resumed by the user");
    Announce(turn);
  }
}

void JobController::Update(const JobUpdated& event, std::unique_ptr<policies::PlanPolicy> policy,
                           Turn turn) {
  if (IsFinal(record_.state) || record_.state == JobState::kStopping) return;
  const bool alike = AdaptsAlike(event.settings.adapt, record_.settings.adapt);
  const bool has_group = tracker_.has_value() && !members_.empty();
  record_.spec = event.spec;
  record_.settings = event.settings;
  record_.labels = event.labels;
  if (policy != nullptr) {
    std::optional<policies::StartingGroup> group;
    if (has_group && !alike) {
      group.emplace().members = size();
      for (const WorkerProgress& worker : tracker_->progress().workers) {
        group->speeds.push_back(worker.samples_per_second);
      }
    }
    steering_.Replace(std::move(policy), group);
  }
  Announce(turn);
  if (event.needs_restart) Suspend(false, "starts again with what the user changed", turn);
}

// All have said their last word and the checkpoint is at the coordinator.
void JobController::Secure(Turn turn) {
  const ArtifactRecord* const file = results_->Find(kCheckpointFile);
  if (file == nullptr) {
    return Fail("its workers ended without a checkpoint", "", turn);
  }
  record_.checkpoint = CheckpointRecord{
      .sha256 = file->sha256, .size_bytes = file->size_bytes, .rounds = results_->leader().rounds};
  RefreshProgress(turn.now);
  BankElapsed();
  record_.suspension->secured = true;
  awaiting_return_ = false;
  inquiry_ = {};
  deadline_ = turn.now + deadlines_.exit;
  Announce(turn);
  LeaveIfGone(turn);
}

// What the next group goes on from has the time up to its last round, and `stop.time` counts from
// there: writing the checkpoint and bringing it here is no training.
void JobController::BankElapsed() {
  const double trained = results_->leader().train_seconds;
  double& elapsed = record_.progress.elapsed_seconds;
  if (!std::isfinite(trained)) return;  // outside input
  elapsed = std::clamp(trained, std::min(record_.elapsed_before_seconds, elapsed), elapsed);
}

// The members stay on record, so that their ids are not given to others.
void JobController::LeaveIfGone(Turn turn) {
  if (!Secured() || !std::ranges::all_of(members_, &Member::gone)) return;
  const Suspension ended = *std::exchange(record_.suspension, std::nullopt);
  deadline_.reset();
  members_.clear();
  ranks_.clear();
  results_.reset();
  tracker_.reset();
  training_since_.reset();
  if (!record_.checkpoint) record_.progress = {};
  ++record_.suspensions;
  SetState(ended.pause ? JobState::kPaused : JobState::kQueued, ended.reason);
  Announce(turn);
}

}  // namespace tactus::job
