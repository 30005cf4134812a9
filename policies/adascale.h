// AdaScale: how much further one update may go because its gradient is a mean over more samples.

#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "base/fields.h"
namespace tactus::policies {

// What all members know of one update: its gradient is the mean over micro-batches of b_i samples.
// Gradients are those of the mean loss over their own samples, without loss scale, not clipped.
struct UpdateFacts {
  double samples = 0;  // B = sum_i b_i
  // n, micro-batches with samples. 0 says that the norms are not those of a mean gradient (Adasum):
  // progress is counted, nothing is estimated.
  std::uint32_t contributors = 0;
  double samples_gradient_norm2 = 0;  // sum_i b_i ||g_i||^2
  double gradient_norm2 = 0;          // ||sum_i b_i g_i / B||^2
};

// Squared norms above are taken for overflow. [gradient^2]
inline constexpr double kNorm2Max = 1e150;

// Whether the facts are those of an update that was applied: samples > 0, both norms finite, within
// [0, kNorm2Max].
bool Usable(const UpdateFacts& facts);

// Moments of a gradient over a base batch. [gradient^2]
struct GradientMoments {
  double sigma2 = 0;  // trace of its covariance
  double mu2 = 0;     // squared norm of its mean

  friend bool operator==(const GradientMoments&, const GradientMoments&) = default;
};
void Fields(auto& archive, Of<GradientMoments> auto& moments) {
  archive("sigma2", moments.sigma2);
  archive("mu2", moments.mu2);
}

// Least sigma2 that enters an average; keeps the gain of a vanished gradient defined.
// Source: [fairscale] adascale.py.
inline constexpr double kSigma2Min = 1e-6;

// Unbiased estimates from one update of n >= 2 micro-batches of any sizes:
//
//   v      = (sum_i b_i ||g_i||^2 - B ||g||^2) / (n - 1)     variance of one sample's gradient
//   sigma2 = v / B_0,   mu2 = ||g||^2 - v / B
//
// base_batch  [samples]  B_0 > 0
// Returns nothing with n < 2 or unusable facts. Either estimate may be below 0, by chance.
//
// Source: design. sum_i b_i (g_i - g)^2 has n - 1 degrees of freedom, each worth one sample's
// variance.
std::optional<GradientMoments> EstimateMoments(const UpdateFacts& facts, double base_batch);

// sigma2 >= kSigma2Min and mu2 >= 0, as they enter the averages. mu2 is not estimated anew.
// Source: [fairscale] adascale.py.
GradientMoments Clipped(const GradientMoments& moments);

// The gain, by which AdaScale multiplies the learning rate that was chosen for the base batch:
//
//   r = (sigma2 + mu2) / (sigma2 / S + mu2)
//
// moments  averaged; sigma2 > 0, mu2 >= 0
// scale    S > 0
// Returns r between 1 and S: near S if noise dominates, near 1 if it does not. A short last round
// has S < 1, and r in [S, 1].
//
// Source: [adascale].
double Gain(const GradientMoments& moments, double scale);

// How samples become an average. w in (0, 1] is the weight of the newest, 1 - theta.
enum class Averaging {
  kWindow,    // plain mean of the first 1/w, then an exponential moving average
  kDebiased,  // exponential moving average over the sum of its weights, from the first
};

// A moving average of moments; each sample brings its own w, so that the memory may change.
//
//   average += s (sample - average)
//   kWindow:    s = max(1/c, w), c = samples so far with this one; so plain mean while c <= 1/w
//   kDebiased:  s = w / W, W <- W + w (1 - W); with constant w, W = 1 - (1 - w)^c
//
// Source: [adascale] for kWindow; [fairscale] adascale.py for kDebiased.
class MomentAverage {
 public:
  // Plain data, for checkpoints.
  struct State {
    GradientMoments moments{};
    std::uint64_t count = 0;
    double weights = 0;  // W

    friend bool operator==(const State&, const State&) = default;
    friend void Fields(auto& archive, Of<State> auto& state) {
      archive("moments", state.moments);
      archive("count", state.count);
      archive("weights", state.weights);
    }
    friend bool Sound(const State& state) {
      return std::isfinite(state.moments.sigma2) && std::isfinite(state.moments.mu2) &&
             state.weights >= 0 && state.weights <= 1;
    }
  };

  explicit MomentAverage(Averaging averaging) : averaging_(averaging) {}

  void Fold(const GradientMoments& sample, double weight);

  const State& state() const { return state_; }
  void Restore(const State& state) { state_ = state; }

  friend void Fields(auto& archive, Of<MomentAverage> auto& average) {
    archive("state", average.state_);
  }

 private:
  const Averaging averaging_;
  State state_;
};

struct AdascaleOptions {
  double base_batch = 32;  // [samples] B_0 > 0
  Averaging averaging = Averaging::kWindow;
  std::optional<double> theta{};  // in [0, 1), else max(1 - S / 1000, 0)
};

// The gain of an update from the averaged moments of earlier ones. Gain before Fold is the paper's
// reading (averages over prior iterations, first gain 1), Gain after Fold the inclusive one of
// [fairscale] and [adaptdl].
//
// The moments describe the base batch: they stay valid when S or n changes.
//
// The same state and facts give the same bits on every member.
//
// The gain is for a mean of n >= 2 gradients: who makes an update of a single one takes 1.
//
// Source: [adascale].
class Adascale {
 public:
  // Plain data, for checkpoints.
  struct State {
    double base_batch = 32;  // [samples] that the moments describe
    MomentAverage::State average{};
    bool estimated = false;  // any update gave an estimate

    friend bool operator==(const State&, const State&) = default;
  };

  explicit Adascale(const AdascaleOptions& options);

  // r for an update of S = samples / base_batch, also of one that is only considered; 1 as long as
  // no update gave an estimate.
  double GainFor(double samples) const;

  // Whether any update gave an estimate.
  bool estimated() const { return estimated_; }

  // Folds one update's facts in. Unusable facts change nothing; with n < 2 nothing is averaged.
  void Fold(const UpdateFacts& facts);

  // Averaged moments of the base batch; zeros before the first estimate.
  const GradientMoments& moments() const { return average_.state().moments; }

  State state() const;

  // Goes on from a state, also from one of another base batch: sigma2 <- sigma2 B_0' / B_0.
  void Restore(const State& state);

 private:
  const AdascaleOptions options_;
  MomentAverage average_;
  bool estimated_ = false;
};

}  // namespace tactus::policies
