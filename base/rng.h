// Chance as an argument: a small generator whose output is the same with every standard library.

#pragma once

#include <cstdint>
#include <string_view>

namespace tactus {

// Mixes one 64-bit word into another, bijectively.
// Source: [splitmix] the finaliser "mix64variant13" as in java.util.SplittableRandom; memory,
// unverified.
constexpr std::uint64_t Mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// SplitMix64. One generator a consumer, forked by label, so that a new draw in one place does not
// shift another. Not for secrets. Not thread-safe.
class Rng {
 public:
  explicit constexpr Rng(std::uint64_t seed) : state_(seed) {}

  // Uniform over all 64-bit values.
  constexpr std::uint64_t Next() { return Mix64(state_ += 0x9e3779b97f4a7c15ULL); }

  // Uniform in [0, 1), with 53 random bits.
  constexpr double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Uniform in [0, bound), bound >= 1. The bias is below bound / 2^64.
  constexpr std::uint64_t Below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

  // Standard normal, by the sum of twelve uniforms: within +-6, enough for modelled noise.
  constexpr double Normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum;
  }

  // An independent generator for the consumer `label`; does not advance this one.
  constexpr Rng Fork(std::string_view label) const {
    std::uint64_t hash = state_ ^ 0xcbf29ce484222325ULL;
    for (const char c : label) {
      hash = Mix64((hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL);
    }
    return Rng(hash);
  }

 private:
  std::uint64_t state_;
};

}  // namespace tactus
