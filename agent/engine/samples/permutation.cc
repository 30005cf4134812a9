#include "agent/engine/samples/permutation.h"

#include <bit>

#include "base/check.h"
#include "base/rng.h"

namespace tactus::engine {

EpochPermutation::EpochPermutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch)
    : size_(size) {
  TACTUS_CHECK(size >= 1);
  // An even number of bits, at least two, so that a Feistel network has two equal halves. The
  // domain is then below 4 size, or 4 for a size of 1: At() walks a few values at most on average.
  const int bits = static_cast<int>(std::bit_width(size - 1));
  half_bits_ = bits < 2 ? 1 : (bits + 1) / 2;
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
  Rng rng(Mix64(seed) ^ Mix64(~epoch));
  for (std::uint64_t& key : keys_) key = rng.Next();
}

std::uint64_t EpochPermutation::At(std::uint64_t position) const {
  TACTUS_CHECK(position < size_);
  std::uint64_t value = position;
  do {
    // Walks the cycle until it is back among the positions, which keeps it a permutation of them.
    value = Encrypt(value);
  } while (value >= size_);
  return value;
}

std::uint64_t EpochPermutation::Encrypt(std::uint64_t value) const {
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & half_mask_;
  for (const std::uint64_t key : keys_) {
    const std::uint64_t next = left ^ (Mix64(right ^ key) & half_mask_);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

}  // namespace tactus::engine
