// The order of samples in an epoch: a keyed pseudo-random permutation, computed and never stored.

#pragma once

#include <array>
#include <cstdint>

namespace tactus::engine {

// A bijection of [0, size) chosen by (seed, epoch). Two objects with equal arguments agree on every
// machine, so members need not tell one another which sample stands where.
//
// A balanced Feistel network of kRounds rounds over the smallest even number of bits that hold size
// - 1; values beyond size are mapped again until they fall inside ("cycle walking"), fewer than 4
// times on average. Statistically good, not for secrets. Immutable; any thread.
//
// Source: [luby-rackoff] for the network, [black-rogaway] for cycle walking; memory, unverified.
class EpochPermutation {
 public:
  // size >= 1.
  EpochPermutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch);

  std::uint64_t size() const { return size_; }

  // The sample at `position`, both in [0, size).
  std::uint64_t At(std::uint64_t position) const;

 private:
  static constexpr int kRounds = 6;

  std::uint64_t Encrypt(std::uint64_t value) const;

  std::uint64_t size_;
  int half_bits_;
  std::uint64_t half_mask_;
  std::array<std::uint64_t, kRounds> keys_;
};

}  // namespace tactus::engine
