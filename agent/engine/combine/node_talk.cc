#include "agent/engine/combine/node_talk.h"

#include <algorithm>

#include "agent/collective/rank_sum.h"
#include "base/check.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {

bool HasTiers(std::span<const std::uint32_t> nodes) {
  std::vector<std::uint32_t> sorted(nodes.begin(), nodes.end());
  std::ranges::sort(sorted);
  const auto end = std::unique(sorted.begin(), sorted.end());
  const auto distinct = static_cast<std::size_t>(end - sorted.begin());
  return distinct > 1 && distinct < nodes.size();
}

bool NodeTalk::Leads(int rank, std::span<const std::uint32_t> nodes) {
  const auto index = static_cast<std::size_t>(rank);
  return std::ranges::find(nodes.first(index), nodes[index]) == nodes.begin() + rank;
}

void NodeTalk::Open(PieceTalk& between, const Piece& piece, int rank,
                    std::span<const std::uint32_t> nodes) {
  between_ = &between;
  piece_ = piece;
  rank_ = rank;
  leader_of_.clear();
  leaders_.clear();
  for (std::size_t member = 0; member < nodes.size(); ++member) {
    const auto first = std::ranges::find(nodes, nodes[member]) - nodes.begin();
    leader_of_.push_back(static_cast<int>(first));
    if (Leads(static_cast<int>(member))) leaders_.push_back(static_cast<int>(member));
  }
  TACTUS_CHECK(leaders_.size() >= 2);
  if (!Leads(rank_)) between.HandOver(piece.values);
}

int NodeTalk::AmongLeaders(int leader) const {
  return static_cast<int>(std::ranges::lower_bound(leaders_, leader) - leaders_.begin());
}

void NodeTalk::Begin(std::size_t turn) {
  if (turn == kWithin) return MakeRoom();
  if (turn == kWithin + 1) {
    SumLanes();
    SumValues();
  }
  if (!Leads(rank_)) return;
  if (IsLast(turn)) return between_->End();
  if (turn == kWithin + 1) {
    between_->Open({.offset = piece_.offset, .values = piece_.values}, AmongLeaders(rank_),
                   static_cast<int>(leaders_.size()));
  }
  between_->Begin(turn - 1);
}

std::span<const std::byte> NodeTalk::Outgoing(std::size_t turn, int peer) {
  if (turn == kWithin) {
    if (!Follows(rank_, peer)) return std::as_bytes(piece_.lanes);
    return std::as_bytes(StretchOf(piece_));
  }
  if (!Leads(rank_)) return {};
  if (IsLast(turn)) {
    return Follows(peer, rank_) ? std::as_bytes(piece_.values) : std::span<const std::byte>();
  }
  if (!Leads(peer)) return {};
  return between_->Outgoing(turn - 1, AmongLeaders(peer));
}

std::span<std::byte> NodeTalk::Incoming(std::size_t turn, int peer) {
  if (turn == kWithin) return incoming_.Of(peer);
  if (IsLast(turn)) {
    return Follows(rank_, peer) ? std::as_writable_bytes(piece_.values) : std::span<std::byte>();
  }
  if (!Leads(rank_) || !Leads(peer)) return {};
  return between_->Incoming(turn - 1, AmongLeaders(peer));
}

void NodeTalk::MakeRoom() {
  sizes_.clear();
  for (int member = 0; member < static_cast<int>(leader_of_.size()); ++member) {
    const std::size_t values = Follows(member, rank_) ? piece_.values.size_bytes() : 0;
    sizes_.push_back(member == rank_ ? 0 : values + piece_.lanes.size_bytes());
  }
  incoming_.MakeRoom(sizes_);
}

std::span<float> NodeTalk::ValuesFrom(int member) {
  return NumbersIn<float>(incoming_.Of(member)).first(piece_.values.size());
}

std::span<float> NodeTalk::LanesFrom(int member) {
  return NumbersIn<float>(incoming_.Of(member)).last(piece_.lanes.size());
}

void NodeTalk::SumLanes() {
  if (piece_.lanes.empty()) return;
  lane_sources_.clear();
  for (int member = 0; member < static_cast<int>(leader_of_.size()); ++member) {
    lane_sources_.push_back(member == rank_ ? piece_.lanes.data() : LanesFrom(member).data());
  }
  collective::SumInRankOrder(lane_sources_, piece_.lanes);
}

// In rank order: the leader's own come first.
void NodeTalk::SumValues() {
  for (int member = 0; member < static_cast<int>(leader_of_.size()); ++member) {
    if (Follows(member, rank_)) cuda::host::Axpy(1, ValuesFrom(member), piece_.values);
  }
}

}  // namespace tactus::engine
