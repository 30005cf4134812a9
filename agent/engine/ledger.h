// The sample ledger: which positions of the epoch are used, and who takes the next ones.
//
// Every member holds the same ledger and feeds it the same facts (the plan and, from each applied
// round, one count a member), so nobody has to be asked which samples are free and a dead member's
// samples fall to the others by themselves.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/engine/permutation.h"

namespace tactus::engine {

// Positions [begin, end) of an epoch.
struct Stretch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// A member's part of a round, in rising order, without overlap.
using Block = std::vector<Stretch>;

// Every position of an epoch is reserved, then either used or returned, and used exactly once per
// epoch. A round never crosses an epoch's edge: the last round of an epoch is short. Not
// thread-safe.
class SampleLedger {
 public:
  // epoch_size [samples] >= 1; seed chooses the order of every epoch.
  SampleLedger(std::uint64_t epoch_size, std::uint64_t seed);

  std::uint64_t epoch() const { return epoch_; }  // running, from 0
  std::uint64_t epoch_size() const { return epoch_size_; }
  std::uint64_t consumed() const {
    return consumed_;
  }  // positions of the running epoch used so far
  std::uint64_t remaining() const { return epoch_size_ - consumed_; }

  // How the rounds to come are shared out, and whose blocks Reserve returns.
  // batch_sizes: one a member, sum >= 1; member: one of them. Nothing may be reserved.
  void SetShares(std::vector<std::uint32_t> batch_sizes, std::size_t member);

  // Reserves the next round's blocks, one a member, from the front of the free positions, and
  // returns that of this member. The cost does not depend on the number of members: in a group of
  // thousands, each pays for itself alone.
  //
  // With B = sum b_i and R free positions: if R >= B member i gets b_i; otherwise the R are shared
  // in proportion, member i getting floor(R B_{i+1} / B) - floor(R B_i / B), B_i = b_0 + ... +
  // b_{i-1}. What an earlier call reserved is free again first.
  Block Reserve();

  // Positions in all blocks that are reserved; 0: none are.
  std::uint64_t reserved() const { return reserved_; }

  // The reserved round was applied and member i used the first counts[i] positions of its block;
  // the others are free again. counts: one a member, each at most the block's size. When nothing is
  // left the next epoch begins.
  void Apply(std::span<const std::uint64_t> counts);

  // The same, with every block used whole.
  void ApplyWhole();

  // The reserved round was not applied: it consumed nothing.
  void Abandon() { reserved_ = 0; }

  // The sample at a position of the running epoch, in [0, epoch_size).
  std::uint64_t SampleAt(std::uint64_t position) const { return order_.At(position); }

 private:
  // Of the reserved positions, those of members whose batch sizes sum to `prefix`.
  std::uint64_t Edge(std::uint64_t prefix) const;
  std::vector<Stretch> Unused(std::span<const std::uint64_t> counts) const;
  void DropReserved();
  void Consume(std::uint64_t used);

  std::uint64_t epoch_size_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::uint64_t consumed_ = 0;
  EpochPermutation order_;
  std::vector<Stretch> free_;  // in rising order; includes what is reserved

  std::vector<std::uint32_t> batch_sizes_;  // by member
  std::uint64_t wanted_ = 0;                // their sum
  std::uint64_t before_ = 0;                // sum of those before this member's
  std::uint64_t own_ = 0;                   // this member's
  std::uint64_t reserved_ = 0;              // from the front of free_
};

// Samples in a block.
std::uint64_t SizeOf(const Block& block);

}  // namespace tactus::engine
