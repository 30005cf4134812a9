// LAMB where only the momentum is known, as its signs travel: the second moment is frozen, and so
// is every segment's ratio, which a fresh second moment corrects.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/ops/lamb.h"
#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// How far the correction of a segment's ratio may go.
struct FactorBounds {
  double min = 0.5;        // (0, 1]
  double max = 4;          // >= 1
  double threshold = 0.1;  // (0, 1): of the one before
};

// raw, cut to [min, max] and then to last * [1 - threshold, 1 + threshold]. Where `last` is within
// [min, max], as 1 is, so is what comes out. One that is not a number is taken for min.
//
// Source: [deepspeed] deepspeed/runtime/fp16/onebit/lamb.py.
double ClippedFactor(double raw, double last, const FactorBounds& bounds);

struct FrozenLambStep {
  LambStep lamb{};                // its bounds on the ratio are not looked at
  std::uint64_t frozen_step = 1;  // of which the second moment is, >= 1
  FactorBounds factor{};
};

// As LambBuffers.
struct FrozenLambBuffers {
  std::span<const float> gradients{};
  std::span<float> parameters{};
  std::span<float> first_moment{};
  std::span<const float> second_moment{};  // v: frozen
  std::span<float> fresh_moment{};         // w: as v where it was frozen
};

// One a segment, in the host's memory.
struct FrozenLambLayers {
  std::span<const double> ratios{};  // the frozen one, >= 0
  std::span<double> factors{};       // the last correction, 1 at first
};

// What the first half of a step leaves of each segment: ||u0||^2 and ||u||^2 of all, one pair after
// the other, and behind them max d / r of each.
inline constexpr std::size_t kFrozenLambSums = 3;

// One step is three calls: sums, on the device; what they say of the layers, on the host, as that
// is what checkpoints have; the way, on the device. For each segment x of the parameters, with its
// norms over the segment alone:
//
//   g <- gradient_scale * gradient
//   m <- beta1 m + (1 - beta1) g;   w <- beta2 w + (1 - beta2) g^2
//   d <- sqrt(v) / sqrt(1 - beta2^f) + epsilon             f: frozen_step
//   r <- sqrt(w) / sqrt(1 - beta2^t) + epsilon
//   u0 <- m / (1 - beta1^t) / d;   u <- u0 + weight_decay * x
//
//   phi <- max d / r over all with v > 0; 1 where there is none
//   with weight decay   o = min(1, ||u0|| / ||u||), 1 where ||u|| is 0;   phi <- phi o + 1 - o
//   factor <- ClippedFactor(phi, factor)
//
//   x <- x - learning_rate * ratio * factor * u
//
// Norms, phi and the factor are in float64, the rest is rounded as host::Lamb does. Padding is not
// touched. Where the gate is shut both calls on the device change nothing, and the sums stay as
// they are: the one between them is the caller's to leave out.
//
// Source: [deepspeed] deepspeed/runtime/fp16/onebit/lamb.py, steps 8 to 12 of section 7c of the
// specification. Differs: moments are corrected for their bias, as host::Lamb's are.

// rates <- -learning_rate * ratio * factor, of the factors that the sums lead to.
//
// sums   [kFrozenLambSums x segments]
// rates  [segments]
void FrozenLambRates(const FrozenLambStep& step, std::span<const double> sums,
                     const FrozenLambLayers& layers, std::span<double> rates);

namespace host {

// sums  [kFrozenLambSums x segments]
void FrozenLambSums(const FrozenLambStep& step, const SegmentTable& segments,
                    const FrozenLambBuffers& buffers, std::span<double> sums);

// rates  [segments]
void FrozenLambMove(const FrozenLambStep& step, const SegmentTable& segments,
                    const FrozenLambBuffers& buffers, std::span<const double> rates);

}  // namespace host

namespace kernels {

// The host's, queued on `stream`, over device memory: two launches and one whatever the number of
// segments. into.sums are [kFrozenLambSums x segments], the partials 2 a chunk.
//
// Tolerance against the host: moments, max d / r and what the move leaves are bit-identical; of n
// elements the norms differ by 2 n 2^-53 of themselves, as squares of float32 are exact in float64
// and add up in another order.
void FrozenLambSums(Stream stream, const FrozenLambStep& step, const SegmentChunks& segments,
                    const FrozenLambBuffers& buffers, const SumsInto& into);
void FrozenLambMove(Stream stream, const FrozenLambStep& step, const SegmentChunks& segments,
                    const FrozenLambBuffers& buffers, std::span<const double> rates);

}  // namespace kernels
}  // namespace tactus::cuda
