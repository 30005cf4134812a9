#include "agent/engine/combine/node_talk.h"

#include "agent/collective/rank_sum.h"
#include "base/check.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {

void NodeTalk::Open(PieceTalk& between, const Piece& piece, int rank, const Tiers& tiers) {
  TACTUS_CHECK(tiers.any());
  between_ = &between;
  piece_ = piece;
  rank_ = rank;
  tiers_ = &tiers;
  if (!tiers.Leads(rank)) between.HandOver(piece.values);
}

void NodeTalk::Begin(std::size_t turn) {
  if (turn == kWithin) return MakeRoom();
  if (turn == kWithin + 1) {
    SumLanes();
    SumValues();
  }
  if (!tiers_->Leads(rank_)) return;
  if (IsLast(turn)) return between_->End();
  if (turn == kWithin + 1) {
    between_->Open({.offset = piece_.offset, .values = piece_.values}, tiers_->AmongLeaders(rank_),
                   static_cast<int>(tiers_->leaders.size()));
  }
  between_->Begin(turn - 1);
}

std::span<const std::byte> NodeTalk::Outgoing(std::size_t turn, int peer) {
  if (turn == kWithin) {
    if (!tiers_->Follows(rank_, peer)) return std::as_bytes(piece_.lanes);
    return std::as_bytes(StretchOf(piece_));
  }
  if (!tiers_->Leads(rank_)) return {};
  if (IsLast(turn)) {
    return tiers_->Follows(peer, rank_) ? std::as_bytes(piece_.values)
                                        : std::span<const std::byte>();
  }
  if (!tiers_->Leads(peer)) return {};
  return between_->Outgoing(turn - 1, tiers_->AmongLeaders(peer));
}

std::span<std::byte> NodeTalk::Incoming(std::size_t turn, int peer) {
  if (turn == kWithin) return incoming_.Of(peer);
  if (IsLast(turn)) {
    return tiers_->Follows(rank_, peer) ? std::as_writable_bytes(piece_.values)
                                        : std::span<std::byte>();
  }
  if (!tiers_->Leads(rank_) || !tiers_->Leads(peer)) return {};
  return between_->Incoming(turn - 1, tiers_->AmongLeaders(peer));
}

void NodeTalk::MakeRoom() {
  sizes_.clear();
  for (int member = 0; member < static_cast<int>(tiers_->leader_of.size()); ++member) {
    const std::size_t values = tiers_->Follows(member, rank_) ? piece_.values.size_bytes() : 0;
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
  for (int member = 0; member < static_cast<int>(tiers_->leader_of.size()); ++member) {
    lane_sources_.push_back(member == rank_ ? piece_.lanes.data() : LanesFrom(member).data());
  }
  collective::SumInRankOrder(lane_sources_, piece_.lanes);
}

// In rank order: the leader's own come first.
void NodeTalk::SumValues() {
  for (int member = 0; member < static_cast<int>(tiers_->leader_of.size()); ++member) {
    if (tiers_->Follows(member, rank_)) cuda::host::Axpy(1, ValuesFrom(member), piece_.values);
  }
}

}  // namespace tactus::engine
