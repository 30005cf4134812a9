// Encodings between nodes: within a node values travel dense, between nodes encoded.
//
// The lowest rank of each node leads it: the others send it their values, it adds them up, leads
// the encoding's conversation with the other nodes' leaders as if these were all there are, and
// sends the sum back. So a link between nodes carries what it would if each node had one member,
// and what is left out is left with the leaders.
//
// Lanes go whole from everybody to everybody and are summed in rank order, as in every
// conversation.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "agent/collective/conversation.h"
#include "agent/engine/combine/messages.h"
#include "agent/engine/combine/piece_talk.h"
#include "agent/engine/combine/tiers.h"

namespace tactus::engine {

// The conversations of one piece, one after the other. In the end its values are the members' sum,
// of the same bits on all of them, and its lanes are what an all-reduce makes of them.
class NodeTalk final : public collective::Conversation {
 public:
  // The next one is of this piece, in the host's memory, with lanes right behind its values.
  // between: the leaders' conversation, opened on leaders alone. It and tiers outlive it.
  // Requires: tiers.any().
  void Open(PieceTalk& between, const Piece& piece, int rank, const Tiers& tiers);

  std::size_t turns() const override { return between_->turns() + 2; }
  void Begin(std::size_t turn) override;
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override;
  std::span<std::byte> Incoming(std::size_t turn, int peer) override;
  void End() override {}

 private:
  static constexpr std::size_t kWithin = 0;

  bool IsLast(std::size_t turn) const { return turn + 1 == turns(); }
  // A message of turn 0, from a member: values, where this one leads it, and lanes.
  std::span<float> ValuesFrom(int member);
  std::span<float> LanesFrom(int member);
  void MakeRoom();
  void SumLanes();
  void SumValues();

  PieceTalk* between_ = nullptr;
  const Tiers* tiers_ = nullptr;
  Piece piece_{};
  int rank_ = 0;
  std::vector<std::size_t> sizes_;
  std::vector<const float*> lane_sources_;
  Messages incoming_;
};

}  // namespace tactus::engine
