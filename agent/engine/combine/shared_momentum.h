// What all members' optimizers hold alike while signs of the momentum travel in place of gradients:
// see one_bit_encoding.h.

#pragma once

#include <cstdint>
#include <span>

namespace tactus::engine {

// Of one round. Equal on all members, but for own_samples.
struct SharedMomentum {
  std::span<const float> first{};    // m, flat, the device's memory; empty: gradients travel dense
  std::span<const float> second{};   // v, likewise: frozen
  std::span<const double> scales{};  // c_l, one a segment, >= 0; 0: its momentum travels as float32
  double beta1 = 0.9;                // [0, 1)
  std::uint64_t since = 0;  // of the optimizer's steps, when v was frozen: other v, other number
  double samples = 0;       // N, of all members in the round
  double own_samples = 0;   // n_r, of this one
};

}  // namespace tactus::engine
