// The gate before an optimizer step: whether the step is taken, and by what its gradient is
// multiplied, decided from the gradient's norm where that norm is.
//
// A local step must not be taken with a gradient or a loss that is not finite, and clipping needs
// the norm. The host could ask for them, but would wait for the device at every step; so it says
// beforehand what follows, the device decides, and the steps that come after look at the gate.

#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "cuda/ops/host_device.h"
#include "cuda/ops/own_sums.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Places in a gate's row of doubles, which is zero at first.
inline constexpr std::size_t kGateScale = 0;     // of the next step's gradient
inline constexpr std::size_t kGateOpen = 1;      // 1: it is taken; 0: it changes nothing
inline constexpr std::size_t kGateNorm2Sum = 2;  // of the mean gradients of all steps let through
inline constexpr std::size_t kGatePoison = 3;    // 0; not a number once a step was not let through
inline constexpr std::size_t kGateLength = 4;

// What follows from the squared norm of a sum of gradients.
struct StepGate {
  double samples = 1;    // turns the sum into the mean, > 0
  double clip_norm = 0;  // > 0: the mean's Euclidean norm is cut to it; 0: it is not
};

// What turns a sum of gradients into their mean, cut to clip_norm where that is > 0:
// min(1, clip_norm / ||mean||) / divisor.
//
// mean_norm2  squared norm of the mean
//
// Source: design; clipping as torch.nn.utils.clip_grad_norm_ without its 1e-6 in the denominator.
TACTUS_HOST_DEVICE inline double ClippedScale(double divisor, double mean_norm2, double clip_norm) {
  const double norm = std::sqrt(mean_norm2);
  const double scale = 1 / divisor;
  return clip_norm > 0 && norm > clip_norm ? scale * (clip_norm / norm) : scale;
}

// Whether a step may be taken, and then its gradient's scale; without a gate (null) it may, and the
// scale stays.
TACTUS_HOST_DEVICE inline bool Through(const double* gate, float& scale) {
  if (gate == nullptr) return true;
  if (gate[kGateOpen] == 0) return false;
  scale = static_cast<float>(gate[kGateScale]);
  return true;
}

namespace host {

// n = norm2 / samples^2, the squared norm of the mean.
//
//   n and the   open; scale <- ClippedScale(samples, n, clip_norm); the sum of squared norms grows
//   loss        by n
//   finite
//   otherwise   shut; poison <- not a number
//
// own   both: norm2 as SquaredNorm gives it
// gate  [kGateLength]
//
// All in float64. Tolerance against a twin: none, bit-identical (division and square root are
// correctly rounded on both sides), but for the bits of a NaN.
void Gate(const StepGate& step, const OwnSums& own, std::span<double> gate);

}  // namespace host

namespace kernels {

// The operation of the host, queued on `stream`; all spans are device memory.
void Gate(Stream stream, const StepGate& step, const OwnSums& own, std::span<double> gate);

}  // namespace kernels
}  // namespace tactus::cuda
