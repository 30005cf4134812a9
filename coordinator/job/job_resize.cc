// The part of JobController that changes who is in the group while it trains.
//
//   workers are started for it (Grow), which load beside it; when they are ready, or members are to
//   leave (GiveBack), the group is asked to regroup
//     -> its members leave it after the same round, say so, and keep what they hold
//     -> the next group is formed as after a loss, by job_regroup.cc: of those who stay, and behind
//        them of who joins, to whom they give their state
//
// Nothing is lost with that, so nobody is to blame and nothing is counted against the job. What a
// worker is that loads is nobody's concern but this file's: where it fails, the group never learns
// of it. What the group is about otherwise comes first: where it ends, or is suspended, who loads
// is ended.
//
// Beside a group that is whole JobSettings::spares more load, and wait: who is lost has one of them
// in its place at once. Of those whose shares would add more than a member's, one takes that
// member's place, and the member is the spare.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/job/job_controller.h"
#include "coordinator/job/wording.h"

namespace tactus::job {

// ---- Who joins

// Durable before any of them is started. They go on from nothing: the group has what they need.
void JobController::Grow(const std::vector<MemberRecord>& members, Turn turn) {
  joiners_.Start(members, turn.now);
  join_failure_.clear();
  NoteJoiners(turn);
  for (const MemberRecord& member : members) {
    turn.actions.push_back(StartWorker{.node = member.node,
                                       .worker = member.worker,
                                       .job = record().id,
                                       .job_name = record().name,
                                       .spec = record().spec,
                                       .device = member.device,
                                       .pass_samples_max = keeper_.PassSamplesMax(member)});
  }
}

void JobController::OnJoinerSaid(WorkerId worker, const FromWorker& message, Turn turn) {
  if (!joiners_.Has(worker)) return;
  if (const auto* ready = std::get_if<ReadyMessage>(&message)) {
    const std::string odd = OddLoadWords(*ready, record().loaded);
    if (!odd.empty()) return GiveUpJoiner(worker, odd, turn);
    joiners_.SetReady(worker, *ready, turn.now);
    return AskToRegroup(turn);
  }
  if (const auto* failed = std::get_if<FailedMessage>(&message)) {
    GiveUpJoiner(worker, failed->message, turn);
  }
}

// It is ended.
void JobController::GiveUpJoiner(WorkerId worker, const std::string& reason, Turn turn) {
  const MemberRecord member = joiners_.Remove(worker);
  group_.Dismiss(member, deadlines_.grace, turn.actions);
  NoteJoinFailure(WorkerName(member) + ": " + reason, turn);
}

// They are gone, or will be before they are heard of again.
void JobController::LoseJoiners(const std::vector<WorkerId>& workers, const Departure& departure,
                                Turn turn) {
  for (const WorkerId worker : workers) {
    const MemberRecord member = joiners_.Remove(worker);
    NoteJoinFailure(FindingOf(member, departure).reason, turn);
  }
}

std::vector<WorkerId> JobController::JoinersOn(const std::string& node) const {
  std::vector<WorkerId> workers;
  for (const MemberRecord& member : joiners_.members()) {
    if (member.node == node) workers.push_back(member.worker);
  }
  return workers;
}

void JobController::NoteJoinFailure(const std::string& reason, Turn turn) {
  ++joins_failed_;
  join_failure_ = reason;
  NoteJoiners(turn);
  AskToRegroup(turn);  // who was ready may have waited for this one
}

void JobController::NoteJoiners(Turn turn) {
  keeper_.SetJoiners(joiners_.members());
  if (In<phase::Training>()) keeper_.record().state_reason = TrainingWords();
  keeper_.Announce(turn);
}

// The job ends, or is suspended. The record follows with what is announced of that: a coordinator
// that restarts knows none of them, and ends whoever it does not know.
void JobController::DismissJoiners(Turn turn) {
  for (const MemberRecord& member : joiners_.members()) {
    group_.Dismiss(member, deadlines_.grace, turn.actions);
  }
  joiners_.Clear();
  keeper_.SetJoiners({});
  join_failure_.clear();
  leaving_.clear();
  asked_to_regroup_ = false;
}

// "; worker 7 on node c loading, to join; worker 8 on node d spare".
std::string JobController::JoinerWords() const {
  std::vector<MemberRecord> loading;
  for (const Joiner& joiner : joiners_.coming()) {
    if (!joiner.ready) loading.push_back(joiner.member);
  }
  const bool whole = Room() == 0;
  std::string words;
  if (!loading.empty()) {
    words = "; " + WorkerNames(loading) + " loading, to " + (whole ? "be spare" : "join");
  }
  std::vector<MemberRecord> spares;
  for (const Joiner& spare : joiners_.spares()) spares.push_back(spare.member);
  if (!spares.empty()) words += "; " + WorkerNames(spares) + " spare";
  if (!join_failure_.empty()) words += "; did not join: " + join_failure_;
  return words;
}

// ---- Who leaves

void JobController::GiveBack(const std::vector<WorkerId>& workers, const std::string& reason,
                             Turn turn) {
  bool any_joined = false;
  for (const WorkerId worker : workers) {
    if (joiners_.Has(worker)) {
      group_.Dismiss(joiners_.Remove(worker), deadlines_.grace, turn.actions);
      any_joined = true;
    } else if (group_.RankOf(worker)) {
      leaving_.emplace(worker, reason);
    }
  }
  if (any_joined) NoteJoiners(turn);
  if (leaving_.empty()) return;
  if (!ChangesInPlace() || !EnoughRemain()) {
    leaving_.clear();
    return Suspend(false, reason, turn);
  }
  AskToRegroup(turn);
}

// It trains, or will again in a moment, and nothing else is asked of it. What meshes give back goes
// by a checkpoint.
bool JobController::ChangesInPlace() const {
  return state() == JobState::kRunning && !OfMeshes() &&
         (In<phase::Training>() || In<phase::Regrouping>());
}

// Of those who stay, who is not to leave.
std::vector<std::uint32_t> JobController::Remaining() const {
  std::vector<std::uint32_t> ranks = group_.Staying();
  std::erase_if(ranks, [this](std::uint32_t rank) {
    return leaving_.contains(group_.members()[rank].worker);
  });
  return ranks;
}

// Who is to leave and cannot be spared stays for a round, after which the job is suspended.
std::vector<std::uint32_t> JobController::GoingOn() const {
  if (OfMeshes()) return WholeReplicas();
  return EnoughRemain() ? Remaining() : group_.Staying();
}

// With those who are ready to take their places.
bool JobController::EnoughRemain() const {
  const std::size_t most = record().settings.workers_max;
  const std::size_t with_spares = Remaining().size() + joiners_.Ready().size();
  return !Remaining().empty() &&
         std::min(with_spares, most) >= std::max(record().settings.workers_min, 1u);
}

// ---- Who is spare

// How many more the group may have than those who go on.
std::size_t JobController::Room() const {
  const std::size_t most = record().settings.workers_max;
  return most - std::min(most, GoingOn().size());
}

// Who stays and has a share that adds clearly less than that of somebody who waits, whom the group
// has no room for: they change places. Measured and tried-out speeds differ by tens of percent on a
// busy machine. Rank 0 stays: it has files under way.
std::vector<std::uint32_t> JobController::Outpaced() const {
  constexpr double kClearly = 1.25;
  const std::vector<Joiner> ready = joiners_.Ready();
  if (ready.size() <= Room() || !keeper_.tracker()) return {};
  std::vector<std::uint32_t> ranks = GoingOn();
  if (!ranks.empty()) ranks.erase(ranks.begin());
  std::ranges::stable_sort(ranks, {}, [this](std::uint32_t rank) { return SpeedOf(rank); });
  std::vector<std::uint32_t> outpaced;
  for (std::size_t i = Room(); i < ready.size() && outpaced.size() < ranks.size(); ++i) {
    const std::uint32_t slowest = ranks[outpaced.size()];
    const double speed = SpeedOf(slowest);
    if (speed <= 0 || ready[i].ready->samples_per_second < kClearly * speed) break;
    outpaced.push_back(slowest);
  }
  std::ranges::sort(outpaced);
  return outpaced;
}

// From when on spares are compared with members again, which may have become slow; nothing: there
// are none, or the group is about something else. The later, the more often it was changed.
std::optional<Instant> JobController::ComparesFrom() const {
  const auto* const training = std::get_if<phase::Training>(&phase_);
  const bool waits = training != nullptr && !asked_to_regroup_ && !group_.SuspectSince();
  if (!waits || joiners_.spares().empty()) return std::nullopt;
  constexpr std::uint32_t kDoublingsMax = 5;
  const std::uint32_t doublings = std::min(record().regroups + record().resizes, kDoublingsMax);
  return std::max(training->since, compared_) + deadlines_.resize * (1 << doublings);
}

// It has left the group for a faster one, and keeps what it holds.
Joiner JobController::SpareOf(std::uint32_t rank) const {
  ReadyMessage ready = record().loaded;
  ready.nccl_version = group_.members()[rank].nccl_version;
  ready.samples_per_second = SpeedOf(rank);
  return {.member = group_.members()[rank], .ready = ready, .rounds = group_.Lost(rank)->rounds};
}

// Whoever a job may have no longer.
void JobController::TrimSpares(Turn turn) {
  std::vector<WorkerId> surplus;
  for (std::size_t i = record().settings.spares; i < joiners_.spares().size(); ++i) {
    surplus.push_back(joiners_.spares()[i].member.worker);
  }
  if (!surplus.empty()) GiveBack(surplus, "a user wants fewer spares", turn);
}

// ---- The group is asked

// Where there is a reason now, and it was not asked yet.
void JobController::AskToRegroup(Turn turn) {
  if (asked_to_regroup_ || !In<phase::Training>() || group_.SuspectSince()) return;
  const std::optional<Instant> due = joiners_.Due();
  const bool are_ready = due && turn.now >= *due;
  const std::optional<Instant> compares = ComparesFrom();
  const bool compare = compares && turn.now >= *compares;
  if (compare) compared_ = turn.now;
  const bool all_spare = Room() == 0 && !((are_ready || compare) && !Outpaced().empty());
  if (are_ready && all_spare) {
    joiners_.Take(0);
    NoteJoiners(turn);
    TrimSpares(turn);
  }
  const bool any_waits = are_ready || !joiners_.spares().empty();
  if (leaving_.empty() && (all_spare || !any_waits)) return;
  asked_to_regroup_ = true;
  group_.SendToAll(RegroupOrder(), turn.actions);
}

StopMessage JobController::RegroupOrder() const {
  std::vector<std::uint32_t> leaving = Outpaced();
  const std::vector<std::uint32_t> going_on = GoingOn();
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (!std::ranges::binary_search(going_on, rank)) leaving.push_back(rank);
  }
  std::ranges::sort(leaving);
  return {.reason = ChangeWords(), .suspend = true, .regroup = true, .leaving = std::move(leaving)};
}

// "worker 7 on node c joins; node b is drained".
std::string JobController::ChangeWords() const {
  const std::vector<std::uint32_t> outpaced = Outpaced();
  std::vector<Joiner> ready = joiners_.Ready();
  ready.resize(std::min(ready.size(), Room() + outpaced.size()));
  std::vector<MemberRecord> join;
  for (const MemberRecord& member : joiners_.members()) {
    const auto is_it = [&](const Joiner& one) { return one.member.worker == member.worker; };
    if (std::ranges::any_of(ready, is_it)) join.push_back(member);
  }
  std::string words;
  if (!join.empty()) words = WorkerNames(join) + (join.size() == 1 ? " joins" : " join");
  std::vector<MemberRecord> out;
  for (const std::uint32_t rank : outpaced) out.push_back(group_.members()[rank]);
  if (!out.empty()) words += ", in place of " + WorkerNames(out);
  std::string last;  // members of one node leave for one reason
  for (const auto& [worker, reason] : leaving_) {
    if (reason != last) words += (words.empty() ? "" : "; ") + reason;
    last = reason;
  }
  return words;
}

// All left the former group because they were asked to.
bool JobController::LeftOnPurpose() const {
  const std::vector<LostMember>& lost = record().lost;
  return !group_.SuspectSince() && !lost.empty() &&
         std::ranges::all_of(lost, [](const LostMember& one) { return one.message.planned; });
}

// What was asked for while the group regrouped, or could not be done then.
void JobController::GoOnChanging(Turn turn) {
  if (leaving_.empty() || EnoughRemain()) return AskToRegroup(turn);
  const std::string reason = leaving_.begin()->second;
  leaving_.clear();
  Suspend(false, reason, turn);
}

void JobController::LookAtJoiners(Turn turn) {
  if (joiners_.empty()) return;
  if (!joiners_.coming().empty() && turn.now >= joiners_.since() + deadlines_.start) {
    for (const Joiner& joiner : std::vector(joiners_.coming())) {
      if (joiner.ready) continue;
      GiveUpJoiner(joiner.member.worker, "not ready within " + DurationWords(deadlines_.start),
                   turn);
    }
  }
  AskToRegroup(turn);
}

// Of LookAtJoiners. Who is ready while the group is about something else is taken in behind it.
std::optional<Instant> JobController::JoinersDue() const {
  if (joiners_.coming().empty()) return ComparesFrom();
  const bool waits = In<phase::Training>() && !asked_to_regroup_ && !group_.SuspectSince();
  const std::optional<Instant> ready = waits ? joiners_.Due() : std::nullopt;
  const bool loading = std::ranges::any_of(
      joiners_.coming(), [](const Joiner& joiner) { return !joiner.ready.has_value(); });
  const Instant late = joiners_.since() + deadlines_.start;
  if (!loading) return ready;
  return ready ? std::min(*ready, late) : late;
}

}  // namespace tactus::job
