#include "coordinator/job/job_controller.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "coordinator/job/attempts.h"
#include "coordinator/job/mesh_places.h"
#include "coordinator/job/snapshots.h"
#include "coordinator/job/transport_choice.h"
#include "coordinator/job/wording.h"

namespace tactus::job {

JobController::JobController(JobRecord record, std::unique_ptr<policies::PlanPolicy> policy,
                             Priors& priors, WallTime wall_offset, JobDeadlines deadlines)
    : deadlines_(deadlines),
      keeper_(std::move(record), std::move(policy), priors, wall_offset, deadlines) {}

// ---- The queue

void JobController::Submit(const std::string& reason, Turn turn) {
  TACTUS_CHECK(state() == JobState::kQueued);
  keeper_.record().state_reason = reason;
  keeper_.Announce(turn);
}

void JobController::ExplainWait(const std::string& reason, Turn turn) {
  TACTUS_CHECK(state() == JobState::kQueued);
  if (record().state_reason == reason) return;
  phase_ = phase::Idle{};  // where it rested, that is over
  keeper_.Rest(std::nullopt);
  keeper_.record().state_reason = reason;
  keeper_.Announce(turn);
}

void JobController::Reject(const std::string& reason, const std::string& field, Turn turn) {
  Fail(reason, field, turn);
}

void JobController::Start(std::vector<MemberRecord> members, Turn turn) {
  TACTUS_CHECK(In<phase::Idle>() && !members.empty());
  if (OfMeshes()) members = PlacedInMeshes(members, record().settings.mesh_devices);
  group_ = Group(members, true);
  held_since_.reset();
  programs_end_by_.reset();
  failed_behind_.clear();
  phase_ =
      phase::Starting{.formation = GroupFormation(size()), .deadline = turn.now + deadlines_.start};
  keeper_.BeginGroup(std::move(members), turn.now);
  keeper_.Enter(JobState::kStarting, WorkerCount(size()) + " loading model and data");
  keeper_.Announce(turn);
  const std::string checkpoint = record().checkpoint ? record().checkpoint->sha256 : "";
  const std::optional<Rollback>& back = record().rollback;
  const std::uint64_t skip = back && back->checkpoint == checkpoint ? back->skip_samples : 0;
  for (const MemberRecord& member : group_.members()) {
    turn.actions.push_back(StartWorker{.node = member.node,
                                       .worker = member.worker,
                                       .job = record().id,
                                       .job_name = record().name,
                                       .spec = record().spec,
                                       .device = member.device,
                                       .checkpoint = checkpoint,
                                       .skip_samples = skip,
                                       .pass_samples_max = keeper_.PassSamplesMax(member),
                                       .array = member.array});
  }
}

// ---- The group forms and trains

void JobController::OnWorkerSaid(WorkerId worker, const FromWorker& message, Turn turn) {
  const std::optional<std::uint32_t> rank = group_.RankOf(worker);
  if (IsFinal(state())) return;
  if (!rank) return OnJoinerSaid(worker, message, turn);
  std::visit([&](const auto& said) { On(*rank, said, turn); }, message);
}

void JobController::On(std::uint32_t rank, const ReadyMessage& message, Turn turn) {
  auto* const starting = std::get_if<phase::Starting>(&phase_);
  if (starting == nullptr || group_.SuspectSince()) return;
  if (OfMeshes() && message.mesh_version == 0) {
    return Fail(WordsOfUnknownMesh(group_.members()[rank]), kMeshField, turn);
  }
  if (!starting->formation.SetReady(rank, message)) return;
  if (const std::optional<Mismatch> odd = starting->formation.FindMismatch(OfMeshes())) {
    return Fail(WordsOf(*odd, group_.members()), odd->field, turn);
  }
  FormGroup(starting->formation, turn);
}

void JobController::FormGroup(GroupFormation& formation, Turn turn) {
  if (const std::optional<ProgramFacts>& facts = formation.facts()) {
    if (const auto conflict = keeper_.TakeFacts(*facts)) {
      return Fail(conflict->reason, conflict->field, turn);
    }
  }
  formation.Begin(record().generation + 1);
  const std::vector<std::string> versions = formation.nccl_versions();
  const TransportRecord transport = ChooseTransport({.members = group_.members(),
                                                     .nccl_versions = versions,
                                                     .encrypted = record().settings.encrypted});
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    keeper_.record().members[rank].nccl_version = versions[rank];
  }
  keeper_.FormGroup(
      {.members = size(), .speeds = formation.speeds(), .encodings = formation.encodings()},
      formation.loaded(), transport, turn);
  SendGroup(turn);
}

// As it is on record.
void JobController::SendGroup(Turn turn) {
  GroupMessage message{.generation = record().generation,
                       .size = size(),
                       .plan = record().newest_plan,
                       .nodes = NodesOf(group_.members()),
                       .transport = record().groups.back().transport.kind,
                       .loss_seconds = LossSeconds(record(), size()),
                       .encrypted = record().settings.encrypted};
  for (const LostMember& member : record().lost) message.rounds.push_back(member.message.rounds);
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    message.rank = rank;
    group_.Send(rank, message, turn.actions);
  }
}

void JobController::On(std::uint32_t rank, const EndpointMessage& message, Turn turn) {
  auto* const starting = std::get_if<phase::Starting>(&phase_);
  auto* const regrouping = std::get_if<phase::Regrouping>(&phase_);
  const bool again = regrouping != nullptr && regrouping->formation.has_value();
  if ((starting == nullptr && !again) || group_.SuspectSince()) return;
  GroupFormation& formation = again ? *regrouping->formation : starting->formation;
  if (!formation.SetEndpoint(rank, message)) return;
  if (again && regrouping->stale) return FormNext(turn);
  if (again) regrouping->deadline = turn.now + deadlines_.start;
  group_.SendToAll(
      PeersMessage{.generation = record().generation, .endpoints = formation.endpoints()},
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
  NoteMet();
  if (Met()) GoOnRegrouped(turn);
  // The deadline stays: it is looked at again when it passes, so that a report costs nothing.
  if (auto* training = std::get_if<phase::Training>(&phase_)) {
    training->heard = turn.now;
    if (std::exchange(training->stillness, std::nullopt)) TellTraining(turn);
  }
  group_.contact().Prove(message.report.round, turn.now);
  AwaitReturn(turn.now);  // the absent took part in that round, too
  policies::Report report = message.report;
  report.rank = rank;
  keeper_.NoteOutOfMemory(rank, message, turn);
  if (!keeper_.Add(report, turn)) return;
  regroups_in_vain_ = 0;
  if (keeper_.spike()) return GoBack(turn);
  Steer(turn);
  keeper_.ShareProgress(turn);
}

// As long as it takes no round ends: who validates is heard all the same, and all took part.
void JobController::On(std::uint32_t rank, const ValidatedMessage& message, Turn turn) {
  const bool counts = keeper_.tracker() && !keeper_.Secured();
  if (!counts || rank != 0 || message.generation != record().generation) return;
  if (auto* training = std::get_if<phase::Training>(&phase_)) training->heard = turn.now;
  group_.contact().ProveValidated(message.rounds, turn.now);
  keeper_.Add(message, turn);
  keeper_.ShareProgress(turn);
}

void JobController::Steer(Turn turn) {
  if (!In<phase::Training>() || group_.SuspectSince() || asked_to_regroup_) return;
  const std::optional<policies::Plan> plan = keeper_.Decide(turn);
  if (plan) group_.SendToAll(*plan, turn.actions);
}

// Its file is here. Durable before it counts; what it takes the place of may go then.
void JobController::On(std::uint32_t rank, const CheckpointedMessage& message, Turn turn) {
  const bool trains = keeper_.tracker() && !keeper_.Secured();
  if (!trains || rank != 0 || message.generation != record().generation) return;
  if (keeper_.NoteCheckpoint(message, turn.now)) keeper_.Announce(turn);
}

phase::Training JobController::TrainingFrom(Instant now) const {
  return {.since = now, .heard = now, .deadline = now + Rounds(deadlines_.look)};
}

Duration JobController::Rounds(const RoundMultiple& multiple) const {
  return multiple.Of(keeper_.tracker() ? keeper_.tracker()->LongRoundSeconds() : 0);
}

void JobController::Update(const JobUpdated& event, std::unique_ptr<policies::PlanPolicy> policy,
                           Turn turn) {
  if (IsFinal(state()) || state() == JobState::kStopping) return;
  keeper_.Update(event, std::move(policy));
  keeper_.Announce(turn);
  TrimSpares(turn);
  if (event.needs_restart) Suspend(false, "starts again with what the user changed", turn);
}

// ---- A user's wishes, and the queue's

void JobController::Change(const JobCancelled& event, Turn turn) {
  if (IsFinal(state())) return;
  if (state() == JobState::kStopping && !event.discard) return;  // a result is on its way already
  const bool trains =
      state() == JobState::kRunning || (state() == JobState::kSuspending && !keeper_.Secured());
  JobRecord& record = keeper_.record();
  record.cancel_reason = event.reason.empty() ? "cancelled" : event.reason;
  record.discard = event.discard;
  record.cancel_grace = event.grace;
  record.suspension.reset();
  // Who awaits another group would meet it for nothing.
  if (!trains || (event.discard && In<phase::Regrouping>())) {
    if (!event.discard && record.checkpoint) record.result = CheckpointResult(record);
    End(JobState::kCancelled, record.cancel_reason, turn);
    return StopWorkers(turn);
  }
  keeper_.Enter(JobState::kStopping, record.cancel_reason);
  keeper_.Announce(turn);
  if (auto* const returning = std::get_if<phase::Returning>(&phase_)) {
    returning->deadline = turn.now + CancelLimit();
  } else {
    AskToStop(turn);
  }
}

void JobController::Change(const JobPaused&, Turn turn) {
  const std::string reason = "paused by the user";
  if (state() != JobState::kQueued) return Suspend(true, reason, turn);
  phase_ = phase::Idle{};
  keeper_.Rest(std::nullopt);
  keeper_.Enter(JobState::kPaused, reason);
  keeper_.Announce(turn);
}

void JobController::Change(const JobResumed&, Turn turn) {
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

void JobController::Change(const DecisionReverted& event, Turn turn) {
  if (!WhyNotReverted(event.decision).empty() || !keeper_.Revert(event)) return;
  keeper_.Announce(turn);
  Steer(turn);
}

bool JobController::Movable() const {
  if (!group_.contact().missed().empty()) return false;
  const bool trains = In<phase::Training>() && !group_.SuspectSince() && !asked_to_regroup_;
  return In<phase::Starting>() || trains;
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

// Who awaits another group would leave for it: it is asked when that has met.
void JobController::AskToStop(Turn turn) {
  AwaitEnd(CancelLimit(), turn);
  if (In<phase::Ending>()) group_.SendToAll(StopOrder(), turn.actions);
}

StopMessage JobController::StopOrder() const {
  const JobRecord& record = keeper_.record();
  const bool suspend = record.suspension.has_value();
  return {.reason = suspend ? record.suspension->reason : record.cancel_reason,
          .discard = !suspend && record.discard,
          .suspend = suspend};
}

bool JobController::AskedToStop() const {
  return !record().cancel_reason.empty() || record().suspension;
}

// Why it ends.
std::string JobController::EndingWords() const {
  if (record().suspension) return record().suspension->reason;
  return record().cancel_reason.empty() ? "finishing" : record().cancel_reason;
}

Duration JobController::CancelLimit() const {
  const Duration edge = EdgeTime(record());
  const Duration standard =
      record().discard ? deadlines_.discard + edge
                       : deadlines_.cancel + edge + ValidationTime(record().progress.validation);
  return record().cancel_grace.value_or(standard);
}

void JobController::AwaitEnd(Duration limit, Turn turn) {
  DismissJoiners(turn);
  const phase::Ending ending{.limit = limit, .deadline = turn.now + limit};
  if (auto* const regrouping = std::get_if<phase::Regrouping>(&phase_)) {
    regrouping->ending = ending;
    return;
  }
  phase_ = ending;
  held_since_.reset();
  NoteHold(turn.now);  // who owes a word may be unheard already
}

// What a member says last is durable before it is acknowledged: a restart must not ask for it
// again.
void JobController::On(std::uint32_t rank, const EvaluatedMessage& message, Turn turn) {
  if (rank != 0 || keeper_.Secured()) return;
  group_.results().SetEvaluated(message);
  keeper_.record().ending = group_.results().ending();
  keeper_.Persist(turn);
}

void JobController::On(std::uint32_t rank, const FinishedMessage& message, Turn turn) {
  // It was never in a group, or is not needed any more.
  if (!keeper_.tracker() || keeper_.Secured()) return;
  // Said anew by an agent that was started again: the time for the files does not begin anew.
  if (group_.results().Finished(rank)) return ResumeIfAllBack(turn);
  group_.SetFinished(rank, message);
  JobRecord& record = keeper_.record();
  NoteMet();
  record.ending = group_.results().ending();
  const bool known = record.state == JobState::kStopping ||
                     (record.state == JobState::kSuspending && message.suspended);
  if (!known && !In<phase::Returning>()) AwaitEnd(deadlines_.finish, turn);
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
  if (In<phase::Regrouping>()) EndOrRegroup(turn);
  if (rank == 0) ExcuseWhoLeft(turn);
  ResumeIfAllBack(turn);
  TryFinish(turn);
}

// The time begins anew of whatever the node has to bring: its agent brings one file after the
// other, of all jobs, and tries each for as long as there is no room for it.
void JobController::OnUpload(const std::string& node, Turn turn) {
  const auto on_node = [&](const MemberRecord& member) { return member.node == node; };
  if (!node.empty() && std::ranges::none_of(group_.members(), on_node)) return;
  if (In<phase::Ending>() && !keeper_.Secured() && !group_.empty()) TryFinish(turn);
}

// Users see a snapshot as they see progress: nobody's change of the job is out of date by it.
void JobController::OnArtifactStored(const ArtifactStored& event, Turn turn) {
  const ArtifactRecord& artifact = event.artifact;
  // An agent may bring what a former group left when another one has taken its place.
  if (IsFinal(state()) || !MayBring(record(), event.worker, artifact)) return;
  const bool present = !keeper_.Secured() && group_.Makes(event.worker);
  if (!present && !IsSnapshot(artifact)) return;
  if (artifact.path.starts_with(protocol::kCheckpointFolder)) {
    // No file of an ending; but those may have waited behind it, and their time begins anew.
    if (In<phase::Ending>()) TryFinish(turn);
    return;
  }
  if (present) {
    group_.results().AddArtifact(artifact);
    keeper_.record().ending = group_.results().ending();
  } else {
    KeepSnapshot(keeper_.record(), artifact);
  }
  keeper_.Persist(turn);
  if (IsSnapshot(artifact)) {
    turn.actions.push_back(PublishSnapshot{.job = record().id, .snapshot = artifact});
  }
  if (present) TryFinish(turn);
}

void JobController::TryFinish(Turn turn) {
  const ResultCollector& results = group_.results();
  if (!results.AllFinished()) return;
  if (const std::optional<std::uint32_t> odd = results.OddRank()) {
    return Lose("members ended with different parameters: " + WorkerName(group_.members()[*odd]) +
                    " differs from " + WorkerName(group_.members().front()),
                turn);
  }
  JobRecord& record = keeper_.record();
  const bool keeps = !record.discard;
  if (keeps && !results.MissingFiles().empty()) {
    // The time starts anew with each file, as their sizes are not known. A leader that is missed
    // after a restart may repeat its last word; the verdict comes sooner than any file is overdue.
    if (In<phase::Returning>()) return AwaitReturn(turn.now);
    return AwaitEnd(deadlines_.artifacts, turn);
  }
  if (keeps && record.state == JobState::kSuspending) return Secure(turn);
  // A program may evaluate and save what it trained: the job is over when its processes are.
  if (keeps && record.settings.program && !group_.AllGone()) {
    if (!programs_end_by_) programs_end_by_ = turn.now + deadlines_.program_exit;
    return AwaitEnd(*programs_end_by_ - turn.now, turn);
  }
  Succeed(turn);
}

// Or is cancelled, with all that was asked for.
void JobController::Succeed(Turn turn) {
  JobRecord& record = keeper_.record();
  const ResultCollector& results = group_.results();
  if (!record.discard) record.result = results.Make(keeper_.tracker()->OwnSpeedSum());
  const bool cancelled = !record.cancel_reason.empty();
  std::string reason = cancelled ? record.cancel_reason : results.leader().reason;
  if (!failed_behind_.empty()) reason += "; behind its training " + failed_behind_;
  End(cancelled ? JobState::kCancelled : JobState::kSucceeded, std::move(reason), turn);
}

// All have said their last word and the checkpoint is at the coordinator.
void JobController::Secure(Turn turn) {
  const ArtifactRecord* const file = group_.results().Find(kCheckpointFile);
  if (file == nullptr) return Lose("its workers ended without a checkpoint", turn);
  const FinishedMessage& leader = group_.results().leader();
  keeper_.Secure({.sha256 = file->sha256, .size_bytes = file->size_bytes, .rounds = leader.rounds},
                 leader.train_seconds, turn.now);
  group_.Acquit();
  phase_ = phase::Leaving{.deadline = turn.now + deadlines_.exit};
  keeper_.Announce(turn);
  LeaveIfGone(turn);
}

void JobController::LeaveIfGone(Turn turn) {
  if (keeper_.Secured() && group_.AllGone()) GoOnLater(turn);
}

// The members stay on record, so that their ids are not given to others.
void JobController::GoOnLater(Turn turn) {
  JobRecord& record = keeper_.record();
  const std::optional<Suspension> ended = std::exchange(record.suspension, std::nullopt);
  const bool lost = ended && ended->lost;
  const bool went_back = std::exchange(went_back_, false);
  const bool excused = !std::exchange(leavers_, {}).empty() || went_back || record.fruitless == 0;
  record.suspensions += ended && !lost ? 1 : 0;
  phase_ = phase::Idle{};
  group_ = {};
  keeper_.EndGroup();
  keeper_.Enter(
      ended && ended->pause ? JobState::kPaused : JobState::kQueued,
      ended ? ended->reason : "queued again: the coordinator restarted while it was starting");
  if (lost && !ended->pause && excused) {
    record.state_reason = "goes on " + WhereFrom(record) + ": " + ended->reason;
  } else if (lost && !ended->pause) {
    record.state_reason = RestWords(record, ended->reason);
    Rest(turn);
  }
  keeper_.Announce(turn);
}

// ---- Failures

void JobController::On(std::uint32_t rank, const FailedMessage& message, Turn turn) {
  if (keeper_.Secured()) return;  // it is being ended anyway
  const std::optional<Finding> verdict = group_.OnFailed(rank, message, turn.now);
  if (verdict && verdict->own) return Conclude(*verdict, turn);
  if (In<phase::Regrouping>() || (verdict && Regroups())) return Regroup(turn);
  if (verdict) Conclude(*verdict, turn);
}

void JobController::OnWorkerExited(const WorkerExited& event, Turn turn) {
  const std::optional<std::uint32_t> rank = group_.RankOf(event.worker);
  if (rank) return Depart({*rank}, event, turn);
  if (joiners_.Has(event.worker)) return LoseJoiners({event.worker}, event, turn);
  group_.LoseFormer(event.worker);
  LeaveIfGone(turn);
  if (AllThere()) TryFinish(turn);
}

void JobController::OnNodeLost(const NodeLost& event, Turn turn) {
  group_.contact().Hear(event.node, turn.now);
  NoteHold(turn.now);
  const auto tells = [&event](WorkerId worker) { return event.HasToTellOf(worker); };
  group_.LoseFormerOn(event.node, tells);
  std::vector<WorkerId> joiners = JoinersOn(event.node);
  std::erase_if(joiners, tells);
  LoseJoiners(joiners, event, turn);
  std::vector<std::uint32_t> lost = group_.LiveOn(event.node);
  std::erase_if(lost, [&](std::uint32_t rank) { return tells(group_.members()[rank].worker); });
  Depart(lost, event, turn);
}

// All of them are gone before anything is concluded, so that nobody asks them to stop.
void JobController::Depart(const std::vector<std::uint32_t>& ranks, const Departure& departure,
                           Turn turn) {
  group_.Depart(ranks, departure);
  if (keeper_.Secured()) return LeaveIfGone(turn);
  if (IsFinal(state())) return;
  if (AllThere()) {
    NoteExit(ranks, departure);
    return TryFinish(turn);
  }
  if (ranks.empty()) return;
  const std::optional<Finding> verdict = group_.Judge(ranks, departure, turn.now);
  if (group_.SuspectSince() && (In<phase::Regrouping>() || Regroups())) return Regroup(turn);
  if (verdict) return Conclude(*verdict, turn);
  if (!group_.results().Finished(0)) return;
  ExcuseWhoLeft(turn);
  TryFinish(turn);
}

void JobController::Conclude(const Finding& verdict, Turn turn) {
  if (verdict.own) return Fail(verdict.reason, verdict.field, turn);
  const bool unreadable = verdict.field == protocol::kCheckpointField && In<phase::Starting>();
  Lose(unreadable ? keeper_.GiveUpCheckpoint(verdict.reason) : verdict.reason, turn);
}

// The group is lost, for a reason that is not the job's own. What is left of it is ended as that of
// a suspended job whose checkpoint is there, so that a restart, a user and the queue find nothing
// new; that checkpoint is an older one, or none.
// counts: as an attempt of those that settings.retries allows.
void JobController::Lose(const std::string& reason, Turn turn, bool counts) {
  JobRecord& record = keeper_.record();
  if (!record.cancel_reason.empty()) return Fail(reason, "", turn);
  const bool excused = !leavers_.empty() || !counts;  // it was said in time
  const bool tried_again = keeper_.LoseGroup(reason, excused, turn.now);
  if (!tried_again) return Fail(GivenUpWords(record, reason), "", turn);
  record.suspension = Suspension{.pause = record.suspension && record.suspension->pause,
                                 .reason = reason,
                                 .secured = true,
                                 .lost = true};
  if (record.state == JobState::kSuspending) {
    record.state_reason = reason;
  } else {
    keeper_.Enter(JobState::kSuspending, reason);
  }
  group_.Acquit();
  keeper_.Announce(turn);
  StopWorkers(turn);
  LeaveIfGone(turn);
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
  DismissJoiners(turn);
  phase_ = phase::Leaving{.deadline = turn.now + deadlines_.exit};
  keeper_.record().former_checkpoints.clear();  // nor needs a success the newest
  if (state == JobState::kSucceeded) keeper_.record().checkpoint.reset();
  keeper_.Enter(state, std::move(reason));
  keeper_.Announce(turn);
}

void JobController::StopWorkers(Turn turn) {
  DismissJoiners(turn);
  phase_ = phase::Leaving{};
  group_.Stop(deadlines_.grace, turn.actions);
}

}  // namespace tactus::job
