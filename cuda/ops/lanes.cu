#include <algorithm>

#include "base/check.h"
#include "cuda/ops/lanes.h"
#include "cuda/ops/lanes_element.h"
#include "cuda/ops/launch.cuh"

namespace tactus::cuda::kernels {
namespace {

struct LaneValues {
  LaneValue at[kWrittenLanesMax] = {};
  unsigned count = 0;
};

// One thread a value.
__global__ void WriteLanesKernel(LaneValues values, const double* norm2, const double* loss,
                                 const double* common_loss, float* tail) {
  const unsigned i = threadIdx.x;
  if (i < values.count) tail[values.at[i].lane] = LaneOf(values.at[i], *norm2, *loss, *common_loss);
}

}  // namespace

void WriteLanes(Stream stream, std::span<const LaneValue> values, const LaneSums& own,
                std::span<float> tail) {
  TACTUS_CHECK(values.size() <= kWrittenLanesMax);
  TACTUS_CHECK(own.norm2.size() == 1 && own.loss.size() == 1 && own.common_loss.size() == 1);
  for (const LaneValue& value : values) TACTUS_CHECK(value.lane < tail.size());
  LaneValues copy{.count = static_cast<unsigned>(values.size())};
  std::copy(values.begin(), values.end(), copy.at);
  Launch(stream, {.blocks = 1, .threads = kWrittenLanesMax}, WriteLanesKernel, copy,
         own.norm2.data(), own.loss.data(), own.common_loss.data(), tail.data());
}

}  // namespace tactus::cuda::kernels
