#include "cuda/ops/lanes.h"

#include "base/check.h"
#include "cuda/ops/lanes_element.h"

namespace tactus::cuda::host {

void WriteLanes(std::span<const LaneValue> values, const LaneSums& own, std::span<float> tail) {
  TACTUS_CHECK(values.size() <= kWrittenLanesMax);
  TACTUS_CHECK(own.norm2.size() == 1 && own.loss.size() == 1 && own.common_loss.size() == 1);
  for (const LaneValue& value : values) {
    TACTUS_CHECK(value.lane < tail.size());
    tail[value.lane] = LaneOf(value, own.norm2[0], own.loss[0], own.common_loss[0]);
  }
}

}  // namespace tactus::cuda::host
