// A sum of all members' buffers that one of them alone gets, and what all of them have gathered:
// the two collectives of meshes that are conversations where the memory is the host's, in the
// pieces of mesh_pieces.h (Transport::StartRootSum, StartAllGather).

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "agent/collective/transport.h"

namespace tactus::collective {

// The root's buffer <- the sum of all buffers in rank order, see SumInRankOrder; those of the
// others hold anything afterwards. It goes like the sum of MeshCollectives: short buffers whole to
// the root, in one turn; of longer ones each member sums a part, in a second turn the parts go to
// the root, which so receives 2 (n - 1) / n of the buffer and not n - 1 buffers. Which way it goes
// changes no bit.
//
// Started by StartConversation; the buffer, which all members have of one length, and this object
// live until it is done. root: in [0, size).
class RootSum final : public Conversation {
 public:
  RootSum(const Transport& group, std::span<float> buffer, int root);

  std::size_t turns() const override { return whole_ ? 1 : 2; }
  void Begin(std::size_t turn) override;
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override;
  std::span<std::byte> Incoming(std::size_t turn, int peer) override;
  void End() override;

 private:
  bool is_root() const { return rank_ == root_; }
  // The part that `rank` sums.
  std::span<float> PartOf(int rank) const;
  std::span<float> InboxOf(int peer);
  void SumInboxes();

  const int rank_;
  const int size_;
  const int root_;
  const std::span<float> buffer_;
  const bool whole_;
  std::span<float> summed_;     // what this member adds up; empty: nothing
  std::vector<float> inboxes_;  // of the others' values of that, by rank without this member
};

// all <- every member's `own`, by rank, each `stride` elements behind the one before: >=
// own.size(), more where `own` is a piece of what is gathered. Each sends its own to all others at
// once. Started by StartConversation; the memory and this object live until it is done.
class AllGather final : public Conversation {
 public:
  AllGather(const Transport& group, std::span<const float> own, std::span<float> all,
            std::size_t stride);

  std::size_t turns() const override { return 1; }
  void Begin(std::size_t turn) override;
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override;
  std::span<std::byte> Incoming(std::size_t turn, int peer) override;
  void End() override {}

 private:
  std::span<float> PartOf(int rank) const;

  const int rank_;
  const std::span<const float> own_;
  const std::span<float> all_;
  const std::size_t stride_;
};

}  // namespace tactus::collective
