// The part of JobController that ends: results, cancels, and what to say when a member is lost.

#include <algorithm>
#include <utility>

#include "coordinator/job/job_controller.h"
#include "coordinator/job/wording.h"

namespace tactus::job {

// What a member says last is durable before it is acknowledged: a restart must not ask for it
// again.
void JobController::On(std::uint32_t rank, const EvaluatedMessage& message, Turn turn) {
  if (rank != 0) return;
  results_->SetEvaluated(message);
  record_.ending = results_->ending();
  Persist(turn);
}

void JobController::On(std::uint32_t rank, const FinishedMessage& message, Turn turn) {
  if (!tracker_ || Secured()) return;  // it was never in a group, or is not needed any more
  results_->SetFinished(rank, message);
  record_.ending = results_->ending();
  inquiry_.Withdraw(record_.members[rank].worker);
  if (message.suspended && record_.state == JobState::kRunning) {
    record_.suspension = Suspension{.reason = message.reason};
    SetState(JobState::kSuspending, message.reason);
  }
  const bool suspended = record_.state == JobState::kSuspending && message.suspended;
  if (record_.state != JobState::kStopping && !suspended) {
    if (!awaiting_return_) {
      limit_ = deadlines_.stall;
      deadline_ = turn.now + limit_;
    }
    record_.suspension.reset();
    // Rank 0 knows why: the others only saw a vote.
    SetState(JobState::kStopping, rank == 0 ? "finishing: " + message.reason : "finishing");
    Announce(turn);
  } else {
    Persist(turn);
  }
  ResumeIfAllBack(turn);
  TryFinish(turn);
}

void JobController::OnArtifactStored(const ArtifactRecord& artifact, Turn turn) {
  if (IsFinal(record_.state) || !results_ || members_.empty() || Secured()) return;
  results_->AddArtifact(artifact);
  record_.ending = results_->ending();
  Persist(turn);
  TryFinish(turn);
}

void JobController::TryFinish(Turn turn) {
  if (!results_->AllFinished()) return;
  if (const std::optional<std::uint32_t> odd = results_->OddRank()) {
    Fail("members ended with different parameters: " + WorkerName(record_.members[*odd]) +
             " differs from " + WorkerName(record_.members.front()),
         "", turn);
    return;
  }
  if (!record_.discard) {
    if (!results_->MissingFiles().empty()) {
      deadline_ = turn.now + deadlines_.artifacts;
      return;
    }
    if (record_.state == JobState::kSuspending) return Secure(turn);
    record_.result = results_->Make(tracker_ ? tracker_->OwnSpeedSum() : 0);
  }
  const bool cancelled = !record_.cancel_reason.empty();
  deadline_ = turn.now + deadlines_.exit;
  End(cancelled ? JobState::kCancelled : JobState::kSucceeded,
      cancelled ? record_.cancel_reason : results_->leader().reason, turn);
}

void JobController::Cancel(const JobCancelled& event, Turn turn) {
  if (IsFinal(record_.state)) return;
  const bool suspending = record_.state == JobState::kSuspending && !Secured();
  const bool training = record_.state == JobState::kRunning || suspending;
  const bool finishing = record_.state == JobState::kStopping;
  if (finishing && !event.discard) return;  // it is on its way to a result already
  record_.cancel_reason = event.reason.empty() ? "cancelled" : event.reason;
  record_.discard = event.discard;
  record_.cancel_grace = event.grace;
  if (!training) {
    if (!event.discard && record_.checkpoint) record_.result = CheckpointResult();
    record_.suspension.reset();
    End(JobState::kCancelled, record_.cancel_reason, turn);
    StopWorkers(turn);
    return;
  }
  record_.suspension.reset();
  SetState(JobState::kStopping, record_.cancel_reason);
  Announce(turn);
  if (!awaiting_return_) AskToStop(turn);
}

// What is left of a job that is cancelled while it holds no devices.
ResultRecord JobController::CheckpointResult() const {
  const CheckpointRecord& checkpoint = *record_.checkpoint;
  return {.artifacts = {{.path = kCheckpointFile,
                         .size_bytes = checkpoint.size_bytes,
                         .sha256 = checkpoint.sha256}},
          .train_loss = record_.progress.loss,
          .rounds = checkpoint.rounds,
          .samples = record_.progress.samples,
          .epochs = record_.progress.epoch,
          .train_seconds = record_.progress.elapsed_seconds,
          .stop_reason = record_.cancel_reason};
}

void JobController::AskToStop(Turn turn) {
  const Duration standard = record_.discard ? deadlines_.discard : deadlines_.cancel;
  limit_ = record_.cancel_grace.value_or(standard);
  deadline_ = turn.now + limit_;
  const bool suspend = record_.suspension.has_value();
  SendToAll(StopMessage{.reason = suspend ? record_.suspension->reason : record_.cancel_reason,
                        .discard = !suspend && record_.discard,
                        .suspend = suspend},
            turn);
}

void JobController::On(std::uint32_t rank, const FailedMessage& message, Turn turn) {
  const MemberRecord& member = record_.members[rank];
  if (results_->Finished(rank)) return;
  const bool consequence = message.lost_generation > 0;
  Suspect(
      {.worker = member.worker,
       .evidence = consequence ? Evidence::kConsequence : Evidence::kOwnWords,
       .reason = WorkerName(member) + (consequence ? " lost its group: " : ": ") + message.message,
       .field = message.field},
      turn);
}

void JobController::OnWorkerExited(const WorkerExited& event, Turn turn) {
  const std::optional<std::uint32_t> rank = RankOf(event.worker);
  if (!rank) return;
  Depart({*rank},
         {.kind = Departure::Kind::kExited,
          .exit_code = event.exit_code,
          .signal = event.signal,
          .detail = event.log_tail},
         turn);
}

void JobController::OnNodeLost(const NodeLost& event, Turn turn) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (record_.members[rank].node == event.node && !members_[rank].gone) ranks.push_back(rank);
  }
  Depart(ranks, {.kind = Departure::Kind::kNodeLost, .detail = event.reason}, turn);
}

// All of them are gone before anything is concluded, so that nobody asks them to stop.
void JobController::Depart(const std::vector<std::uint32_t>& ranks, const Departure& departure,
                           Turn turn) {
  for (const std::uint32_t rank : ranks) {
    members_[rank].gone = true;
    // After a restart, a worker that is missed may still have sent its last words.
    members_[rank].exited |= departure.kind != Departure::Kind::kAgentRestarted;
  }
  if (Secured()) return LeaveIfGone(turn);
  for (const std::uint32_t rank : ranks) {
    if (IsFinal(record_.state)) return;
    if (std::optional<Finding> finding = Judge(rank, departure)) {
      Suspect(*std::move(finding), turn);
    } else if (inquiry_.open() && std::ranges::all_of(members_, &Member::exited)) {
      Conclude(turn);
    }
  }
}

// What a departure says about the job's failure; nothing when it is as it should be or explained.
std::optional<Finding> JobController::Judge(std::uint32_t rank, const Departure& departure) const {
  const MemberRecord& member = record_.members[rank];
  switch (departure.kind) {
    case Departure::Kind::kExited:
      if (results_->Finished(rank)) return std::nullopt;
      // Its exit with a code only repeats what it said before.
      if (departure.signal == 0 && inquiry_.Heard(member.worker)) return std::nullopt;
      return ExitFinding(member, departure);
    case Departure::Kind::kNodeLost:
    case Departure::Kind::kAgentRestarted:
      // The files of the result are with rank 0's agent.
      if (results_->Finished(rank) && rank != 0) return std::nullopt;
      break;
  }
  if (departure.kind == Departure::Kind::kAgentRestarted) return AgentRestarted(member);
  return Finding{.worker = member.worker,
                 .evidence = Evidence::kNodeLost,
                 .reason = "node " + member.node + " was lost: " + departure.detail};
}

Finding JobController::ExitFinding(const MemberRecord& member, const Departure& departure) {
  std::string how = " ended before the job did";
  if (departure.signal != 0) {
    how = " was ended by " + SignalWords(departure.signal);
  } else if (departure.exit_code != 0) {
    how = " ended with exit code " + std::to_string(departure.exit_code);
  }
  const std::string line = LastLine(departure.detail);
  return {.worker = member.worker,
          .evidence = departure.signal != 0 ? Evidence::kSignal : Evidence::kExit,
          .reason = WorkerName(member) + how + (line.empty() ? "" : ": " + line)};
}

Finding JobController::AgentRestarted(const MemberRecord& member) const {
  if (awaiting_return_) {
    return {.worker = member.worker,
            .evidence = Evidence::kAbsence,
            .reason = "the coordinator restarted and " + WorkerName(member) + " did not come back"};
  }
  return {.worker = member.worker,
          .evidence = Evidence::kNodeLost,
          .reason =
              "the agent of node " + member.node + " restarted, which ended " + WorkerName(member)};
}

void JobController::Suspect(Finding finding, Turn turn) {
  inquiry_.Add(std::move(finding), turn.now);
  if (inquiry_.Conclusive() || std::ranges::all_of(members_, &Member::exited)) Conclude(turn);
}

void JobController::Conclude(Turn turn) {
  const Finding cause = inquiry_.Best();
  Fail(cause.reason, cause.field, turn);
}

// Ends the job without a result. A failure after a cancel does not make it FAILED.
void JobController::Fail(const std::string& reason, const std::string& field, Turn turn) {
  deadline_.reset();
  record_.suspension.reset();
  if (!record_.cancel_reason.empty()) {
    End(JobState::kCancelled, record_.cancel_reason + "; no result: " + reason, turn);
  } else {
    record_.error_field = field;
    End(JobState::kFailed, reason, turn);
  }
  StopWorkers(turn);
}

void JobController::End(JobState state, std::string reason, Turn turn) {
  awaiting_return_ = false;
  SetState(state, std::move(reason));
  Announce(turn);
}

// Members that have not come back after a restart are given up: if they ever do, they are strays.
void JobController::StopWorkers(Turn turn) {
  deadline_.reset();
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    Member& member = members_[rank];
    if (member.gone || member.stop_sent) continue;
    if (!member.present) {
      member.gone = true;
      continue;
    }
    member.stop_sent = true;
    const MemberRecord& where = record_.members[rank];
    turn.actions.push_back(
        StopWorker{.node = where.node, .worker = where.worker, .grace = deadlines_.grace});
  }
}

}  // namespace tactus::job
