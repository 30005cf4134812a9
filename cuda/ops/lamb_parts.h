// LAMB where the buffers have a part of each segment, and others the rest: norms are of all of it,
// which those who have it add up between the two halves of a step.

#pragma once

#include <cstddef>
#include <span>

#include "cuda/ops/lamb.h"
#include "cuda/ops/segments.h"

namespace tactus::cuda {

// Of a segment: ||x||^2 and ||u||^2, as in host::Lamb.
inline constexpr std::size_t kLambSumsPerSegment = kernels::kLambSumsPerSegment;

namespace host {

// sums <- what host::Lamb would make its ratios of, segment by segment, to the bits of its own;
// nothing else changes. False: the gate is shut, there is no step, and the sums stay as they are.
//
// sums  [kLambSumsPerSegment x segments]
bool LambSums(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers,
              std::span<double> sums);

// host::Lamb with ratios of these sums in the place of the buffers' own. Whatever they are, the
// moments become what they become there.
void LambOfParts(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers,
                 std::span<const double> sums);

}  // namespace host

namespace kernels {

// The host's, queued on `stream`, over device memory: one launch each whatever the number of
// segments. into.sums are [2 x segments], the partials 2 a chunk. Whether there was a step the gate
// tells.
//
// Tolerance against the host: of n elements the sums, which are of the same float32, differ by
// 2 n 2^-53 of themselves, as their squares are exact in float64 and add up in another order. What
// LambOfParts leaves is bit-identical.
void LambSums(Stream stream, const LambStep& step, const SegmentChunks& segments,
              const LambBuffers& buffers, const SumsInto& into);
void LambOfParts(Stream stream, const LambStep& step, const SegmentChunks& segments,
                 const LambBuffers& buffers, std::span<const double> sums);

}  // namespace kernels
}  // namespace tactus::cuda
