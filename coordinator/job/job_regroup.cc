// The part of JobController that goes on without those who are lost.
//
//   a group that trains, ends or is awaited after a restart loses a member, or a member loses it,
//   or all leave it as they were asked to (job_resize.cc)
//     -> each of those who stay says that it lost this generation, and keeps what it holds
//     -> they are on record as the members of the next one, whose number, plan and ranks they learn
//     -> their addresses, then all of these, then the first round: it trains, or ends, as before
//
// Who is gone is known for certain: its agent saw its exit, its node has another agent, or it said
// itself that it fails. Who says nothing while the others wait, though its agent answers, is taken
// for gone and ended, unless its agent sees that it does something; in that case, or where its node
// is not heard, not before JobDeadlines::silence is over. Where
// nobody who stays says that it lost the group, as workers of older versions do not, or nobody
// stays, the attempt is lost. Where several members make one replica, it goes on whole or not at
// all: those of one that lost a member are ended with it, and where none is left, the attempt is
// lost.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/job/job_controller.h"
#include "coordinator/job/mesh_places.h"
#include "coordinator/job/wording.h"

namespace tactus::job {
namespace {

// Groups of the same members in a row that come to no round: what breaks them does not pass.
constexpr int kRegroupsInVainMax = 4;

// `rounds`, or twice as long as the last validation or the longest choice of samples took, if that
// is longer: who is about one may notice nothing before it is through.
Duration TimeToSpeak(const JobRecord& record, Duration rounds, Duration most) {
  const std::optional<ValidationRecord>& newest = record.progress.validation.newest;
  const double edge = std::max(newest ? newest->seconds : 0, record.selection_seconds);
  return std::max(rounds, Duration(Seconds(std::min(2 * edge, ToSeconds(most)))));
}

}  // namespace

// While rank 0 has not said its last word, with which all is done.
bool JobController::Regroups() const {
  const bool together = In<phase::Training>() || In<phase::Ending>() || In<phase::Returning>() ||
                        In<phase::Regrouping>();
  return together && keeper_.tracker() && !keeper_.Secured() && !record().discard &&
         !group_.results().Finished(0) && !group_.Staying().empty() &&
         !(OfMeshes() && WholeReplicas().empty());
}

// Of the members who stay, those of replicas that can go on: all of whose members are there and, as
// far as they have said so, have applied the same rounds, as each has a part of the model.
std::vector<std::uint32_t> JobController::WholeReplicas() const {
  const std::uint32_t devices = record().settings.mesh_devices;
  std::vector<std::uint32_t> ranks = OfWholeMeshes(group_.Staying(), devices);
  std::map<std::uint32_t, std::set<std::uint64_t>> rounds;  // by replica
  for (const std::uint32_t rank : ranks) {
    const std::optional<GroupLostMessage>& lost = group_.Lost(rank);
    if (lost) rounds[rank / devices].insert(lost->rounds);
  }
  std::erase_if(ranks, [&](std::uint32_t rank) { return rounds[rank / devices].size() > 1; });
  return ranks;
}

void JobController::On(std::uint32_t rank, const GroupLostMessage& message, Turn turn) {
  if (!keeper_.tracker() || keeper_.Secured()) return;
  if (message.generation < record().generation) return Correct(rank, message, turn);
  if (message.generation != record().generation || !group_.results().Owes(rank)) return;
  group_.SetLost(rank, message, turn.now);
  keeper_.record().lost = group_.lost();
  const std::uint64_t revision = record().revision;
  TakeWord(turn);
  // Durable before it is acknowledged, whatever came of it.
  if (record().revision == revision) keeper_.Persist(turn);
}

void JobController::TakeWord(Turn turn) {
  if (group_.results().Finished(0)) {
    ExcuseWhoLeft(turn);
    return TryFinish(turn);
  }
  const bool none_whole = In<phase::Regrouping>() && OfMeshes() && WholeReplicas().empty();
  if (!Regroups() && none_whole) return TakeNoneWhole(turn);
  if (!Regroups()) return;  // the inquiry's verdict ends it
  // The next group fell apart before its first round: its members are asked like those of any.
  auto* const regrouping = std::get_if<phase::Regrouping>(&phase_);
  if (regrouping != nullptr && regrouping->formation) BeginRegrouping(turn);
  Regroup(turn);
}

// Of meshes none is left whole by what was just said, which no word to come changes: also where
// nobody is known to be gone, as members that live left their group on purpose.
void JobController::TakeNoneWhole(Turn turn) {
  const bool whole = !OfWholeMeshes(group_.Staying(), record().settings.mesh_devices).empty();
  const std::string unequal =
      whole ? "; no replica goes on, as its members had applied unequal rounds" : "";
  if (!group_.SuspectSince()) return Lose(LossWords() + unequal, turn);
  Finding verdict = group_.Verdict();
  verdict.reason += unequal;
  Conclude(verdict, turn);
}

// A member leaves a former group when it hears of the next one. Where that was formed by what was
// known before, as the coordinator had restarted or the group between had come to nothing, it may
// have gone on meanwhile; it says so before its address, so before anybody meets. A coordinator
// that has restarted since may be the first to hear of it: then that group never met.
void JobController::Correct(std::uint32_t rank, const GroupLostMessage& message, Turn turn) {
  auto* const regrouping = std::get_if<phase::Regrouping>(&phase_);
  const std::optional<GroupLostMessage>& known = group_.Lost(rank);
  const bool forms = regrouping != nullptr && regrouping->formation;
  if ((!forms && !WasFormed()) || !known || known->rounds == message.rounds) return;
  if (forms) regrouping->stale = true;
  group_.SetRounds(rank, message.rounds);
  keeper_.record().lost = group_.lost();
  keeper_.Persist(turn);
}

// Something has changed in who stays, or what they said.
void JobController::Regroup(Turn turn) {
  if (!Regroups()) return Conclude(group_.Verdict(), turn);
  if (!In<phase::Regrouping>()) BeginRegrouping(turn);
  auto& regrouping = std::get<phase::Regrouping>(phase_);
  const bool whole = group_.Staying().size() == size();
  // Of a group that has not begun all is known: who has met leaves it for the next one.
  if (regrouping.formation) {
    if (!whole) FormNext(turn);
    return;
  }
  if (!Unspoken().empty()) return;
  if (!whole || LeftOnPurpose()) return FormNext(turn);
  // A connection broke, or somebody is gone of whom nobody said so yet.
  regrouping.deadline = std::max(turn.now, regrouping.since + deadlines_.inquiry);
}

void JobController::BeginRegrouping(Turn turn) {
  const Duration speak = TimeToSpeak(record(), Rounds(deadlines_.regroup), deadlines_.finish);
  phase::Regrouping regrouping{.since = turn.now, .deadline = turn.now + speak};
  if (const auto* ending = std::get_if<phase::Ending>(&phase_)) {
    regrouping.ending = *ending;
  } else if (const auto* former = std::get_if<phase::Regrouping>(&phase_)) {
    regrouping.ending = former->ending;
  } else if (state() != JobState::kRunning) {
    const Duration limit = AskedToStop() ? CancelLimit() : deadlines_.finish;
    regrouping.ending = phase::Ending{.limit = limit, .deadline = turn.now + limit};
  }
  if (WasFormed()) {
    regrouping.formation.emplace(size(), record().generation, GroupFormation::Phase::kFormed);
  }
  phase_ = std::move(regrouping);
  held_since_.reset();
  NoteHold(turn.now);
  keeper_.record().state_reason = "regrouping: " + LossWords();
  keeper_.Announce(turn);
}

// Of those who lost the group before it a former coordinator formed this one, which may have met
// since.
bool JobController::WasFormed() const {
  const std::vector<LostMember>& lost = record().lost;
  return In<phase::Returning>() && lost.size() == size() &&
         std::ranges::none_of(lost, [this](const LostMember& member) {
           return member.message.generation == record().generation;
         });
}

// Of what a former coordinator formed a member has reported a round, or said its last word.
void JobController::NoteMet() {
  if (!WasFormed()) return;
  group_.ForgetLost();
  keeper_.record().lost.clear();
}

std::string JobController::LossWords() const {
  if (group_.SuspectSince()) return group_.Verdict().reason;
  const LostMember& first = record().lost.front();
  if (first.message.planned) {
    // A coordinator that restarted knows no more of it than what the members were told.
    const std::string words = ChangeWords();
    return words.empty() ? first.message.reason : words;
  }
  return FindingOf(group_.members()[first.rank], first.message).reason;
}

// Of those who stay, who has not said that it lost this generation, or is not back to be spoken to.
std::vector<std::uint32_t> JobController::Unspoken() const {
  std::vector<std::uint32_t> ranks = group_.Staying();
  std::erase_if(ranks, [this](std::uint32_t rank) {
    const std::optional<GroupLostMessage>& lost = group_.Lost(rank);
    return group_.Present(rank) && lost && lost->generation == record().generation;
  });
  return ranks;
}

// The members are durable before the first of them hears of the group, and before who is left out
// is ended: a coordinator that came to know neither would take the end of one for a loss.
void JobController::FormNext(Turn turn) {
  const std::string reason = LossWords();
  if (!AnyHasState(GoingOn())) return Lose(reason, turn);
  const bool on_purpose = LeftOnPurpose();
  const std::vector<std::uint32_t> outpaced =
      on_purpose ? Outpaced() : std::vector<std::uint32_t>();
  std::vector<std::uint32_t> ranks = GoingOn();  // which newcomers count for, until they are taken
  if (ranks.empty()) return Lose(reason, turn);  // of meshes, none is whole
  const std::vector<Joiner> newcomers = joiners_.Take(Room() + outpaced.size());
  // Where the members were told of rounds that are not theirs, nothing has failed.
  const bool corrected = std::get<phase::Regrouping>(phase_).stale;
  const bool again =
      group_.Staying().size() == size() && !on_purpose && newcomers.empty() && !corrected;
  regroups_in_vain_ = again ? regroups_in_vain_ + 1 : 0;
  if (regroups_in_vain_ > kRegroupsInVainMax) return Lose(reason, turn);
  if (again) LeaveOutNewcomers(turn);
  if (regroups_in_vain_ > 1) LeaveOutBlamed(turn);
  if (again) ranks = GoingOn();
  if (ranks.empty()) return Lose(reason, turn);  // nor any more
  for (const std::uint32_t rank : outpaced) {
    std::erase(ranks, rank);
    joiners_.AddSpare(SpareOf(rank));
  }
  std::vector<Action> ends;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const bool keeps =
        std::ranges::binary_search(ranks, rank) || std::ranges::binary_search(outpaced, rank);
    if (!keeps && group_.results().Owes(rank)) group_.End(rank, deadlines_.grace, ends);
  }
  const bool resized = on_purpose && (ranks.size() < size() || !newcomers.empty());
  const std::vector<MemberRecord> former = group_.members();
  group_ = group_.Next(ranks, newcomers, record().generation);
  for (const std::uint32_t rank : outpaced) group_.LoseFormer(former[rank].worker);
  ForgetWhoLeft();
  keeper_.SetJoiners(joiners_.members());
  keeper_.Regroup({.ranks = ranks,
                   .newcomers = newcomers,
                   .lost = group_.lost(),
                   .reason = reason,
                   .resized = resized},
                  turn);
  turn.actions.insert(turn.actions.end(), ends.begin(), ends.end());
  auto& regrouping = std::get<phase::Regrouping>(phase_);
  regrouping.deadline = turn.now + Rounds(deadlines_.regroup);
  regrouping.formation.emplace(size(), record().generation, GroupFormation::Phase::kMeeting);
  regrouping.stale = false;
  regrouping.asked.reset();
  regrouping.seen.clear();
  SendGroup(turn);
}

// The most that a member is known to have applied. A coordinator that restarted may have heard of
// no round and still know from the members that there were some.
std::uint64_t JobController::MostRounds() const {
  std::uint64_t most = keeper_.tracker()->rounds();
  for (const LostMember& member : record().lost) most = std::max(most, member.message.rounds);
  return most;
}

// Newcomers have none before they met the others, and spares what the group had when they left it:
// members are a round apart at most. Before the first round nobody needs one.
bool JobController::AnyHasState(const std::vector<std::uint32_t>& ranks) const {
  const std::uint64_t most = MostRounds();
  if (most == 0 && !record().checkpoint) return true;
  return std::ranges::any_of(ranks, [&](std::uint32_t rank) {
    const std::optional<GroupLostMessage>& lost = group_.Lost(rank);
    return lost && lost->rounds > 0 && lost->rounds + 1 >= most;
  });
}

// Of what was asked of the group before, what the next one has done.
void JobController::ForgetWhoLeft() {
  asked_to_regroup_ = false;
  std::erase_if(leaving_, [this](const auto& one) { return !group_.RankOf(one.first); });
  std::erase_if(leavers_, [this](const auto& leaver) {
    return std::ranges::find(group_.members(), leaver.first, &MemberRecord::node) ==
           group_.members().end();
  });
}

// A group of the same members comes to nothing before its first round: who has not been in one with
// them is the first to be left out, as the job needs none of these. The others are a round apart at
// most.
void JobController::LeaveOutNewcomers(Turn turn) {
  std::uint64_t most = 0;
  for (const LostMember& member : group_.lost()) most = std::max(most, member.message.rounds);
  for (const LostMember& member : group_.lost()) {
    if (member.message.rounds + 1 >= most) continue;
    const std::string name = WorkerName(group_.members()[member.rank]);
    GiveUp(member.rank, name + " did not come to a round with the others", deadlines_.grace, turn);
  }
}

// Of two who blame each other again, the one whose loss costs less speed.
void JobController::LeaveOutBlamed(Turn turn) {
  const auto blames = [this](std::uint32_t one, std::uint32_t other) {
    const std::optional<GroupLostMessage>& lost = group_.Lost(one);
    return lost && lost->generation == record().generation &&
           std::ranges::find(lost->blames, other) != lost->blames.end();
  };
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    for (std::uint32_t other = rank + 1; other < size(); ++other) {
      if (!blames(rank, other) || !blames(other, rank)) continue;
      const std::uint32_t out = Slower(rank, other);
      return GiveUp(out,
                    WorkerName(group_.members()[rank]) + " and " +
                        WorkerName(group_.members()[other]) + " lose each other again and again",
                    deadlines_.grace, turn);
    }
  }
}

std::uint32_t JobController::Slower(std::uint32_t one, std::uint32_t other) const {
  return SpeedOf(one) < SpeedOf(other) ? one : other;
}

// Samples a second while computing, of the last rounds; 0: not known.
double JobController::SpeedOf(std::uint32_t rank) const {
  return keeper_.tracker()->progress().workers[rank].samples_per_second;
}

void JobController::GiveUp(std::uint32_t rank, const std::string& reason, Duration grace,
                           Turn turn) {
  group_.GiveUp(rank, reason, turn.now);
  group_.End(rank, grace, turn.actions);
}

// Who stands still does so whatever it is told: the others wait for the end of its process.
// Returns why the group is lost, where nobody is to blame.
std::optional<std::string> JobController::GiveUpStill(const Standstill& standstill,
                                                      const std::string& words, Turn turn) {
  using Kind = Standstill::Kind;
  const bool link = standstill.kind == Kind::kLink;
  if (!link && !standstill.certain() && standstill.kind != Kind::kSilent &&
      standstill.kind != Kind::kBusy && standstill.kind != Kind::kStorage) {
    return words;
  }
  GiveUp(link ? Slower(standstill.rank, standstill.other) : standstill.rank, words, Duration(0),
         turn);
  Regroup(turn);
  return std::nullopt;
}

// Its members have all they need to meet.
bool JobController::Met() const {
  const auto* const regrouping = std::get_if<phase::Regrouping>(&phase_);
  return regrouping != nullptr && regrouping->formation &&
         regrouping->formation->phase() == GroupFormation::Phase::kFormed;
}

// The first report of the next group has come. One that is smaller than the job may be goes on
// from a checkpoint when there are devices for it.
void JobController::GoOnRegrouped(Turn turn) {
  const std::optional<phase::Ending> ending = std::get<phase::Regrouping>(phase_).ending;
  JobRecord& record = keeper_.record();
  group_.ForgetLost();
  record.lost.clear();
  held_since_.reset();
  if (ending) {
    phase_ = phase::Ending{.limit = ending->limit, .deadline = turn.now + ending->limit};
    // Its limit is what its user gave.
    if (!record.cancel_reason.empty()) phase_ = *ending;
    record.state_reason = EndingWords();
    keeper_.Announce(turn);
    if (AskedToStop()) group_.SendToAll(StopOrder(), turn.actions);
    return NoteHold(turn.now);
  }
  phase_ = TrainingFrom(turn.now);
  record.state_reason = TrainingWords();
  keeper_.Announce(turn);
  if (size() >= record.settings.workers_min) return GoOnChanging(turn);
  Suspend(false,
          WorkerCount(size()) + " left of at least " + std::to_string(record.settings.workers_min) +
              ": " + record.regroup_reason,
          turn);
}

// A member has said its last word while others had lost their group.
void JobController::EndOrRegroup(Turn turn) {
  const auto& regrouping = std::get<phase::Regrouping>(phase_);
  if (!group_.results().Finished(0) && group_.SuspectSince()) return Regroup(turn);
  if (regrouping.formation) group_.ForgetLost();
  keeper_.record().lost = group_.lost();
  const Duration limit = deadlines_.finish;
  phase_ = regrouping.ending.value_or(phase::Ending{.limit = limit, .deadline = turn.now + limit});
}

// Rank 0 has said its last word, and with it all is done: nobody is waited for who left without
// one, or lost the group before.
void JobController::ExcuseWhoLeft(Turn turn) {
  bool any = false;
  for (std::uint32_t rank = 1; rank < size(); ++rank) {
    if (!group_.results().Owes(rank) || !group_.Left(rank)) continue;
    group_.Excuse(rank);
    if (group_.Live(rank)) group_.End(rank, deadlines_.grace, turn.actions);
    any = true;
  }
  if (!any) return;
  keeper_.record().ending = group_.results().ending();
  keeper_.Persist(turn);
}

// To members that may have missed what was said last, and pass over what they have.
void JobController::RepeatGroup(Turn turn) {
  const auto& formation = std::get<phase::Regrouping>(phase_).formation;
  if (formation && formation->phase() == GroupFormation::Phase::kMeeting) SendGroup(turn);
}

// A node is heard again: what its workers said meanwhile comes within moments.
void JobController::GiveTimeToSpeak(Instant now) {
  auto* const regrouping = std::get_if<phase::Regrouping>(&phase_);
  if (regrouping == nullptr) return;
  regrouping->deadline = std::max(regrouping->deadline, now + Rounds(deadlines_.regroup));
}

// What its agent answers of one that is asked for. An answer to the question before may come with
// this one's, and tells nothing new. Who is known to be stopped needs no second look.
void JobController::See(std::uint32_t rank, const StandingMessage& standing,
                        phase::Regrouping& regrouping, Instant now) const {
  if (!regrouping.asked) return;
  const auto [found, first] = regrouping.seen.try_emplace(
      rank, phase::Sighting{.standing = standing, .at = now, .still = standing.stopped});
  phase::Sighting& seen = found->second;
  const Duration apart = now - seen.at;
  if (first || apart < deadlines_.inquiry / 2) return;
  seen = {.standing = standing, .at = now, .still = !Moves(seen.standing, standing, apart)};
}

// Its node is not heard, or may not be: a control stream that breaks for moments, or for less time
// than a node is given until it counts as unheard, is nobody's end. Its agent is asked; where that
// answers twice and the worker did nothing between the two, the worker is to blame: one that gets
// little of a processor, or writes to a slow disk, says late what it has to say. Neither an answer,
// which may get lost, nor a word is awaited for ever.
bool JobController::Excused(std::uint32_t rank, phase::Regrouping& regrouping, Turn turn) {
  const MemberRecord& member = group_.members()[rank];
  if (group_.contact().Missed(member.node)) return true;
  if (!regrouping.asked) regrouping.asked = turn.now;
  const bool for_long = turn.now >= *regrouping.asked + Rounds(deadlines_.silence);
  const auto seen = regrouping.seen.find(rank);
  if (for_long || (seen != regrouping.seen.end() && seen->second.still)) return false;
  turn.actions.push_back(LookAtWorker{.node = member.node, .worker = member.worker});
  regrouping.deadline = std::min(regrouping.deadline, turn.now + deadlines_.inquiry);
  return true;
}

// The time counts anew where the coordinator itself stood still: what was said meanwhile comes
// first.
std::optional<std::string> JobController::Overdue(phase::Regrouping& regrouping, Turn turn) {
  if (regrouping.ending && turn.now >= regrouping.ending->deadline) {
    return Overdue(*regrouping.ending, turn);
  }
  const bool late = turn.now > regrouping.deadline + deadlines_.second_look;
  regrouping.deadline = turn.now + Rounds(deadlines_.regroup);
  if (late) return std::nullopt;
  const bool meets =
      regrouping.formation && regrouping.formation->phase() == GroupFormation::Phase::kMeeting;
  std::vector<std::uint32_t> silent = meets ? regrouping.formation->Missing() : Unspoken();
  if (silent.empty() || Met()) {
    FormNext(turn);
    return std::nullopt;
  }
  const std::size_t staying = group_.Staying().size();
  std::erase_if(silent, [&](std::uint32_t rank) { return Excused(rank, regrouping, turn); });
  if (!silent.empty() && silent.size() == staying) return LossWords();
  for (const std::uint32_t rank : silent) {
    GiveUp(rank,
           WorkerName(group_.members()[rank]) + " did not say within " +
               DurationWords(Rounds(deadlines_.regroup)) +
               (meets ? " where it can be reached" : " that it lost its group"),
           deadlines_.grace, turn);
  }
  if (!silent.empty()) Regroup(turn);
  return std::nullopt;
}

}  // namespace tactus::job
