// Whole numbers of 64 bits as what an all-reduce sums: each member puts its own in places of its
// own, zeros elsewhere, and so all learn of all.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tactus::engine {

// A float32 holds whole numbers of 24 bits, and a sum of one of them and zeros is exact.
inline constexpr std::size_t kFloatsOfWord = 4;
inline constexpr unsigned kBitsOfFloat = 16;

// floats [kFloatsOfWord]
inline void PutWord(std::uint64_t word, std::span<float> floats) {
  for (std::size_t i = 0; i < kFloatsOfWord; ++i) {
    floats[i] = static_cast<float>(word >> (kBitsOfFloat * i) & ((1u << kBitsOfFloat) - 1));
  }
}

inline std::uint64_t WordIn(std::span<const float> floats) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < kFloatsOfWord; ++i) {
    word |= static_cast<std::uint64_t>(floats[i]) << (kBitsOfFloat * i);
  }
  return word;
}

}  // namespace tactus::engine
