// The part of JobController that waits: for who is not heard, as the network or the coordinator
// itself was away, and until a deadline passes.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "coordinator/job/attempts.h"
#include "coordinator/job/job_controller.h"
#include "coordinator/job/wording.h"

namespace tactus::job {
namespace {

// Of jobs that are looked at about then, so that one wake serves all.
Instant SharedTick(Instant time) { return std::chrono::ceil<std::chrono::seconds>(time); }

// Who rests is woken by the queue.
std::optional<Instant> DeadlineOf(const phase::Idle&) { return std::nullopt; }
std::optional<Instant> DeadlineOf(const phase::Regrouping& phase) {
  return phase.ending ? std::min(phase.deadline, phase.ending->deadline) : phase.deadline;
}
std::optional<Instant> DeadlineOf(const auto& phase) { return phase.deadline; }
std::optional<Instant> DeadlineOf(const Phase& phase) {
  return std::visit([](const auto& present) { return DeadlineOf(present); }, phase);
}

}  // namespace

// ---- Members that are not heard

void JobController::OnNodeUnreachable(const NodeUnreachable& event, Turn turn) {
  // Nothing is waited for of workers that are to leave: if it is heard again, they are strays.
  if (In<phase::Leaving>()) {
    group_.StopOn(event.node, deadlines_.grace, turn.actions);
    group_.LoseFormerOn(event.node, [](WorkerId) { return false; });
    return Depart(group_.LiveOn(event.node), NodeLost{.node = event.node, .reason = event.reason},
                  turn);
  }
  // Who was to join or has left is not waited for: the order to end waits for the node.
  for (const WorkerId worker : JoinersOn(event.node)) {
    GiveUpJoiner(worker, "its node is not heard: " + event.reason, turn);
  }
  group_.LoseFormerOn(event.node, [](WorkerId) { return false; });
  const auto on_node = [&](const MemberRecord& member) { return member.node == event.node; };
  if (std::ranges::none_of(group_.members(), on_node)) return;
  group_.contact().Miss(event.node, event.reason, turn.now);
  AwaitReturn(turn.now);
  NoteHold(turn.now);
  TellTraining(turn);
}

// Nobody can be heard whom the present phase waits for. A cancel's limit is what its user gave.
bool JobController::Holds() const {
  if (group_.contact().missed().empty()) return false;
  const bool cancelled = !record().cancel_reason.empty();
  if (In<phase::Ending>()) return !cancelled && !AllThere() && group_.EndAwaitsUnheard();
  const bool together = In<phase::Starting>() || In<phase::Training>() || In<phase::Regrouping>();
  return together && !cancelled && !group_.AnyHeard();
}

// To be called whenever a node comes or goes. Other deadlines stand still meanwhile.
void JobController::NoteHold(Instant now) {
  if (Holds()) {
    if (!held_since_) held_since_ = now;
  } else if (held_since_) {
    Prolong(phase_, now - *held_since_);
    held_since_.reset();
  }
}

// How long who is not heard may be so, since the last sign of life; unset: it is no loss for now.
// Before a round was seen, nobody knows how long one takes; before the first, none is expected.
std::optional<Duration> JobController::Patience() const {
  if (Holds()) return record().settings.hold;
  if (group_.contact().missed().empty()) return std::nullopt;
  if (In<phase::Starting>()) return deadlines_.silence.least;
  if (!In<phase::Training>() && !In<phase::Regrouping>()) return std::nullopt;
  const bool known = keeper_.tracker()->LongRoundSeconds() > 0;
  return Rounds(known ? deadlines_.silence : deadlines_.stall) + EdgeTime(record());
}

std::string JobController::TrainingWords() const {
  const std::string words = "training on " + WorkerCount(size());
  const Contact& contact = group_.contact();
  if (!contact.missed().empty() && !group_.AnyHeard()) {
    return words + ", of which none is heard: waits up to " +
           DurationWords(record().settings.hold) + JoinerWords();
  }
  if (!contact.missed().empty()) {
    return words + "; not heard: node " + NodeNames(contact.missed()) + StandstillWords() +
           JoinerWords();
  }
  return words + StandstillWords() + JoinerWords();
}

std::string JobController::StandstillWords() const {
  const auto& stillness = std::get<phase::Training>(phase_).stillness;
  const Standstill present = stillness ? stillness->Present() : Standstill{};
  return present.telling() ? "; " + WordsOf(present, group_.members()) : "";
}

void JobController::TellTraining(Turn turn) {
  if (!In<phase::Training>()) return;
  std::string words = TrainingWords();
  if (words == record().state_reason) return;
  keeper_.record().state_reason = std::move(words);
  keeper_.Announce(turn);
}

// To workers that may have missed what was said last; they know a plan by its version and a stop by
// being asked.
void JobController::RepeatTo(const std::vector<std::uint32_t>& ranks, Turn turn) {
  const policies::Plan* const plan = keeper_.tracker() ? keeper_.Travelling() : nullptr;
  for (const std::uint32_t rank : ranks) {
    if (In<phase::Training>() && plan != nullptr) group_.Send(rank, *plan, turn.actions);
    if (asked_to_regroup_) group_.Send(rank, RegroupOrder(), turn.actions);
    if (In<phase::Ending>() && AskedToStop()) group_.Send(rank, StopOrder(), turn.actions);
  }
  if (!ranks.empty() && In<phase::Regrouping>()) RepeatGroup(turn);
}

// Nothing is lost with workers that have not trained, so it is no attempt that failed.
void JobController::StartElsewhere(Turn turn) {
  const auto& [node, reason] = *group_.contact().missed().begin();
  Suspend(false, "node " + node + " is lost: " + reason + "; starts on others", turn);
}

void JobController::LoseUnheard(Turn turn) {
  const std::string how =
      (Holds() ? ", nor any other node of the job for " : ", and no newer round came for ") +
      DurationWords(*Patience());
  const std::map<std::string, std::string> missed = group_.contact().missed();
  for (const auto& [node, reason] : missed) {
    group_.StopOn(node, deadlines_.grace, turn.actions);
    OnNodeLost({.node = node, .reason = reason + how}, turn);
  }
}

void JobController::Rest(Turn turn) {
  const Instant until = turn.now + BackOff(record().fruitless);
  phase_ = phase::Idle{.rests_until = until};
  keeper_.Rest(until);
}

// ---- After a restart

void JobController::Restore(const std::string& memory, Turn turn) {
  keeper_.Recall(memory, turn);
  keeper_.SetJoiners({});  // whose agents end them when they are back
  switch (state()) {
    case JobState::kStarting:
      return GoOnLater(turn);
    case JobState::kSuspending:
      if (keeper_.Secured()) return GoOnLater(turn);
      break;
    case JobState::kRunning:
    case JobState::kStopping:
      break;
    case JobState::kQueued:
      // How much of it is over, no clock says that both coordinators had.
      if (record().retry_time == 0) return;
      Rest(turn);
      return keeper_.Announce(turn);
    default:
      return;
  }
  group_ = Group(record().members, false);
  group_.Restore(record().ending, record().lost);
  for (const MemberRecord& member : group_.members()) {
    group_.contact().Miss(member.node, "the coordinator restarted and it did not come back",
                          turn.now);
  }
  phase_ = phase::Returning{.deadline = turn.now + CancelLimit()};
  AwaitReturn(turn.now);
  keeper_.ResumeGroup();
  keeper_.record().state_reason =
      "the coordinator restarted and waits for " + WorkerCount(size()) + " to report back";
  keeper_.Announce(turn);
  ResumeIfAllBack(turn);  // where all had said their last word
  TryFinish(turn);
}

// Who cancelled does not wait for who does not come back.
void JobController::AwaitReturn(Instant now) {
  auto* const returning = std::get_if<phase::Returning>(&phase_);
  if (returning == nullptr || !record().cancel_reason.empty()) return;
  returning->deadline = now + record().settings.hold;
}

// What it says of who runs is the truth, whatever was thought of it meanwhile.
void JobController::OnNodeJoined(const NodeJoined& event, Turn turn) {
  const bool missed = group_.contact().Hear(event.node, turn.now);
  if (!event.same_incarnation) {
    const auto to_come = [&event](WorkerId worker) {
      return event.Runs(worker) || event.HasToTellOf(worker);
    };
    group_.LoseFormerOn(event.node, to_come);
    std::vector<WorkerId> joiners = JoinersOn(event.node);
    std::erase_if(joiners, to_come);
    LoseJoiners(joiners, AgentRestarted{}, turn);
  }
  std::vector<std::uint32_t> lost;
  std::vector<std::uint32_t> back;
  for (const std::uint32_t rank : group_.LiveOn(event.node)) {
    const WorkerId worker = group_.members()[rank].worker;
    if (event.Runs(worker)) {
      group_.Return(rank);
      back.push_back(rank);
    } else if (event.HasToTellOf(worker)) {
      group_.Return(rank);
    } else if (group_.EndedWell(rank, event.incarnation)) {
      group_.Depart({rank}, WorkerExited{.worker = worker});
    } else if (!event.same_incarnation) {
      lost.push_back(rank);
    }
  }
  NoteHold(turn.now);
  if (missed) {
    TellTraining(turn);
    GiveTimeToSpeak(turn.now);
  }
  if (!event.same_incarnation) RepeatTo(back, turn);
  Depart(lost, AgentRestarted{.awaited = In<phase::Returning>()}, turn);
  ResumeIfAllBack(turn);
}

void JobController::ResumeIfAllBack(Turn turn) {
  if (!In<phase::Returning>() || group_.SuspectSince()) return;
  if (!group_.Absent().empty()) return;
  JobRecord& record = keeper_.record();
  if (!record.lost.empty() && Regroups()) return Regroup(turn);
  if (record.state == JobState::kRunning) {
    phase_ = TrainingFrom(turn.now);
    record.state_reason = TrainingWords();
  } else {
    AwaitEnd(deadlines_.finish, turn);
    record.state_reason = EndingWords();
  }
  keeper_.Announce(turn);
  // Nobody knows whether the former coordinator's last plan and stop reached them all; workers know
  // a plan by its version and a stop by being asked.
  if (const policies::Plan* plan = keeper_.Travelling()) {
    group_.SendToAll(*plan, turn.actions);
  }
  if (AskedToStop() && !group_.results().AllFinished()) AskToStop(turn);
}

// ---- Members that close no round

void JobController::LookAtAll(Turn turn) {
  Stillness& stillness = *std::get<phase::Training>(phase_).stillness;
  stillness.Look();
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const MemberRecord& member = group_.members()[rank];
    if (!group_.Live(rank) || group_.contact().Missed(member.node)) continue;
    if (!stillness.Ask(rank)) continue;
    turn.actions.push_back(LookAtWorker{.node = member.node, .worker = member.worker});
  }
}

// Who stands still for certain is told of at once; of the others the next look tells more.
void JobController::On(std::uint32_t rank, const StandingMessage& message, Turn turn) {
  if (auto* const regrouping = std::get_if<phase::Regrouping>(&phase_)) {
    return See(rank, message, *regrouping, turn.now);
  }
  auto* const training = std::get_if<phase::Training>(&phase_);
  if (training == nullptr || !training->stillness) return;
  training->stillness->Note(rank, message, turn.now);
  if (training->stillness->Present().certain()) TellTraining(turn);
}

// ---- Members whose node is leaving

// Whoever waits for it anyway does so: a checkpoint or a result that is under way is as good a
// goodbye. Nothing is asked of a group that was told already; it learns why.
void JobController::OnNodeLeaving(const NodeLeaving& event, Turn turn) {
  std::vector<WorkerId> workers = JoinersOn(event.node);
  for (const std::uint32_t rank : group_.LiveOn(event.node)) {
    workers.push_back(group_.members()[rank].worker);
  }
  const auto on_node = [&](const MemberRecord& member) { return member.node == event.node; };
  const bool awaited = !In<phase::Idle>() && !In<phase::Leaving>();
  const std::string reason = "node " + event.node + " is leaving: " + event.leave.reason;
  if (!awaited || std::ranges::none_of(group_.members(), on_node)) {
    return GiveBack(workers, reason, turn);
  }
  leavers_[event.node] = {.reason = event.leave.reason,
                          .gone_by = turn.now + event.leave.within + deadlines_.second_look};
  if (ChangesInPlace()) return GiveBack(workers, reason, turn);
  JobRecord& record = keeper_.record();
  const bool suspending = record.suspension && !record.suspension->lost;
  if (!suspending) return Suspend(false, reason, turn);
  if (record.suspension->pause || record.suspension->reason == reason) return;
  record.suspension->reason = record.state_reason = reason;
  keeper_.Announce(turn);
}

// Of the nodes that are leaving and owe something, the one that is gone for certain first; null:
// there is none. Who goes on without it awaits no more than the end of its workers.
const std::pair<const std::string, JobController::Leaver>* JobController::FirstLeaver() const {
  if (In<phase::Idle>() || In<phase::Leaving>()) return nullptr;
  const std::pair<const std::string, Leaver>* first = nullptr;
  for (const auto& leaver : leavers_) {
    const std::string& node = leaver.first;
    if (!group_.Owes(node) || (ChangesInPlace() && group_.LiveOn(node).empty())) continue;
    if (first == nullptr || leaver.second.gone_by < first->second.gone_by) first = &leaver;
  }
  return first;
}

// ---- Deadlines

// A verdict that is due comes first: it says more than that the time for something else is up.
void JobController::Tick(Turn turn) {
  const std::optional<Instant> verdict = VerdictDue();
  if (verdict && turn.now >= *verdict) {
    // Members that nobody can tell of the others do not meet, which is no fault of the job's.
    const bool unmet = In<phase::Starting>() && !group_.contact().missed().empty() &&
                       group_.Verdict().evidence == Evidence::kConsequence;
    return unmet ? StartElsewhere(turn) : Conclude(group_.Verdict(), turn);
  }
  LookAtJoiners(turn);
  if (const auto* const leaver = FirstLeaver(); leaver && turn.now >= leaver->second.gone_by) {
    const auto [node, left] = *leaver;
    if (!ChangesInPlace()) {
      return Lose("node " + node + " left before its workers had ended: " + left.reason, turn);
    }
    group_.StopOn(node, deadlines_.grace, turn.actions);
    return OnNodeLost({.node = node, .reason = "it is leaving: " + left.reason}, turn);
  }
  const std::optional<Duration> patience = Patience();
  if (patience && group_.contact().Over({*patience, deadlines_.second_look}, turn.now)) {
    return In<phase::Starting>() ? StartElsewhere(turn) : LoseUnheard(turn);
  }
  const std::optional<Instant> deadline = DeadlineOf(phase_);
  if (!deadline || turn.now < *deadline || Holds()) return;
  const std::optional<std::string> loss =
      std::visit([&](auto& present) { return Overdue(present, turn); }, phase_);
  if (loss) Lose(*loss, turn);
}

std::optional<Instant> JobController::VerdictDue() const {
  if (In<phase::Regrouping>()) return std::nullopt;  // which has deadlines of its own
  const std::optional<Instant> since = group_.SuspectSince();
  return since && !IsFinal(state()) ? std::optional(*since + deadlines_.inquiry) : std::nullopt;
}

std::optional<Instant> JobController::Deadline() const {
  std::optional<Instant> next = VerdictDue();
  const auto consider = [&next](std::optional<Instant> due) {
    if (due && (!next || *due < *next)) next = due;
  };
  if (!Holds()) consider(DeadlineOf(phase_));
  if (const auto* const leaver = FirstLeaver()) consider(leaver->second.gone_by);
  consider(JoinersDue());
  if (const std::optional<Duration> patience = Patience()) {
    consider(group_.contact().LookDue(*patience));
  }
  return next;
}

std::optional<Instant> JobController::RestsUntil() const {
  const auto* const idle = std::get_if<phase::Idle>(&phase_);
  const bool waits = idle != nullptr && state() == JobState::kQueued;
  return waits ? idle->rests_until : std::nullopt;
}

std::optional<std::string> JobController::Overdue(const phase::Idle&, Turn) { return std::nullopt; }

std::optional<std::string> JobController::Overdue(const phase::Starting& starting, Turn) {
  return "not ready within " + DurationWords(deadlines_.start) + ": " +
         starting.formation.Obstacle(group_.members());
}

std::optional<std::string> JobController::Overdue(const phase::Returning&, Turn) {
  return "the coordinator restarted and " + WorkerNames(group_.Absent()) + " did not come back";
}

// The time counts from the first look: while the coordinator itself stood still nobody was asked,
// and what was answered before says nothing.
std::optional<std::string> JobController::Overdue(phase::Training& training, Turn turn) {
  const Duration pause = Rounds(deadlines_.look);
  const bool late = turn.now > training.deadline + deadlines_.second_look;
  if (turn.now < training.heard + pause) {
    training.deadline = SharedTick(training.heard + pause);
    return std::nullopt;
  }
  if (training.stillness && !late) {
    const Standstill standstill = training.stillness->Conclude(turn.now);
    const Stillness::Patience patience{.certain = Rounds(deadlines_.still),
                                       .doubtful = Rounds(deadlines_.stall)};
    if (training.stillness->Over(patience, turn.now)) {
      const std::string words =
          WordsOf(standstill, group_.members()) + "; no newer round for " +
          DurationWords(std::chrono::floor<std::chrono::seconds>(turn.now - training.heard)) +
          ", after " + std::to_string(keeper_.tracker()->rounds()) + " rounds";
      return GiveUpStill(standstill, words, turn);
    }
    TellTraining(turn);
  } else {
    training.stillness.emplace(size(), turn.now);
  }
  LookAtAll(turn);
  const bool alone = training.stillness->unanswered();
  training.deadline = SharedTick(turn.now + (alone ? deadlines_.look.most : pause));
  return std::nullopt;
}

std::optional<std::string> JobController::Overdue(const phase::Ending& ending, Turn turn) {
  const std::string limit = DurationWords(ending.limit);
  if (!group_.results().AllFinished()) return "its workers did not finish within " + limit;
  // Programs that go on: what they were asked for is there.
  if (group_.results().MissingFiles().empty()) {
    Succeed(turn);
    StopWorkers(turn);
    return std::nullopt;
  }
  return "the result's file " + group_.results().MissingFiles().front() +
         " did not arrive within " + limit;
}

std::optional<std::string> JobController::Overdue(const phase::Leaving&, Turn turn) {
  StopWorkers(turn);
  LeaveIfGone(turn);
  return std::nullopt;
}

}  // namespace tactus::job
