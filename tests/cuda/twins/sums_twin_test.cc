#include <cmath>
#include <limits>

#include "cuda/ops/vector.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

constexpr double kTolerance = 1e-12;  // relative, as the header says

class SumKernelsTest : public TwinLengthTest {};

TEST_P(SumKernelsTest, SquaredNormAgrees) {
  const std::vector<float> x = RandomValues(3, length(), 1e3f);
  const DeviceArray<float> device_x(x, shift());
  const DeviceSums sums(1, ChunksIn(length()));

  kernels::SquaredNorm(stream_, device_x.span(), sums.into());

  const double expected = host::SquaredNorm(x);
  EXPECT_NEAR(sums.Read()[0], expected, kTolerance * expected);
}

TEST_P(SumKernelsTest, SquaredNormIsNotFiniteForOneBadElementAnywhere) {
  if (length() == 0) return;
  for (const std::size_t at : {std::size_t{0}, length() / 2, length() - 1}) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      std::vector<float> x(length(), 1.0f);
      x[at] = bad;
      const DeviceArray<float> device_x(x, shift());
      const DeviceSums sums(1, ChunksIn(length()));

      kernels::SquaredNorm(stream_, device_x.span(), sums.into());

      ASSERT_FALSE(std::isfinite(sums.Read()[0])) << bad << " at " << at;
    }
  }
}

TEST_P(SumKernelsTest, SquaredNormOfTheLargestFloatsIsFinite) {
  const std::vector<float> x(length(), std::numeric_limits<float>::max());
  const DeviceArray<float> device_x(x, shift());
  const DeviceSums sums(1, ChunksIn(length()));

  kernels::SquaredNorm(stream_, device_x.span(), sums.into());

  EXPECT_TRUE(std::isfinite(sums.Read()[0]));
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, SumKernelsTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

}  // namespace
}  // namespace tactus::cuda
