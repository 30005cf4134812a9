#include "coordinator/job/roster.h"

#include <algorithm>
#include <utility>

namespace tactus::job {

Roster::Roster(std::vector<MemberRecord> members, bool present)
    : members_(std::move(members)), workers_(members_.size(), Worker{.present = present}) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) ranks_[members_[rank].worker] = rank;
}

std::optional<std::uint32_t> Roster::RankOf(WorkerId worker) const {
  const auto found = ranks_.find(worker);
  return found == ranks_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::uint32_t> Roster::LiveOn(const std::string& node) const {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    if (members_[rank].node == node && Live(rank)) ranks.push_back(rank);
  }
  return ranks;
}

bool Roster::AllGone() const { return std::ranges::all_of(workers_, &Worker::gone); }

bool Roster::AllHeardOut() const { return std::ranges::all_of(workers_, &Worker::heard_out); }

void Roster::Depart(std::uint32_t rank, bool heard_out) {
  workers_[rank].gone = true;
  workers_[rank].heard_out |= heard_out;
}

void Roster::Send(std::uint32_t rank, ToWorker message, Actions& actions) const {
  if (workers_[rank].gone || !workers_[rank].present) return;
  const MemberRecord& member = members_[rank];
  actions.push_back(
      SendToWorker{.node = member.node, .worker = member.worker, .message = std::move(message)});
}

void Roster::SendToAll(const ToWorker& message, Actions& actions) const {
  for (std::uint32_t rank = 0; rank < size(); ++rank) Send(rank, message, actions);
}

void Roster::Stop(Duration grace, Actions& actions) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    Worker& worker = workers_[rank];
    if (worker.gone || worker.stop_sent) continue;
    if (!worker.present) {
      worker.gone = true;
      continue;
    }
    worker.stop_sent = true;
    const MemberRecord& member = members_[rank];
    actions.push_back(StopWorker{.node = member.node, .worker = member.worker, .grace = grace});
  }
}

}  // namespace tactus::job
