#include "tests/cuda/ops/guarded.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace tactus::cuda {
namespace {

constexpr std::uint32_t kGuardBits = 0x5eadbeef;

bool IsGuard(float value) { return std::bit_cast<std::uint32_t>(value) == kGuardBits; }

// Floats in order as integers in order, -0 and +0 as one.
std::int64_t Place(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits >= 0 ? bits : std::int64_t{std::numeric_limits<std::int32_t>::min()} - bits;
}

}  // namespace

Guarded::Guarded(std::size_t length)
    : length_(length), storage_(length + 2 * kGuards, std::bit_cast<float>(kGuardBits)) {
  std::fill(span().begin(), span().end(), 0.0f);
}

bool Guarded::Intact() const {
  const auto end = storage_.begin() + kGuards;
  return std::all_of(storage_.begin(), end, IsGuard) &&
         std::all_of(storage_.end() - kGuards, storage_.end(), IsGuard);
}

Guarded RandomBuffer(Rng& rng, std::size_t length, float scale) {
  Guarded buffer(length);
  for (float& value : buffer.span()) value = scale * static_cast<float>(rng.Normal());
  return buffer;
}

std::int64_t UlpsBetween(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::isnan(a) == std::isnan(b) ? 0 : std::numeric_limits<std::int64_t>::max();
  }
  return std::abs(Place(a) - Place(b));
}

}  // namespace tactus::cuda
