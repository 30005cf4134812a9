// Lanes: the few float32 numbers behind a vector that ride in the same all-reduce.
//
// Most of them the host knows before the vector is final. Others are sums of the member's losses or
// depend on the vector's squared norm, which a device holds for itself; and whether these are
// finite decides about the rest. So the host says what it would write in either case, and the
// device chooses: nobody waits for them.

#pragma once

#include <cstddef>
#include <span>

#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Lanes written at most: they travel as a kernel's arguments.
inline constexpr std::size_t kWrittenLanesMax = 16;

// Which sum of losses a lane holds.
enum class LossLane {
  kNone,
  kAll,     // LaneSums::loss
  kCommon,  // LaneSums::common_loss
};

// What lanes are written from.
struct LaneSums {
  std::span<const double> norm2{};        // squared norm of what is put in
  std::span<const double> loss{};         // sum of the losses
  std::span<const double> common_loss{};  // of these, the losses at parameters that all members had
};

// One lane and what it is to hold.
struct LaneValue {
  std::size_t lane = 0;     // index in the tail
  float if_finite = 0;      // where squared norm and loss are finite
  float if_not_finite = 0;  // and where one of them is not
  double norm_factor = 0;   // not 0: where they are finite, the lane holds
  double norm_divisor = 1;  //   norm2 * norm_factor / norm_divisor instead
  // Where they are finite, the lane holds this sum instead.
  LossLane loss = LossLane::kNone;
};

namespace host {

// tail[value.lane] <- what the value says, for each of `values`; the other lanes stay as they are.
//
// values  0 to kWrittenLanesMax of different lanes, their list in host memory
// own     one number each: the squared norm as SquaredNorm gives it, and the sums of losses, which
//         may be one; the whole sum decides whether they are finite
//
// norm2 * norm_factor / norm_divisor is computed from left to right in float64 and rounded once, as
// the loss is.
// What is too large for float32 becomes an infinity. Tolerance against a twin: none, bit-identical.
void WriteLanes(std::span<const LaneValue> values, const LaneSums& own, std::span<float> tail);

}  // namespace host

namespace kernels {

// The operation of the host, queued on `stream`: `own` and `tail` are device memory, the list of
// values is the host's and may go when the call returns. A launch that cannot be queued stops the
// process.
void WriteLanes(Stream stream, std::span<const LaneValue> values, const LaneSums& own,
                std::span<float> tail);

}  // namespace kernels
}  // namespace tactus::cuda
