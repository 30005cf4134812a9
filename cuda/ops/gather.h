// Gathering: values that lie scattered in memory become a stretch of a flat buffer, of which the
// squared norm is told by the way. So a pass's gradients are taken from where autograd left them,
// in one launch a bucket: 8 bytes an element, norm included, where an addition a tensor into zeros
// takes 12, the norm 4 and the zeros 4.

#pragma once

#include <cstddef>
#include <span>

#include "base/check.h"
#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// One of the scattered arrays, and where its values belong.
struct GatherPart {
  std::size_t offset = 0;  // [elements] from the stretch's start, a multiple of 4
  std::size_t length = 0;  // [elements]
  const float* from = nullptr;
};

// What is gathered. `parts` is a list in host memory; they stand in rising order, lie within the
// stretch and do not overlap, neither there nor with the stretch where they come from.
struct Gathering {
  std::span<const GatherPart> parts{};
  bool adds = false;  // to what the stretch holds; otherwise what it holds is replaced
};

// Stops the process where the parts break their contract.
inline void RequireFit(const Gathering& gathering, std::span<const float> out) {
  std::size_t end = 0;
  for (const GatherPart& part : gathering.parts) {
    TACTUS_CHECK(part.offset % 4 == 0 && part.offset >= end && part.offset <= out.size());
    TACTUS_CHECK(part.length <= out.size() - part.offset);
    end = part.offset + part.length;
  }
}

namespace host {

// adds:      out[i] <- out[i] + x_i; what no part reaches stays as it is
// otherwise: out[i] <- 0 + x_i; what no part reaches becomes 0. The sum is that of an addition into
//            zeros, bit by bit: it makes a 0 of a -0.
// Tolerance against a twin: none, bit-identical.
void Gather(const Gathering& gathering, std::span<float> out);

}  // namespace host

namespace kernels {

// Parts of one launch at most: they travel as a kernel's arguments, 4 KiB in all.
inline constexpr std::size_t kGatherPartsMax = 160;

// The operation of the host, queued on `stream`: parts' values and `out`, which is aligned to 16
// bytes, are device memory; the list may go when the call returns. into.sums[0] grows by the
// squared norm of what `out` became, with the very bits of AddSquaredNorm behind it, whose scratch
// it takes; no sums: no norm. One launch, or, of more than kGatherPartsMax parts, one for each so
// many and one for the norm. A launch that cannot be queued stops the process.
void Gather(Stream stream, const Gathering& gathering, std::span<float> out, const SumsInto& into);

}  // namespace kernels
}  // namespace tactus::cuda
