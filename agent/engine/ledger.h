// The sample ledger: which positions of the epoch are used, and who takes the next ones.
//
// Every member holds the same ledger and feeds it the same facts (the plan and, from each applied
// round, one count a member), so nobody has to be asked which samples are free and a dead member's
// samples fall to the others by themselves.

#pragma once

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

  // Reserves the next round's blocks, one a member, from the front of the free positions.
  //
  // With B = sum b_i and R free positions: if R >= B member i gets b_i; otherwise the R are shared
  // in proportion, member i getting floor(R B_{i+1} / B) - floor(R B_i / B), B_i = b_0 + ... +
  // b_{i-1}. batch_sizes: one a member, sum >= 1. What an earlier call reserved is free again
  // first.
  const std::vector<Block>& Reserve(std::span<const std::uint32_t> batch_sizes);

  // The reserved round was applied and member i used the first counts[i] positions of its block;
  // the others are free again. counts: one a member, each at most the block's size. When nothing is
  // left the next epoch begins.
  void Apply(std::span<const std::uint64_t> counts);

  // The reserved round was not applied: it consumed nothing.
  void Abandon() { reserved_.clear(); }

  // The sample at a position of the running epoch, in [0, epoch_size).
  std::uint64_t SampleAt(std::uint64_t position) const { return order_.At(position); }

 private:
  std::uint64_t epoch_size_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::uint64_t consumed_ = 0;
  EpochPermutation order_;
  std::vector<Stretch> free_;  // in rising order; includes what is reserved
  std::vector<Block> reserved_;
};

// Samples in a block.
std::uint64_t SizeOf(const Block& block);

}  // namespace tactus::engine
