#include <cmath>

#include "cuda/ops/adasum.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {
namespace {

constexpr double kTolerance = 5e-12;  // of the sum of the products' magnitudes, as the header says

// The parts of a range that begins and ends within segments.
class AdasumKernelsTest : public TwinTest, public testing::WithParamInterface<std::size_t> {
 protected:
  static constexpr std::size_t kBegin = 40;
  static constexpr std::size_t kPastEnd = 100;

  AdasumPair host_pair() const { return {.a = a_, .b = b_}; }
  std::size_t SumsLength() const { return segments_.size() * kAdasumSumsPerSegment; }

  // What the kernel may differ from the host by, a sum.
  std::vector<double> Bounds() const { return Bounds(a_, b_); }
  std::vector<double> Bounds(const std::vector<float>& a_values,
                             const std::vector<float>& b_values) const {
    std::vector<double> bounds(SumsLength());
    for (const SegmentPart& part : parts_) {
      double* const row = bounds.data() + part.segment * kAdasumSumsPerSegment;
      for (std::size_t i = part.offset; i < part.offset + part.length; ++i) {
        const double a = a_values[i];
        const double b = b_values[i];
        row[0] += kTolerance * std::abs(a * b);
        row[1] += kTolerance * a * a;
        row[2] += kTolerance * b * b;
      }
    }
    return bounds;
  }

  const SegmentTable segments_ = TwinSegments();
  const FlatRange range_{.offset = kBegin, .length = FlatLength(segments_) - kBegin - kPastEnd};
  const std::vector<SegmentPart> parts_ = PartsOf(range_, segments_);
  const ChunkTable table_ = ChunksOf(parts_, segments_.size());
  const std::vector<float> a_ = RandomValues(7, range_.length);
  const std::vector<float> b_ = RandomValues(8, range_.length, 3);
};

TEST_P(AdasumKernelsTest, PartialSumsAreAddedToWhatIsThere) {
  const DeviceArray<float> a(a_, GetParam());
  const DeviceArray<float> b(b_, GetParam());
  const DeviceChunks chunks(table_);
  const DeviceSums sums(std::vector<double>(SumsLength(), 2.0),
                        table_.chunks.size() * kAdasumSumsPerSegment);

  kernels::AdasumPartials(stream_, {.a = a.span(), .b = b.span()}, chunks.view(), sums.into());

  std::vector<double> expected(SumsLength(), 2.0);
  host::AdasumPartials(host_pair(), parts_, expected);
  const std::vector<double> found = sums.Read();
  const std::vector<double> bounds = Bounds();
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], bounds[i] + 1e-15) << i;  // the 2.0's own rounding besides
  }
}

TEST_P(AdasumKernelsTest, SumsOfOperandsThatLieUnlikeAgree) {
  const DeviceArray<float> a(a_, GetParam());
  const DeviceArray<float> b(b_, GetParam() + 1);
  const DeviceChunks chunks(table_);
  const DeviceSums sums(std::vector<double>(SumsLength()),
                        table_.chunks.size() * kAdasumSumsPerSegment);

  kernels::AdasumPartials(stream_, {.a = a.span(), .b = b.span()}, chunks.view(), sums.into());

  std::vector<double> expected(SumsLength());
  host::AdasumPartials(host_pair(), parts_, expected);
  const std::vector<double> found = sums.Read();
  const std::vector<double> bounds = Bounds();
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], bounds[i]) << i;
}

// One operand's squares are beyond what two float32 hold, then both are.
TEST_P(AdasumKernelsTest, SumsOfOperandsOfAnySizeAgree) {
  for (const auto& [a_scale, b_scale] :
       {std::pair{1e-25f, 1e25f}, {1e-30f, 1e-30f}, {1.0f, 1e20f}}) {
    std::vector<float> a_values = a_;
    std::vector<float> b_values = b_;
    for (float& x : a_values) x *= a_scale;
    for (float& x : b_values) x *= b_scale;
    const DeviceArray<float> a(a_values, GetParam());
    const DeviceArray<float> b(b_values, GetParam());
    const DeviceChunks chunks(table_);
    const DeviceSums sums(std::vector<double>(SumsLength()),
                          table_.chunks.size() * kAdasumSumsPerSegment);

    kernels::AdasumPartials(stream_, {.a = a.span(), .b = b.span()}, chunks.view(), sums.into());

    std::vector<double> expected(SumsLength());
    host::AdasumPartials({.a = a_values, .b = b_values}, parts_, expected);
    const std::vector<double> found = sums.Read();
    const std::vector<double> bounds = Bounds(a_values, b_values);
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], bounds[i]) << i;
    }
  }
}

TEST_P(AdasumKernelsTest, TheCombinationIsBitIdenticalForEqualSums) {
  std::vector<double> sums(SumsLength());
  host::AdasumPartials(host_pair(), parts_, sums);
  std::vector<float> out = RandomValues(9, range_.length);  // the padding shall stay
  const DeviceArray<float> a(a_, GetParam());
  const DeviceArray<float> b(b_, GetParam());
  const DeviceArray<float> device_out(out, GetParam());
  const DeviceArray<double> device_sums(sums);
  const DeviceChunks chunks(table_);

  kernels::AdasumCombine(stream_, {.a = a.span(), .b = b.span()}, chunks.view(), device_sums.span(),
                         device_out.span());
  host::AdasumCombine(host_pair(), parts_, sums, out);

  ExpectSameBits(device_out.Read(), out);
  ExpectSameBits(a.Read(), a_);
  ExpectSameBits(b.Read(), b_);
}

TEST_P(AdasumKernelsTest, TheCombinationMayReplaceAnOperand) {
  std::vector<double> sums(SumsLength());
  host::AdasumPartials(host_pair(), parts_, sums);
  std::vector<float> out = a_;
  const DeviceArray<float> a(a_, GetParam());
  const DeviceArray<float> b(b_, GetParam() + 1);
  const DeviceArray<double> device_sums(sums);
  const DeviceChunks chunks(table_);

  kernels::AdasumCombine(stream_, {.a = a.span(), .b = b.span()}, chunks.view(), device_sums.span(),
                         a.span());
  host::AdasumCombine({.a = out, .b = b_}, parts_, sums, out);

  ExpectSameBits(a.Read(), out);
}

TEST_P(AdasumKernelsTest, OperandsAsGoodAsZeroAndSumsThatAreNoNumbersCountAsOnTheHost) {
  std::vector<double> sums(SumsLength());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double cases[] = {0, 0x1p-511, 0x1p-512, 1, -1, HUGE_VAL, std::nan("")};
    sums[i] = cases[i % std::size(cases)];
  }
  std::vector<float> out(range_.length);
  const DeviceArray<float> a(a_, GetParam());
  const DeviceArray<float> b(b_, GetParam());
  const DeviceArray<float> device_out(out, GetParam());
  const DeviceArray<double> device_sums(sums);
  const DeviceChunks chunks(table_);

  kernels::AdasumCombine(stream_, {.a = a.span(), .b = b.span()}, chunks.view(), device_sums.span(),
                         device_out.span());
  host::AdasumCombine(host_pair(), parts_, sums, out);

  ExpectSameBits(device_out.Read(), out);
}

INSTANTIATE_TEST_SUITE_P(Shifts, AdasumKernelsTest, testing::ValuesIn(kShifts));

}  // namespace
}  // namespace tactus::cuda
