// What 1-bit Adam and LAMB know besides moments: equal on all members.

#pragma once

#include <cstdint>
#include <vector>

namespace tactus::engine {

// A segment's part in LAMB.
struct LayerRatio {
  double sum = 0;     // of its ratios, an exponential average from 0
  double weight = 0;  // of 1 likewise, [0, 1]
  double factor = 1;  // the last correction of what is frozen, > 0

  double Mean() const { return weight > 0 ? sum / weight : 1; }

  friend bool operator==(const LayerRatio&, const LayerRatio&) = default;
};

// Plain data, for checkpoints. Without signs in force only frozen_steps tells anything.
struct OneBitState {
  bool frozen = false;             // the second moment, as signs travel
  std::uint64_t since = 0;         // of the optimizer's steps, where it was frozen last
  std::uint64_t frozen_steps = 0;  // of the optimizer's steps, those that left it as it was
  double begun = 0;                // where the warm-up began [base steps]
  double variance = 0;           // the second moments' sum where it began to be steady; 0: nowhere
  std::uint64_t looks = 0;       // in a row that found it steady; frozen: LAMB's factors at bounds
  std::uint64_t next_look = 0;   // [steps] of the optimizer
  std::vector<double> scales{};  // c_l, one a segment; empty: it was never frozen
  std::vector<LayerRatio> layers{};  // one a segment, of LAMB; empty: it was never followed

  friend bool operator==(const OneBitState&, const OneBitState&) = default;
};

}  // namespace tactus::engine
