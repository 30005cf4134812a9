#include <cmath>
#include <limits>

#include "cuda/ops/vector.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

constexpr double kTolerance = 1e-12;  // of the sum of the terms' magnitudes, as the header says

double Magnitude(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += std::abs(static_cast<double>(x[i]) * static_cast<double>(y[i]));
  }
  return sum;
}

class SumKernelsTest : public TwinLengthTest {};

TEST_P(SumKernelsTest, SquaredNormAgrees) {
  const std::vector<float> x = RandomValues(3, length(), 1e3f);
  const DeviceArray<float> device_x(x, shift());
  const DeviceSums sums(1, ChunksIn(length()));

  kernels::SquaredNorm(stream_, device_x.span(), sums.into());

  const double expected = host::SquaredNorm(x);
  EXPECT_NEAR(sums.Read()[0], expected, kTolerance * expected);
}

TEST_P(SumKernelsTest, DotAgrees) {
  const std::vector<float> x = RandomValues(3, length());
  const std::vector<float> y = RandomValues(4, length());
  const DeviceArray<float> device_x(x, shift());
  const DeviceArray<float> device_y(y, length() % 2 == 0 ? shift() : 0);
  const DeviceSums sums(1, ChunksIn(length()));

  kernels::Dot(stream_, device_x.span(), device_y.span(), sums.into());

  EXPECT_NEAR(sums.Read()[0], host::Dot(x, y), kTolerance * Magnitude(x, y));
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

class SegmentSumKernelsTest : public TwinTest, public testing::WithParamInterface<std::size_t> {
 protected:
  const SegmentTable segments_ = TwinSegments();
  const ChunkTable table_ = ChunksOf(segments_);
};

TEST_P(SegmentSumKernelsTest, SquaredNormOfEachSegmentAgrees) {
  const std::vector<float> x = RandomValues(5, FlatLength(segments_));  // padding would show
  const DeviceArray<float> device_x(x, GetParam());
  const DeviceChunks chunks(table_);
  const DeviceSums sums(segments_.size(), table_.chunks.size());

  kernels::SquaredNormPerSegment(stream_, device_x.span(), chunks.view(), sums.into());

  const std::vector<double> found = sums.Read();
  const std::vector<double> expected = host::SquaredNormPerSegment(x, segments_);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], kTolerance * expected[i]) << i;
  }
}

TEST_P(SegmentSumKernelsTest, DotOfEachSegmentAgrees) {
  const std::vector<float> x = RandomValues(5, FlatLength(segments_));
  const std::vector<float> y = RandomValues(6, FlatLength(segments_));
  const DeviceArray<float> device_x(x, GetParam());
  const DeviceArray<float> device_y(y, GetParam());
  const DeviceChunks chunks(table_);
  const DeviceSums sums(segments_.size(), table_.chunks.size());

  kernels::DotPerSegment(stream_, device_x.span(), device_y.span(), chunks.view(), sums.into());

  const std::vector<double> found = sums.Read();
  const std::vector<double> expected = host::DotPerSegment(x, y, segments_);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    const double magnitude = Magnitude(std::span(x).subspan(segment.offset, segment.length),
                                       std::span(y).subspan(segment.offset, segment.length));
    EXPECT_NEAR(found[i], expected[i], kTolerance * magnitude) << i;
  }
}

TEST_P(SegmentSumKernelsTest, TheSameInputGivesTheSameBits) {
  const DeviceArray<float> device_x(RandomValues(5, FlatLength(segments_)), GetParam());
  const DeviceChunks chunks(table_);
  const DeviceSums once(segments_.size(), table_.chunks.size());
  const DeviceSums again(segments_.size(), table_.chunks.size());

  kernels::SquaredNormPerSegment(stream_, device_x.span(), chunks.view(), once.into());
  kernels::SquaredNormPerSegment(stream_, device_x.span(), chunks.view(), again.into());

  EXPECT_EQ(once.Read(), again.Read());
}

INSTANTIATE_TEST_SUITE_P(Shifts, SegmentSumKernelsTest, testing::ValuesIn(kShifts));

}  // namespace
}  // namespace tactus::cuda
