#include "agent/engine/combine/replica_sums.h"

#include <cstddef>

#include "base/check.h"
#include "cuda/ops/vector.h"

namespace tactus::engine {

collective::Completion WholeNorm(const ReplicaSums& sums, const cuda::SegmentTable& segments,
                                 std::span<const float> vector, double& norm2) {
  TACTUS_CHECK(sums.in_parts() && sums.counts.size() == segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!sums.counts[i]) continue;
    norm2 += cuda::host::SquaredNorm(vector.subspan(segments[i].offset, segments[i].length));
  }
  return sums.add({&norm2, 1});
}

}  // namespace tactus::engine
