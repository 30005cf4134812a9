// A window of local steps: the parameter delta that a member puts in, and how the combined delta is
// applied, with block momentum or without.

#pragma once

#include <span>

#include "cuda/ops/step_gate.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// How a combined delta is applied.
struct BlockMomentumStep {
  double scale = 1;          // turns the buffer into the combined delta
  double learning_rate = 0;  // eta of the window, >= 0; 1: u is in units of parameters
  double momentum = 0;       // beta, in [0, 1); 0: plain averaging
  // Null, or a row of RoundGate in the buffers' memory: open, its scale takes the place of `scale`;
  // shut, the window is undone, but where the group was lost nothing happens: the window may be
  // combined once more.
  const double* gate = nullptr;
};

// Flat buffers, all equally long, not overlapping.
struct BlockMomentumBuffers {
  std::span<const float> start{};  // the group's parameters at the window's start
  std::span<const float> delta{};  // the combined one, before `scale`
  std::span<float> momentum{};     // u, zero at first; empty where momentum or rate is 0
  std::span<float> parameters{};   // out: the group's after the window
};

namespace host {

// delta <- now - start, rounded once. Equal lengths; `delta` is `now` or overlaps neither.
// Tolerance against a twin: none, bit-identical, but for the bits of a NaN.
void ParameterDelta(std::span<const float> now, std::span<const float> start,
                    std::span<float> delta);

// One window's end:
//
//   x <- start + scale delta                                           if momentum or rate is 0
//   u <- momentum u - (scale / rate) delta;   x <- start - rate u      otherwise
//   x <- start, u as it was                                            behind a gate that is shut
//   x and u as they were                                               ... as the group was lost
//
// The factors (scale, momentum, scale / rate, rate) are computed in float64 and rounded once to
// float32; then every product and every sum is rounded once: bit for bit what Scale and two Axpy
// over copied buffers give, in one pass. At a rate of zero nothing moved, and the momentum has no
// unit to be told in. Tolerance against a twin: none, bit-identical, but for the bits of a NaN.
//
// Source: [slowmo] algorithm 1 with alpha = 1, which is BMUF.
void BlockMomentum(const BlockMomentumStep& step, const BlockMomentumBuffers& buffers);

}  // namespace host

namespace kernels {

// The operations of the host, queued on `stream`: all spans are device memory. A launch that cannot
// be queued stops the process.

void ParameterDelta(Stream stream, std::span<const float> now, std::span<const float> start,
                    std::span<float> delta);
void BlockMomentum(Stream stream, const BlockMomentumStep& step,
                   const BlockMomentumBuffers& buffers);

}  // namespace kernels
}  // namespace tactus::cuda
