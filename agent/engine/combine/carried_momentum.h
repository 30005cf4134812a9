// The momentum of sgd, where encodings that leave something out take it upon themselves: see
// residual_encoding.h.

#pragma once

#include <span>

namespace tactus::engine {

// Of one round. Equal on all members, but for own_samples.
struct CarriedMomentum {
  std::span<const float> momentum{};    // m, flat, the device's memory; empty: none is carried
  std::span<const float> parameters{};  // x, likewise
  double beta = 0;                      // (0, 1)
  bool nesterov = false;
  double weight_decay = 0;
  double samples = 0;      // N, of all members in the round
  double own_samples = 0;  // n_r, of this one

  bool any() const { return !momentum.empty() && samples > 0; }
};

}  // namespace tactus::engine
