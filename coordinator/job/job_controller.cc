#include "coordinator/job/job_controller.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "coordinator/job/wording.h"

namespace tactus::job {
namespace {

constexpr double kStallSecondsMax = 30 * 86400.0;

}  // namespace

JobController::JobController(JobRecord record, std::unique_ptr<policies::PlanPolicy> policy,
                             WallTime wall_offset, JobDeadlines deadlines)
    : deadlines_(deadlines),
      keeper_(std::move(record), std::move(policy), wall_offset, deadlines) {}

// ---- The queue

void JobController::Submit(const std::string& reason, Turn turn) {
  TACTUS_CHECK(state() == JobState::kQueued);
  keeper_.record().state_reason = reason;
  keeper_.Announce(turn);
}

void JobController::ExplainWait(const std::string& reason, Turn turn) {
  TACTUS_CHECK(state() == JobState::kQueued);
  if (record().state_reason == reason) return;
  keeper_.record().state_reason = reason;
  keeper_.Announce(turn);
}

void JobController::Reject(const std::string& reason, const std::string& field, Turn turn) {
  Fail(reason, field, turn);
}

void JobController::Start(std::vector<MemberRecord> members, Turn turn) {
  TACTUS_CHECK(In<phase::Idle>() && !members.empty());
  roster_ = Roster(members, true);
  results_ = ResultCollector(roster_.size());
  inquiry_ = {};
  phase_ = phase::Starting{.formation = GroupFormation(roster_.size()),
                           .deadline = turn.now + deadlines_.start};
  keeper_.BeginGroup(std::move(members));
  keeper_.Enter(JobState::kStarting, WorkerCount(roster_.size()) + " loading model and data");
  keeper_.Announce(turn);
  const std::string checkpoint = record().checkpoint ? record().checkpoint->sha256 : "";
  for (const MemberRecord& member : roster_.members()) {
    turn.actions.push_back(StartWorker{.node = member.node,
                                       .worker = member.worker,
                                       .job = record().id,
                                       .job_name = record().name,
                                       .spec = record().spec,
                                       .device = member.device,
                                       .checkpoint = checkpoint});
  }
}

// ---- The group forms and trains

void JobController::OnWorkerSaid(WorkerId worker, const FromWorker& message, Turn turn) {
  const std::optional<std::uint32_t> rank = roster_.RankOf(worker);
  if (!rank || IsFinal(state())) return;
  std::visit([&](const auto& said) { On(*rank, said, turn); }, message);
}

void JobController::On(std::uint32_t rank, const ReadyMessage& message, Turn turn) {
  auto* const starting = std::get_if<phase::Starting>(&phase_);
  if (starting == nullptr || inquiry_.open()) return;
  if (!starting->formation.SetReady(rank, message)) return;
  if (const std::optional<Mismatch> odd = starting->formation.FindMismatch()) {
    return Fail(WordsOf(*odd, roster_.members()), odd->field, turn);
  }
  FormGroup(starting->formation, turn);
}

void JobController::FormGroup(GroupFormation& formation, Turn turn) {
  formation.Begin(record().generation + 1);
  const policies::Plan plan = keeper_.FormGroup(
      {.members = roster_.size(), .speeds = formation.speeds()}, formation.train_samples(), turn);
  const std::vector<std::uint32_t> nodes = NodesOf(roster_.members());
  for (std::uint32_t rank = 0; rank < roster_.size(); ++rank) {
    roster_.Send(rank,
                 GroupMessage{.generation = record().generation,
                              .rank = rank,
                              .size = roster_.size(),
                              .plan = plan,
                              .nodes = nodes},
                 turn.actions);
  }
}

void JobController::On(std::uint32_t rank, const EndpointMessage& message, Turn turn) {
  auto* const starting = std::get_if<phase::Starting>(&phase_);
  if (starting == nullptr || inquiry_.open()) return;
  if (!starting->formation.SetEndpoint(rank, message)) return;
  roster_.SendToAll(
      PeersMessage{.generation = record().generation, .endpoints = starting->formation.endpoints()},
      turn.actions);
}

// A group that ends, or has ended, is still listened to: its last rounds are part of the history.
void JobController::On(std::uint32_t rank, const ReportMessage& message, Turn turn) {
  if (!keeper_.tracker() || message.generation != record().generation) return;
  if (const auto* starting = std::get_if<phase::Starting>(&phase_)) {
    if (starting->formation.phase() != GroupFormation::Phase::kFormed) return;
    phase_ = TrainingFrom(turn.now);
    keeper_.BeginRunning(message.report, turn);
  }
  // The deadline stays: it is looked at again when it passes, so that a report costs nothing.
  if (auto* training = std::get_if<phase::Training>(&phase_)) {
    training->heard = turn.now;
    training->stall_suspected = false;
  }
  policies::Report report = message.report;
  report.rank = rank;
  if (!keeper_.Add(report, turn)) return;
  if (In<phase::Training>() && !inquiry_.open()) {
    const std::optional<policies::Plan> plan = keeper_.Decide(turn);
    if (plan) roster_.SendToAll(*plan, turn.actions);
  }
  keeper_.ShareProgress(turn);
}

phase::Training JobController::TrainingFrom(Instant now) const {
  return {.since = now, .heard = now, .deadline = now + deadlines_.stall};
}

// Rounded up to a second, for people.
Duration JobController::StallLimit() const {
  const double rounds = deadlines_.stall_rounds * keeper_.tracker()->RoundSeconds();
  return std::max(deadlines_.stall, Seconds(std::ceil(std::min(rounds, kStallSecondsMax))));
}

void JobController::Update(const JobUpdated& event, std::unique_ptr<policies::PlanPolicy> policy,
                           Turn turn) {
  if (IsFinal(state()) || state() == JobState::kStopping) return;
  keeper_.Update(event, std::move(policy));
  keeper_.Announce(turn);
  if (event.needs_restart) Suspend(false, "starts again with what the user changed", turn);
}

// ---- After a restart

void JobController::Restore(Turn turn) {
  switch (state()) {
    case JobState::kStarting:
      return GoOnLater(turn);
    case JobState::kSuspending:
      if (keeper_.Secured()) return GoOnLater(turn);
      break;
    case JobState::kRunning:
    case JobState::kStopping:
      break;
    default:
      return;
  }
  roster_ = Roster(record().members, false);
  results_ = ResultCollector(roster_.size(), record().ending);
  phase_ = phase::Returning{.deadline = turn.now + deadlines_.rejoin};
  keeper_.ResumeGroup();
  keeper_.record().state_reason =
      "the coordinator restarted and waits for " + WorkerCount(roster_.size()) + " to report back";
  keeper_.Announce(turn);
  ResumeIfAllBack(turn);  // where all had said their last word
  TryFinish(turn);
}

void JobController::OnNodeJoined(const NodeJoined& event, Turn turn) {
  std::vector<std::uint32_t> lost;
  for (const std::uint32_t rank : roster_.LiveOn(event.node)) {
    const WorkerId worker = roster_[rank].worker;
    if (std::ranges::find(event.running_workers, worker) != event.running_workers.end()) {
      roster_.Return(rank);
    } else if (!event.same_incarnation) {
      lost.push_back(rank);
    }
  }
  Depart(lost, AgentRestarted{.awaited = In<phase::Returning>()}, turn);
  ResumeIfAllBack(turn);
}

void JobController::ResumeIfAllBack(Turn turn) {
  if (!In<phase::Returning>() || inquiry_.open()) return;
  for (std::uint32_t rank = 0; rank < roster_.size(); ++rank) {
    if (!roster_.Present(rank) && !results_.Finished(rank)) return;
  }
  JobRecord& record = keeper_.record();
  if (record.state == JobState::kRunning) {
    phase_ = TrainingFrom(turn.now);
    record.state_reason = "training on " + WorkerCount(roster_.size());
  } else {
    AwaitEnd(deadlines_.stall, turn);
    record.state_reason = record.cancel_reason.empty() ? "finishing" : record.cancel_reason;
    if (record.suspension) record.state_reason = record.suspension->reason;
  }
  keeper_.Announce(turn);
  // Nobody knows whether the former coordinator's last plan and stop reached them all; workers know
  // a plan by its version and a stop by being asked.
  if (const policies::Plan* plan = keeper_.Travelling()) {
    roster_.SendToAll(*plan, turn.actions);
  }
  const bool asked = !record.cancel_reason.empty() || record.suspension;
  if (asked && !results_.AllFinished()) AskToStop(turn);
}

// ---- A user's wishes, and the queue's

void JobController::Cancel(const JobCancelled& event, Turn turn) {
  if (IsFinal(state())) return;
  if (state() == JobState::kStopping && !event.discard) return;  // a result is on its way already
  const bool trains =
      state() == JobState::kRunning || (state() == JobState::kSuspending && !keeper_.Secured());
  JobRecord& record = keeper_.record();
  record.cancel_reason = event.reason.empty() ? "cancelled" : event.reason;
  record.discard = event.discard;
  record.cancel_grace = event.grace;
  record.suspension.reset();
  if (!trains) {
    if (!event.discard && record.checkpoint) record.result = CheckpointResult(record);
    End(JobState::kCancelled, record.cancel_reason, turn);
    return StopWorkers(turn);
  }
  keeper_.Enter(JobState::kStopping, record.cancel_reason);
  keeper_.Announce(turn);
  if (!In<phase::Returning>()) AskToStop(turn);
}

void JobController::Pause(Turn turn) {
  const std::string reason = "paused by the user";
  if (state() != JobState::kQueued) return Suspend(true, reason, turn);
  keeper_.Enter(JobState::kPaused, reason);
  keeper_.Announce(turn);
}

void JobController::Resume(Turn turn) {
  const std::string reason = "resumed by the user";
  JobRecord& record = keeper_.record();
  if (record.state == JobState::kPaused) {
    keeper_.Enter(JobState::kQueued, reason);
  } else if (record.state == JobState::kSuspending && record.suspension->pause) {
    record.suspension->pause = false;
    record.suspension->reason = record.state_reason = reason;
  } else {
    return;
  }
  keeper_.Announce(turn);
}

bool JobController::Movable() const {
  return In<phase::Starting>() || (In<phase::Training>() && !inquiry_.open());
}

void JobController::Suspend(bool pause, const std::string& reason, Turn turn) {
  JobRecord& record = keeper_.record();
  if (record.state == JobState::kSuspending) {
    if (record.suspension->pause || !pause) return;
    record.suspension->pause = true;
    record.suspension->reason = record.state_reason = reason;
    return keeper_.Announce(turn);
  }
  const bool trains = record.state == JobState::kRunning;
  if (!trains && !In<phase::Starting>()) return;
  // Before the first round there is nothing to keep.
  record.suspension = Suspension{.pause = pause, .reason = reason, .secured = !trains};
  keeper_.Enter(JobState::kSuspending, reason);
  keeper_.Announce(turn);
  if (!trains) {
    StopWorkers(turn);
    LeaveIfGone(turn);
  } else if (!In<phase::Returning>()) {
    AskToStop(turn);
  }
}

// ---- The end of a group: last words, files, exits

void JobController::AskToStop(Turn turn) {
  const JobRecord& record = keeper_.record();
  const Duration standard = record.discard ? deadlines_.discard : deadlines_.cancel;
  AwaitEnd(record.cancel_grace.value_or(standard), turn);
  const bool suspend = record.suspension.has_value();
  roster_.SendToAll(
      StopMessage{.reason = suspend ? record.suspension->reason : record.cancel_reason,
                  .discard = !suspend && record.discard,
                  .suspend = suspend},
      turn.actions);
}

void JobController::AwaitEnd(Duration limit, Turn turn) {
  phase_ = phase::Ending{.limit = limit, .deadline = turn.now + limit};
}

// What a member says last is durable before it is acknowledged: a restart must not ask for it
// again.
void JobController::On(std::uint32_t rank, const EvaluatedMessage& message, Turn turn) {
  if (rank != 0) return;
  results_.SetEvaluated(message);
  keeper_.record().ending = results_.ending();
  keeper_.Persist(turn);
}

void JobController::On(std::uint32_t rank, const FinishedMessage& message, Turn turn) {
  // It was never in a group, or is not needed any more.
  if (!keeper_.tracker() || keeper_.Secured()) return;
  results_.SetFinished(rank, message);
  inquiry_.Withdraw(roster_[rank].worker);
  JobRecord& record = keeper_.record();
  record.ending = results_.ending();
  const bool known = record.state == JobState::kStopping ||
                     (record.state == JobState::kSuspending && message.suspended);
  if (!known && !In<phase::Returning>()) AwaitEnd(deadlines_.stall, turn);
  if (known) {
    keeper_.Persist(turn);
  } else if (record.state == JobState::kRunning && message.suspended) {
    // Asked for by a former coordinator, or by the worker's node.
    record.suspension = Suspension{.reason = message.reason};
    keeper_.Enter(JobState::kSuspending, message.reason);
    keeper_.Persist(turn);
  } else {
    record.suspension.reset();
    // Rank 0 knows why: the others only saw a vote.
    keeper_.Enter(JobState::kStopping, rank == 0 ? "finishing: " + message.reason : "finishing");
    keeper_.Announce(turn);
  }
  ResumeIfAllBack(turn);
  TryFinish(turn);
}

void JobController::OnArtifactStored(const ArtifactRecord& artifact, Turn turn) {
  if (IsFinal(state()) || roster_.empty() || keeper_.Secured()) return;
  results_.AddArtifact(artifact);
  keeper_.record().ending = results_.ending();
  keeper_.Persist(turn);
  TryFinish(turn);
}

void JobController::TryFinish(Turn turn) {
  if (!results_.AllFinished()) return;
  if (const std::optional<std::uint32_t> odd = results_.OddRank()) {
    return Fail("members ended with different parameters: " + WorkerName(roster_[*odd]) +
                    " differs from " + WorkerName(roster_[0]),
                "", turn);
  }
  JobRecord& record = keeper_.record();
  if (!record.discard) {
    // The time starts anew with each file, as only their number is known, not their sizes.
    if (!results_.MissingFiles().empty()) return AwaitEnd(deadlines_.artifacts, turn);
    if (record.state == JobState::kSuspending) return Secure(turn);
    record.result = results_.Make(keeper_.tracker()->OwnSpeedSum());
  }
  const bool cancelled = !record.cancel_reason.empty();
  End(cancelled ? JobState::kCancelled : JobState::kSucceeded,
      cancelled ? record.cancel_reason : results_.leader().reason, turn);
}

// All have said their last word and the checkpoint is at the coordinator.
void JobController::Secure(Turn turn) {
  const ArtifactRecord* const file = results_.Find(kCheckpointFile);
  if (file == nullptr) return Fail("its workers ended without a checkpoint", "", turn);
  const FinishedMessage& leader = results_.leader();
  keeper_.Secure({.sha256 = file->sha256, .size_bytes = file->size_bytes, .rounds = leader.rounds},
                 leader.train_seconds, turn.now);
  inquiry_ = {};  // whatever goes wrong with the workers now is no harm
  phase_ = phase::Leaving{.deadline = turn.now + deadlines_.exit};
  keeper_.Announce(turn);
  LeaveIfGone(turn);
}

void JobController::LeaveIfGone(Turn turn) {
  if (keeper_.Secured() && roster_.AllGone()) GoOnLater(turn);
}

// The members stay on record, so that their ids are not given to others.
void JobController::GoOnLater(Turn turn) {
  JobRecord& record = keeper_.record();
  const std::optional<Suspension> ended = std::exchange(record.suspension, std::nullopt);
  record.suspensions += ended ? 1 : 0;
  phase_ = phase::Idle{};
  roster_ = {};
  keeper_.EndGroup();
  keeper_.Enter(
      ended && ended->pause ? JobState::kPaused : JobState::kQueued,
      ended ? ended->reason : "queued again: the coordinator restarted while it was starting");
  keeper_.Announce(turn);
}

// ---- Failures

void JobController::On(std::uint32_t rank, const FailedMessage& message, Turn turn) {
  if (!results_.Finished(rank)) Suspect(FindingOf(roster_[rank], message), turn);
}

void JobController::OnWorkerExited(const WorkerExited& event, Turn turn) {
  const std::optional<std::uint32_t> rank = roster_.RankOf(event.worker);
  if (rank) Depart({*rank}, event, turn);
}

void JobController::OnNodeLost(const NodeLost& event, Turn turn) {
  Depart(roster_.LiveOn(event.node), event, turn);
}

// All of them are gone before anything is concluded, so that nobody asks them to stop.
void JobController::Depart(const std::vector<std::uint32_t>& ranks, const Departure& departure,
                           Turn turn) {
  // An agent that restarted may still hold a worker's last words.
  const bool heard_out = !std::holds_alternative<AgentRestarted>(departure);
  for (const std::uint32_t rank : ranks) roster_.Depart(rank, heard_out);
  if (keeper_.Secured()) return LeaveIfGone(turn);
  for (const std::uint32_t rank : ranks) {
    if (IsFinal(state())) return;
    if (!Expected(rank, departure)) {
      Suspect(FindingOf(roster_[rank], departure), turn);
    } else if (inquiry_.open() && roster_.AllHeardOut()) {
      Conclude(turn);
    }
  }
}

// True where the departure is as it should be, or explained already.
bool JobController::Expected(std::uint32_t rank, const Departure& departure) const {
  const bool finished = results_.Finished(rank);
  if (const auto* exit = std::get_if<WorkerExited>(&departure)) {
    // Its exit with a code only repeats what it said before.
    return finished || (exit->signal == 0 && inquiry_.Heard(roster_[rank].worker));
  }
  // The files of the result are with rank 0's agent.
  return finished && rank != 0;
}

void JobController::Suspect(Finding finding, Turn turn) {
  inquiry_.Add(std::move(finding), turn.now);
  if (inquiry_.Conclusive() || roster_.AllHeardOut()) Conclude(turn);
}

void JobController::Conclude(Turn turn) {
  const Finding cause = inquiry_.Best();
  Fail(cause.reason, cause.field, turn);
}

// Ends the job without a result. A failure after a cancel does not make it FAILED.
void JobController::Fail(const std::string& reason, const std::string& field, Turn turn) {
  JobRecord& record = keeper_.record();
  record.suspension.reset();
  if (!record.cancel_reason.empty()) {
    End(JobState::kCancelled, record.cancel_reason + "; no result: " + reason, turn);
  } else {
    record.error_field = field;
    End(JobState::kFailed, reason, turn);
  }
  StopWorkers(turn);
}

// The workers leave by themselves, for a while.
void JobController::End(JobState state, std::string reason, Turn turn) {
  phase_ = phase::Leaving{.deadline = turn.now + deadlines_.exit};
  keeper_.Enter(state, std::move(reason));
  keeper_.Announce(turn);
}

void JobController::StopWorkers(Turn turn) {
  phase_ = phase::Leaving{};
  roster_.Stop(deadlines_.grace, turn.actions);
}

// ---- Deadlines

void JobController::Tick(Turn turn) {
  const bool undecided = !IsFinal(state()) && inquiry_.open();
  if (undecided && turn.now >= inquiry_.opened() + deadlines_.inquiry) return Conclude(turn);
  const std::optional<Instant> deadline = DeadlineOf(phase_);
  if (!deadline || turn.now < *deadline) return;
  const std::optional<std::string> failure =
      std::visit([&](auto& present) { return Overdue(present, turn); }, phase_);
  if (failure) Fail(*failure, "", turn);
}

std::optional<Instant> JobController::Deadline() const {
  const std::optional<Instant> deadline = DeadlineOf(phase_);
  if (IsFinal(state()) || !inquiry_.open()) return deadline;
  const Instant verdict = inquiry_.opened() + deadlines_.inquiry;
  return deadline ? std::min(*deadline, verdict) : verdict;
}

std::optional<std::string> JobController::Overdue(const phase::Idle&, Turn) { return std::nullopt; }

std::optional<std::string> JobController::Overdue(const phase::Starting& starting, Turn) {
  return "not ready within " + DurationWords(deadlines_.start) + ": " +
         starting.formation.Obstacle(roster_.members());
}

std::optional<std::string> JobController::Overdue(const phase::Returning&, Turn) {
  std::vector<MemberRecord> absent;
  for (std::uint32_t rank = 0; rank < roster_.size(); ++rank) {
    if (!roster_.Present(rank) && !results_.Finished(rank)) absent.push_back(roster_[rank]);
  }
  return "the coordinator restarted and " + WorkerNames(absent) + " did not come back";
}

// What was said while the coordinator itself stood still comes within moments of its waking, so the
// first time that nothing seems to have come only asks for another look.
std::optional<std::string> JobController::Overdue(phase::Training& training, Turn turn) {
  const Instant due = training.heard + StallLimit();
  if (turn.now < due) {
    training.deadline = due;
    return std::nullopt;
  }
  if (!std::exchange(training.stall_suspected, true)) {
    training.deadline = turn.now + deadlines_.rejoin;
    return std::nullopt;
  }
  return "no worker reported anything for " + DurationWords(StallLimit()) + ", after " +
         std::to_string(keeper_.tracker()->rounds()) + " rounds";
}

std::optional<std::string> JobController::Overdue(const phase::Ending& ending, Turn) {
  const std::string limit = DurationWords(ending.limit);
  if (!results_.AllFinished()) return "its workers did not finish within " + limit;
  return "the result's file " + results_.MissingFiles().front() + " did not arrive within " + limit;
}

std::optional<std::string> JobController::Overdue(const phase::Leaving&, Turn turn) {
  StopWorkers(turn);
  LeaveIfGone(turn);
  return std::nullopt;
}

// ---- Questions

bool JobController::HasLive(WorkerId worker) const {
  const std::optional<std::uint32_t> rank = roster_.RankOf(worker);
  return rank && roster_.Live(*rank);
}

bool JobController::Done() const { return IsFinal(state()) && roster_.AllGone(); }

std::optional<Instant> JobController::TrainingSince() const {
  const auto* const training = std::get_if<phase::Training>(&phase_);
  return training == nullptr ? std::nullopt : std::optional(training->since);
}

}  // namespace tactus::job
