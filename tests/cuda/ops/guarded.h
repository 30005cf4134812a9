// Test buffers with guard words on both sides, at an address that is not aligned.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"

namespace tactus::cuda {

// The lengths that every operation is tried at: around vectors, cache lines and blocks.
inline constexpr std::size_t kLengths[] = {0, 1, 15, 16, 17, 31, 32, 33, 255, 256, 257, 1'000'003};

// `length` floats between guard words.
class Guarded {
 public:
  explicit Guarded(std::size_t length);

  std::span<float> span() { return std::span(storage_).subspan(kGuards, length_); }
  std::span<const float> span() const { return std::span(storage_).subspan(kGuards, length_); }
  float& operator[](std::size_t i) { return span()[i]; }

  // Whether every guard word is as it was.
  bool Intact() const;

 private:
  static constexpr std::size_t kGuards = 19;

  std::size_t length_;
  std::vector<float> storage_;
};

// `length` normal values times `scale`.
Guarded RandomBuffer(Rng& rng, std::size_t length, float scale = 1);

// The distance of two floats in units in the last place; 0 for two NaNs, huge for one.
std::int64_t UlpsBetween(float a, float b);

}  // namespace tactus::cuda
