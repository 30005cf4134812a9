#include "agent/engine/combine/replica_sums.h"

#include <algorithm>

#include "base/check.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {

double CountedNorm2(const ReplicaSums& sums, const cuda::SegmentTable& segments,
                    std::span<const float> stretch, std::size_t offset) {
  TACTUS_CHECK(sums.in_parts() && sums.counts.size() == segments.size());
  double norm2 = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::size_t begin = std::max(offset, segments[i].offset);
    const std::size_t end =
        std::min(offset + stretch.size(), segments[i].offset + segments[i].length);
    if (!sums.counts[i] || begin >= end) continue;
    norm2 += cuda::host::SquaredNorm(stretch.subspan(begin - offset, end - begin));
  }
  return norm2;
}

collective::Completion WholeNorm(const ReplicaSums& sums, const cuda::SegmentTable& segments,
                                 std::span<const float> vector, double& norm2) {
  norm2 += CountedNorm2(sums, segments, vector, 0);
  return sums.add({&norm2, 1});
}

}  // namespace tactus::engine
