// The part of JobController that trains: forming the group, folding reports in, sending plans.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "coordinator/job/job_controller.h"
#include "coordinator/job/wording.h"

namespace tactus::job {

void JobController::On(std::uint32_t rank, const ReadyMessage& message, Turn turn) {
  if (record_.state != JobState::kStarting || inquiry_.open()) return;
  if (!formation_->SetReady(rank, message)) return;
  if (const std::optional<Mismatch> odd = formation_->FindMismatch()) {
    Fail(WorkerName(record_.members[odd->rank]) + " has " + std::to_string(odd->found) + " " +
             odd->noun + ", " + WorkerName(record_.members[odd->reference]) + " has " +
             std::to_string(odd->expected),
         odd->field, turn);
    return;
  }
  FormGroup(turn);
}

void JobController::FormGroup(Turn turn) {
  ++record_.generation;
  formation_->Begin(record_.generation);
  const policies::Revision first =
      steering_.Start({.members = size(), .speeds = formation_->speeds()});
  const policies::Plan& plan = first.plan;
  record_.newest_plan = plan;
  Progress progress;
  if (record_.checkpoint) progress = record_.progress;
  progress.workers.clear();
  progress.epoch_samples = formation_->train_samples();
  tracker_.emplace(size(), progress);
  NoteGroup(progress.rounds);
  record_.state_reason = "forming a group of " + WorkerCount(size());
  Announce(turn);
  Record(first.decisions, turn);
  turn.actions.push_back(PublishDecision{.job = record_.id, .plan = plan});
  const std::vector<std::uint32_t> nodes = NodesOf(record_.members);
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    Send(rank,
         GroupMessage{.generation = record_.generation,
                      .rank = rank,
                      .size = size(),
                      .plan = plan,
                      .nodes = nodes},
         turn);
  }
}

void JobController::NoteGroup(std::uint64_t first_round) {
  std::vector<GroupRecord>& groups = record_.groups;
  std::size_t members = 0;  // of the groups that stay
  auto kept = groups.end();
  while (kept != groups.begin()) {
    members += std::prev(kept)->members.size();
    if (members > kFormerMembersMax) break;
    --kept;
  }
  groups.erase(groups.begin(), kept);
  groups.push_back(
      {.generation = record_.generation, .first_round = first_round, .members = record_.members});
}

void JobController::On(std::uint32_t rank, const EndpointMessage& message, Turn turn) {
  if (record_.state != JobState::kStarting || inquiry_.open()) return;
  if (!formation_->SetEndpoint(rank, message)) return;
  SendToAll(PeersMessage{.generation = record_.generation, .endpoints = formation_->endpoints()},
            turn);
}

void JobController::On(std::uint32_t rank, const ReportMessage& message, Turn turn) {
  if (!tracker_ || message.generation != record_.generation) return;
  if (record_.state == JobState::kStarting) {
    if (formation_->phase() != GroupFormation::Phase::kFormed) return;
    BeginRunning(message.report, turn);
  }
  ExpectReport(turn.now);
  policies::Report report = message.report;
  report.rank = rank;
  steering_.Observe(report);
  if (std::optional<RoundRecord> round = tracker_->Add(report, turn.now)) {
    OnRoundDone(*std::move(round), turn);
  }
}

void JobController::BeginRunning(const policies::Report& first, Turn turn) {
  // The round is over when its report comes; the start is its beginning.
  const double seconds = std::isfinite(first.round_seconds) ? first.round_seconds : 0;
  const Duration length = Seconds(std::clamp(seconds, 0.0, ToSeconds(deadlines_.start)));
  record_.group_start_time = (turn.now - length).time_since_epoch().count() + wall_offset_;
  if (record_.start_time == 0) record_.start_time = record_.group_start_time;
  training_since_ = turn.now;
  formation_.reset();
  deadline_.reset();
  SetState(JobState::kRunning, "training on " + WorkerCount(size()));
  Announce(turn);
}

// The deadline is looked at again when it passes, so that a report costs nothing.
void JobController::ExpectReport(Instant now) {
  if (record_.state != JobState::kRunning || awaiting_return_) return;
  heard_ = now;
  stall_suspected_ = false;
  if (!deadline_) deadline_ = now + deadlines_.stall;
}

void JobController::OnRoundDone(RoundRecord round, Turn turn) {
  round.job = record_.id;
  steering_.RoundDone(round.plan_version);
  turn.actions.push_back(PersistRound{std::move(round)});
  if (record_.state == JobState::kRunning && !awaiting_return_ && !inquiry_.open()) {
    DecidePlan(turn);
  }
  ShareProgress(turn);
}

void JobController::DecidePlan(Turn turn) {
  const std::optional<policies::Revision> revision = steering_.Decide();
  Record(steering_.TakeMeasured(), turn);
  if (!revision) return;
  record_.newest_plan = revision->plan;
  Persist(turn);
  Record(revision->decisions, turn);
  turn.actions.push_back(PublishDecision{.job = record_.id, .plan = revision->plan});
  SendToAll(revision->plan, turn);
}

void JobController::Record(const std::vector<policies::Decision>& decisions, Turn turn) {
  for (const policies::Decision& decision : decisions) {
    turn.actions.push_back(PersistDecision{.job = record_.id, .decision = decision});
  }
}

void JobController::ShareProgress(Turn turn) {
  if (published_ && turn.now - *published_ < deadlines_.progress_publish) return;
  published_ = turn.now;
  if (turn.now - *persisted_ >= deadlines_.progress_persist) {
    Persist(turn);
  } else {
    RefreshProgress(turn.now);
  }
  turn.actions.push_back(PublishProgress{.job = record_.id, .progress = record_.progress});
}

}  // namespace tactus::job
