// The least gain that a change is made for, of a policy that tires of small changes.

#pragma once

#include <algorithm>
#include <cmath>

#include "base/fields.h"

namespace tactus::policies {

// Grows by kRestlessness with every change, up to `most`, and comes back to `least` with a
// half-life: noise moves a plan ever less often, a rest forgives it.
//
// Pure; not thread-safe.
//
// Source: design.
class LeastGain {
 public:
  static constexpr double kRestlessness = 1.5;

  // least, most: relative gains, 0 < least <= most;  half_life: [s] of training > 0.
  constexpr LeastGain(double least, double most, double half_life)
      : least_(least), most_(most), half_life_(half_life), value_(least) {}

  double value() const { return value_; }

  // So many seconds of training passed.
  void Rest(double seconds) {
    value_ = least_ + (value_ - least_) * std::exp2(-seconds / half_life_);
  }
  // A change was made.
  void Tire() { value_ = std::min(value_ * kRestlessness, most_); }

  friend void Fields(auto& archive, Of<LeastGain> auto& gain) { archive("value", gain.value_); }
  friend bool Sound(const LeastGain& gain) {
    return gain.value_ >= gain.least_ && gain.value_ <= gain.most_;
  }

 private:
  double least_;
  double most_;
  double half_life_;
  double value_;
};

}  // namespace tactus::policies
