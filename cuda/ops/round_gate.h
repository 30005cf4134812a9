// The gate before what a group makes of a combination: whether the combined vector is applied, and
// by what it is multiplied, decided where the sums are.
//
// The host would decide the same from the same numbers, but only once it has them; so what follows
// is queued behind this gate, and the host reads afterwards what was done.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/ops/step_gate.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Places in a round gate's row of doubles; kGateScale and kGateOpen are those of a step's gate, so
// that what looks at the one looks at the other.
inline constexpr std::size_t kRoundGateLost =
    2;  // 1: the group was lost; 0: it was not, or not yet
inline constexpr std::size_t kRoundGateLength = 3;

// What the host knows of a round before it is combined.
struct RoundGate {
  double samples = 0;    // that the members have together; 0 shuts the gate
  double divisor = 1;    // turns what is combined into a mean, > 0
  double clip_norm = 0;  // > 0: the mean's Euclidean norm is cut to it; 0: it is not
};

// What the combination gave, each in the buffers' memory.
struct RoundFacts {
  std::span<const double> norm2{};     // one number: squared norm of what was combined
  std::span<const float> samples{};    // one number: the sum of the members'
  std::span<const float> nonfinite{};  // one number: members with something that is not finite
  // Null, or in memory that host and device reach: not 0 once what was combined may be anything,
  // because the group was given up before it was done. Another thread may write it at any time.
  const std::uint32_t* lost = nullptr;
};

namespace host {

// n = norm2 / divisor^2, the squared norm of the mean.
//
//   not lost, samples as expected and > 0,    open; scale <- ClippedScale(divisor, n, clip_norm)
//     nobody with something not finite, and n finite
//   otherwise                                 shut; scale <- 0
//
// gate  [kRoundGateLength]; after: all of it
//
// All in float64. Tolerance against a twin: none, bit-identical (division and square root are
// correctly rounded on both sides).
void GateRound(const RoundGate& round, const RoundFacts& facts, std::span<double> gate);

}  // namespace host

namespace kernels {

// The operation of the host, queued on `stream`; all spans are device memory. `lost` is read when
// the device comes to it.
void GateRound(Stream stream, const RoundGate& round, const RoundFacts& facts,
               std::span<double> gate);

}  // namespace kernels
}  // namespace tactus::cuda
