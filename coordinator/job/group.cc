#include "coordinator/job/group.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace tactus::job {

Group::Group(std::vector<MemberRecord> members, bool present)
    : members_(std::move(members)),
      workers_(members_.size(), Worker{.present = present}),
      results_(size()) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) ranks_[members_[rank].worker] = rank;
}

void Group::Restore(const EndingRecord& ending, const std::vector<LostMember>& lost) {
  results_ = ResultCollector(size(), ending);
  for (const LostMember& member : lost) {
    if (member.rank < size()) workers_[member.rank].lost = member.message;
  }
}

// ---- Who is there

std::optional<std::uint32_t> Group::RankOf(WorkerId worker) const {
  const auto found = ranks_.find(worker);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::uint32_t> Group::LiveOn(const std::string& node) const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (members_[rank].node == node && Live(rank)) ranks.push_back(rank);
  }
  return ranks;
}

bool Group::AllGone() const {
  return former_.empty() && std::ranges::all_of(workers_, &Worker::gone);
}

void Group::LoseFormerOn(const std::string& node, const std::function<bool(WorkerId)>& runs) {
  std::erase_if(former_, [&](const auto& entry) {
    return entry.second.member.node == node && !runs(entry.first);
  });
}

std::vector<MemberRecord> Group::formers() const {
  std::vector<MemberRecord> members;
  for (const auto& [worker, former] : former_) members.push_back(former.member);
  return members;
}

std::vector<MemberRecord> Group::Absent() const {
  std::vector<MemberRecord> absent;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (!workers_[rank].present && results_.Owes(rank)) absent.push_back(members_[rank]);
  }
  return absent;
}

bool Group::AnyHeard() const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const bool here = workers_[rank].present && Live(rank);
    if (here && !contact_.Missed(members_[rank].node)) return true;
  }
  return false;
}

bool Group::EndAwaitsUnheard() const {
  const auto& missed = contact_.missed();
  return std::ranges::any_of(missed, [this](const auto& node) { return Owes(node.first); });
}

bool Group::Owes(const std::string& node) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const bool owes = rank == 0 || results_.Owes(rank);
    if (owes && members_[rank].node == node) return true;
  }
  return false;
}

bool Group::EndedWell(std::uint32_t rank, std::uint64_t incarnation) const {
  if (!results_.Finished(rank)) return false;
  const bool owes_nothing = rank != 0 || results_.MissingFiles().empty();
  return owes_nothing || (incarnation != 0 && incarnation == members_[rank].incarnation);
}

void Group::Depart(const std::vector<std::uint32_t>& ranks, const Departure& departure) {
  for (const std::uint32_t rank : ranks) {
    workers_[rank].gone = true;
    // An agent that restarted may still hold a worker's last words.
    workers_[rank].heard_out |= !std::holds_alternative<AgentRestarted>(departure);
  }
}

// ---- To the workers

void Group::Send(std::uint32_t rank, ToWorker message, Actions& actions) const {
  if (workers_[rank].gone || !workers_[rank].present) return;
  const MemberRecord& member = members_[rank];
  actions.push_back(
      SendToWorker{.node = member.node, .worker = member.worker, .message = std::move(message)});
}

void Group::SendToAll(const ToWorker& message, Actions& actions) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) Send(rank, message, actions);
}

void Group::End(std::uint32_t rank, Duration grace, Actions& actions) {
  Worker& worker = workers_[rank];
  if (worker.gone || !worker.present || std::exchange(worker.stop_sent, true)) return;
  const MemberRecord& member = members_[rank];
  actions.push_back(StopWorker{.node = member.node, .worker = member.worker, .grace = grace});
}

void Group::Dismiss(const MemberRecord& joiner, Duration grace, Actions& actions) {
  former_[joiner.worker] = {.member = joiner, .stop_sent = true};
  actions.push_back(StopWorker{.node = joiner.node, .worker = joiner.worker, .grace = grace});
}

void Group::Stop(Duration grace, Actions& actions) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    Worker& worker = workers_[rank];
    if (worker.gone || worker.stop_sent) continue;
    const MemberRecord& member = members_[rank];
    worker.gone = !worker.present || contact_.Missed(member.node);
    if (!worker.present) continue;
    worker.stop_sent = true;
    actions.push_back(StopWorker{.node = member.node, .worker = member.worker, .grace = grace});
  }
  for (auto& [id, former] : former_) {
    if (std::exchange(former.stop_sent, true)) continue;
    actions.push_back(StopWorker{.node = former.member.node, .worker = id, .grace = grace});
  }
  std::erase_if(former_,
                [this](const auto& entry) { return contact_.Missed(entry.second.member.node); });
}

void Group::StopOn(const std::string& node, Duration grace, Actions& actions) {
  for (const std::uint32_t rank : LiveOn(node)) {
    End(rank, grace, actions);
  }
}

// ---- From the workers

void Group::SetFinished(std::uint32_t rank, const FinishedMessage& message) {
  results_.SetFinished(rank, message);
  inquiry_.Withdraw(members_[rank].worker);
}

// Who has finished may lose its group: the others leave before it does.
std::optional<Finding> Group::OnFailed(std::uint32_t rank, const FailedMessage& message,
                                       Instant now) {
  if (results_.Finished(rank)) return std::nullopt;
  inquiry_.Add(FindingOf(members_[rank], message), now);
  workers_[rank].out = true;
  return VerdictIfClear();
}

std::optional<Finding> Group::Judge(const std::vector<std::uint32_t>& ranks,
                                    const Departure& departure, Instant now) {
  for (const std::uint32_t rank : ranks) {
    if (!Expected(rank, departure)) inquiry_.Add(FindingOf(members_[rank], departure), now);
    if (const std::optional<Finding> verdict = VerdictIfClear()) return verdict;
  }
  return std::nullopt;
}

// True where the departure is as it should be, or explained already. When rank 0 has said its last
// word, all is done that needs the others.
bool Group::Expected(std::uint32_t rank, const Departure& departure) const {
  const bool finished = results_.Finished(rank) || (rank != 0 && results_.Finished(0));
  if (const auto* exit = std::get_if<WorkerExited>(&departure)) {
    // Its exit with a code only repeats what it said before.
    const bool told = exit->signal == 0 && inquiry_.Heard(members_[rank].worker);
    return finished || told || workers_[rank].stop_sent;
  }
  // The files of the result are with rank 0's agent.
  return finished && rank != 0;
}

// When all are gone and heard out, nobody is left to say anything better.
std::optional<Finding> Group::VerdictIfClear() const {
  if (!inquiry_.open()) return std::nullopt;
  const bool all_heard_out = std::ranges::all_of(workers_, &Worker::heard_out);
  return inquiry_.Conclusive() || all_heard_out ? std::optional(inquiry_.Best()) : std::nullopt;
}

// ---- It falls apart, and some go on

void Group::SetLost(std::uint32_t rank, const GroupLostMessage& message, Instant now) {
  workers_[rank].lost = message;
  if (!message.planned) inquiry_.Add(FindingOf(members_[rank], message), now);
}

std::vector<LostMember> Group::lost() const {
  std::vector<LostMember> lost;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (workers_[rank].lost) lost.push_back({.rank = rank, .message = *workers_[rank].lost});
  }
  return lost;
}

void Group::Excuse(std::uint32_t rank) {
  results_.Excuse(rank);
  inquiry_.Withdraw(members_[rank].worker);
}

void Group::GiveUp(std::uint32_t rank, const std::string& reason, Instant now) {
  workers_[rank].out = true;
  inquiry_.Add(
      {.worker = members_[rank].worker, .evidence = Evidence::kSuspicion, .reason = reason}, now);
}

std::vector<std::uint32_t> Group::Staying() const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const Worker& worker = workers_[rank];
    if (!worker.gone && !worker.out && results_.Owes(rank)) ranks.push_back(rank);
  }
  return ranks;
}

Group Group::Next(const std::vector<std::uint32_t>& ranks, const std::vector<Joiner>& newcomers,
                  std::uint64_t generation) const {
  std::vector<MemberRecord> members;
  for (const std::uint32_t rank : ranks) members.push_back(members_[rank]);
  for (const Joiner& newcomer : newcomers) members.push_back(newcomer.member);
  Group next(std::move(members), true);
  next.contact_ = contact_;
  for (const auto& [node, reason] : contact_.missed()) {
    const bool waited =
        std::ranges::find(next.members_, node, &MemberRecord::node) != next.members_.end();
    if (!waited) next.contact_.Forget(node);
  }
  next.former_ = former_;
  for (std::size_t i = 0; i < newcomers.size(); ++i) {
    next.workers_[ranks.size() + i].lost = GroupLostMessage{.generation = generation,
                                                            .rounds = newcomers[i].rounds,
                                                            .reason = "it was not in it yet",
                                                            .planned = true};
  }
  for (std::uint32_t rank = 0, stays = 0; rank < size(); ++rank) {
    const Worker& worker = workers_[rank];
    if (stays < ranks.size() && ranks[stays] == rank) {
      next.workers_[stays++] = worker;
    } else if (!worker.gone) {
      next.former_[members_[rank].worker] = {.member = members_[rank],
                                             .stop_sent = worker.stop_sent};
    }
  }
  return next;
}

std::optional<Instant> Group::SuspectSince() const {
  return inquiry_.open() ? std::optional(inquiry_.opened()) : std::nullopt;
}

}  // namespace tactus::job
