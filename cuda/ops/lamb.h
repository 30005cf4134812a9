// LAMB: Adam's direction, with a length of its own for every segment.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/step_gate.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Scalars of one LAMB step.
struct LambStep {
  double learning_rate = 0;                                    // >= 0
  double beta1 = 0.9;                                          // in [0, 1)
  double beta2 = 0.999;                                        // in [0, 1)
  float epsilon = 1e-6f;                                       // > 0
  double weight_decay = 0;                                     // >= 0
  double ratio_min = 0;                                        // >= 0: bounds of the trust ratio
  double ratio_max = std::numeric_limits<double>::infinity();  // >= ratio_min
  float gradient_scale = 1;  // turns the sum in the gradient buffer into a (clipped) mean
  std::uint64_t step = 1;    // t, counted from 1
  // Null, or a row of StepGate in the buffers' memory: shut, the step changes nothing; open, its
  // scale takes the place of gradient_scale.
  const double* gate = nullptr;
};

// Flat buffers, all equally long, not overlapping, in the layout of one table of segments.
struct LambBuffers {
  std::span<const float> gradients{};
  std::span<float> parameters{};
  std::span<float> first_moment{};   // zero before the first step
  std::span<float> second_moment{};  // zero before the first step
};

namespace host {

// One step; for each segment x of the parameters, with its norms over the segment alone:
//
//   g <- gradient_scale * gradient
//   m <- beta1 m + (1 - beta1) g;   v <- beta2 v + (1 - beta2) g^2
//   u <- m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon) + weight_decay * x
//   ratio <- ||x|| / ||u||, into [ratio_min, ratio_max]; 1 where either norm is 0
//   x <- x - learning_rate * ratio * u
//
// Norms and ratio are in float64, the rest is rounded as host::Adam does. Padding is not touched. A
// gradient that is not finite spoils its own segment at most. Tolerance against a twin: for u, 15
// roundings (2^-24 each) of its terms; for the ratio, those of ||u||; for x, besides, 2 of the
// product and 1 of the new x. u's terms take 4 roundings in m, half of 6 in v, 4 more to the
// divisor, 3 to the quotient and 1 in the sum.
//
// Source: [lamb] algorithm 2 with phi(z) = z, memory, unverified; the bounds on the ratio and the 1
// for a norm of 0 are those of [deepspeed] deepspeed/runtime/fp16/onebit/lamb.py.
// Differs: [deepspeed] leaves out the bias correction, which [lamb] has.
void Lamb(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers);

}  // namespace host

namespace kernels {

// Norms of a segment that stay in `into`: ||x||^2 and ||u||^2.
inline constexpr std::size_t kLambSumsPerSegment = 2;

// The host's step, queued on `stream`, over device memory: two launches whatever the number of
// segments. into.sums are [2 x segments], the partials 2 a chunk.
//
// Tolerance against the host: the moments are bit-identical. The norms differ in the order of their
// sums, which moves the rounded rate by 1 ulp at most: 2^-22 of |rate u| with the products'
// roundings, and 2^-23 of |x| with the sums'.
void Lamb(Stream stream, const LambStep& step, const SegmentChunks& segments,
          const LambBuffers& buffers, const SumsInto& into);

}  // namespace kernels
}  // namespace tactus::cuda
