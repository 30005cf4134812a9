#include <cmath>
#include <limits>

#include "cuda/ops/vector.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

constexpr double kTolerance = 5e-12;  // relative, as the header says

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

// Beyond what two float32 hold of squares, on either side, and both in one buffer.
TEST_P(SumKernelsTest, SquaredNormOfNumbersOfAnySizeAgrees) {
  for (const float scale : {1e-42f, 1e-30f, 1e-17f, 1e25f, 3e37f}) {
    std::vector<float> x = RandomValues(4, length(), scale);
    for (const bool mixed : {false, true}) {
      for (std::size_t i = 0; mixed && i < length(); i += 1 + i % 7) {
        x[i] = i % 2 == 0 ? 0 : x[i] / scale;
      }
      const DeviceArray<float> device_x(x, shift());
      const DeviceSums sums(1, ChunksIn(length()));

      kernels::SquaredNorm(stream_, device_x.span(), sums.into());

      const double expected = host::SquaredNorm(x);
      ASSERT_NEAR(sums.Read()[0], expected, kTolerance * expected) << scale;
    }
  }
}

TEST_P(SumKernelsTest, SquaredNormOfZerosIsZero) {
  const DeviceArray<float> device_x(std::vector<float>(length()), shift());
  const DeviceSums sums(1, ChunksIn(length()));

  kernels::SquaredNorm(stream_, device_x.span(), sums.into());

  EXPECT_EQ(sums.Read()[0], 0);
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, SumKernelsTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

}  // namespace
}  // namespace tactus::cuda
