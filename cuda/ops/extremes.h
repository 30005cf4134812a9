// Extremes of every segment: what an encoder has to know before it encodes.

#pragma once

#include <cstdint>
#include <span>

#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// One value a segment each. As float32, so that all of them can ride in one all-reduce by maximum.
struct Extremes {
  // The largest magnitude among the finite elements, exactly; 0 if there are none.
  std::span<float> max_abs{};
  // How many elements are infinite or NaN: exact to 2^24, rounded above, 0 only for none.
  std::span<float> nonfinite{};
};

namespace host {

// extremes <- those of each segment of `buffer`, in the table's order; both [segments]. Padding is
// not looked at. A maximum that let NaN in would hide it or spread it, depending on the order; so
// the two are kept apart, and whoever encodes looks at the count first.
//
// Tolerance against a twin: none, bit-identical: neither a maximum nor a count depends on an order.
void ExtremesPerSegment(std::span<const float> buffer, const SegmentTable& segments,
                        const Extremes& extremes);

}  // namespace host

namespace kernels {

// What ExtremesPerSegment writes.
struct ExtremesInto {
  Extremes extremes{};                  // [segments] each
  std::span<std::uint32_t> partials{};  // scratch: two a chunk
  std::span<std::uint32_t> counters{};  // scratch: as those of SumsInto
};

// The operation of the host, queued on `stream`: all spans are device memory. A launch that cannot
// be queued stops the process.
void ExtremesPerSegment(Stream stream, std::span<const float> buffer, const SegmentChunks& segments,
                        const ExtremesInto& into);

}  // namespace kernels
}  // namespace tactus::cuda
