// The gradient noise scale: how many samples a gradient needs before more of them say little new.

#pragma once

#include <cstdint>
#include <optional>

#include "base/fields.h"
#include "policies/adascale.h"
#include "policies/plan.h"

namespace tactus::policies {

// Estimates the noise scale from the facts of updates:
//
//   phi = v / mu2   [samples]
//
// v    [gradient^2]  variance of one sample's gradient, tr(Sigma)
// mu2  [gradient^2]  squared norm of the mean gradient
//
// Both are EstimateMoments' with a base batch of 1, averaged over some 1 / kWeight updates before
// the division. They enter unclipped: one estimate of mu2 is often negative where noise dominates,
// and to clip it would make phi too small there.
//
// phi changes with the parameters, and grows as the loss falls.
//
// Source: [mccandlish] section 2.2 and appendix A.1; memory, unverified.
class GradientNoise {
 public:
  static constexpr double kWeight = 0.02;           // of the newest update
  static constexpr std::uint64_t kUpdatesMin = 10;  // before there is an estimate
  static constexpr double kSamplesMax = 1e9;        // noise that hides the mean gives this

  // Folds one update in; facts without an estimate (n < 2, not usable) change nothing.
  void Observe(const UpdateFacts& facts);

  // phi in [0, kSamplesMax]; nothing before kUpdatesMin updates, and for gradients of zero.
  std::optional<double> Samples() const;

  // Plain data, for checkpoints.
  const MomentAverage::State& state() const { return average_.state(); }
  void Restore(const MomentAverage::State& state) { average_.Restore(state); }

  friend void Fields(auto& archive, Of<GradientNoise> auto& noise) {
    archive("average", noise.average_);
  }

 private:
  MomentAverage average_{Averaging::kDebiased};  // of a single sample's moments
};

// What an applied round tells of the gradients' noise; facts without an estimate where it tells
// nothing.
UpdateFacts NoiseFacts(const Report& report);

// The noise scale from rounds of one step and from windows of local steps, each by itself: what
// they tell is of gradients at a point and along a way, and is not to be averaged. Of a kind that
// comes back after kUpdatesMin rounds of the other, what it told before is out of date.
class RoundNoise {
 public:
  void Observe(const Report& report);

  // Of the kind of the latest round; while that is unknown, of the other.
  std::optional<double> Samples() const;

  friend void Fields(auto& archive, Of<RoundNoise> auto& noise) {
    archive("steps", noise.steps_);
    archive("windows", noise.windows_);
    archive("window", noise.window_);
    archive("rounds", noise.rounds_);
  }

 private:
  GradientNoise steps_;
  GradientNoise windows_;
  bool window_ = false;       // the latest
  std::uint64_t rounds_ = 0;  // of that kind, since it was another
};

// Progress of one sample in updates of `batch` samples, over that of one in updates of the base
// batch, each at the learning rate that is best for it:
//
//   e = (phi + B_0) / (phi + B)
//
// batch, base_batch  [samples]  B and B_0, > 0
// noise_samples      [samples]  phi >= 0
// Returns e > 0: 1 for the base batch, less for a larger one. S e = AdaScale's gain, S = B / B_0.
//
// Source: [adaptdl] goodput.py efficiency(), read: the gain over the scale, which is e by algebra.
// [pollux]; memory, unverified. Differs: goodput.py multiplies by B_0 where it means to divide.
struct Efficiency {
  double batch = 32;
  double base_batch = 32;
  double noise_samples = 0;
};
double StatisticalEfficiency(const Efficiency& of);

}  // namespace tactus::policies
