#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "cuda/ops/sign_pack.h"
#include "tests/cuda/twins/packed_device.h"

namespace tactus::cuda {
namespace {

// One party on the host and on the device, given the same inputs. The scales are the host's on both
// sides, so that the rest can be compared bit by bit.
class Pair {
 public:
  Pair(const SegmentTable& segments, std::size_t shift)
      : segments_(segments),
        shift_(shift),
        chunks_(segments, std::vector<std::uint8_t>(segments.size(), 1)),
        error_(FlatLength(segments)),
        scales_(segments.size()),
        words_(FirstWords(segments, 1).back()),
        device_error_(error_, shift) {}

  void ExpectScalesAgree(Stream stream, SignSharing sharing, const std::vector<float>& input) {
    const DeviceArray<float> device_input(input, shift_);
    const DeviceArray<float> scales = DeviceArray<float>::OfLength(scales_.size());
    const DeviceSums norms(segments_.size(), chunks_.view().table.chunks.size());

    kernels::SignScales(stream, chunks_.view().table, sharing,
                        {device_input.span(), device_error_.span()},
                        {.scales = scales.span(), .norms = norms.into()});
    host::SignScales(segments_, sharing, {input, error_}, scales_);

    const std::vector<float> found = scales.Read();
    for (std::size_t s = 0; s < found.size(); ++s) {
      const auto ulps =
          std::bit_cast<std::int32_t>(found[s]) - std::bit_cast<std::int32_t>(scales_[s]);
      EXPECT_LE(std::abs(ulps), 1) << found[s] << " instead of " << scales_[s];
    }
    norms.Read();
  }

  void ExpectPackAgrees(Stream stream, const std::vector<float>& input) {
    const DeviceArray<float> device_input(input, shift_);
    const DeviceArray<float> scales(scales_);
    const DeviceArray<std::uint32_t> words = DeviceArray<std::uint32_t>::OfLength(words_.size());

    kernels::SignPack(stream, chunks_.view(), {device_input.span(), device_error_.span()},
                      scales.span(), words.span());
    host::SignPack(segments_, {input, error_}, scales_, words_);

    EXPECT_EQ(words.Read(), words_);
    ExpectSameBits(device_error_.Read(), error_);
    ExpectSameBits(device_input.Read(), input);
  }

  void ExpectDecodingAgrees(Stream stream, std::vector<float> out) {
    const DeviceArray<float> scales(scales_);
    const DeviceArray<std::uint32_t> words(words_);
    const DeviceArray<float> device_out(out, shift_);

    kernels::SignAdd(stream, chunks_.view(), {words.span(), scales.span()}, 1.0 / 3,
                     device_out.span());
    host::SignAdd(segments_, {words_, scales_}, 1.0 / 3, out);
    ExpectSameBits(device_out.Read(), out);

    kernels::SignUnpack(stream, chunks_.view(), {words.span(), scales.span()}, device_out.span());
    host::SignUnpack(segments_, {words_, scales_}, out);
    ExpectSameBits(device_out.Read(), out);
  }

 private:
  const SegmentTable segments_;
  const std::size_t shift_;
  const DevicePackedChunks chunks_;
  std::vector<float> error_;
  std::vector<float> scales_;
  std::vector<std::uint32_t> words_;
  const DeviceArray<float> device_error_;
};

void ExpectRoundsAgree(Stream stream, const SegmentTable& segments, std::size_t shift) {
  const std::size_t length = FlatLength(segments);
  Pair pair(segments, shift);
  for (std::uint64_t round = 0; round < 3; ++round) {
    // Padding holds numbers too: nobody may look at it.
    const std::vector<float> input = RandomValues(round, length);
    const SignSharing sharing = round == 1 ? SignSharing::kTable : SignSharing::kSegment;

    pair.ExpectScalesAgree(stream, sharing, input);
    pair.ExpectPackAgrees(stream, input);
    pair.ExpectDecodingAgrees(stream, RandomValues(10 + round, length));
  }
}

class SignPackKernelsTest : public TwinLengthTest {};

TEST_P(SignPackKernelsTest, ThreeRoundsOfOneSegmentAgree) {
  ExpectRoundsAgree(stream_, {{.offset = 0, .length = length()}}, shift());
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, SignPackKernelsTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

class SignPackKernelsCaseTest : public TwinTest {};

TEST_F(SignPackKernelsCaseTest, ThreeRoundsOfManySegmentsAgree) {
  for (const std::size_t shift : kShifts) ExpectRoundsAgree(stream_, TwinSegments(), shift);
}

TEST_F(SignPackKernelsCaseTest, MoreSegmentsThanThreadsAgree) {
  SegmentTable segments;
  for (std::size_t s = 0; s < 700; ++s) segments.push_back({.length = s % 5});
  AssignOffsets(segments);

  ExpectRoundsAgree(stream_, segments, 0);
}

TEST_F(SignPackKernelsCaseTest, ATableWithoutSegmentsSendsNothing) {
  ExpectRoundsAgree(stream_, {}, 0);
}

TEST_F(SignPackKernelsCaseTest, ZerosAndWhatIsNotFiniteAgree) {
  const SegmentTable segments = {{.offset = 0, .length = 6}};
  Pair pair(segments, 0);
  std::vector<float> input(16);

  pair.ExpectScalesAgree(stream_, SignSharing::kSegment, input);
  pair.ExpectPackAgrees(stream_, input);
  input = {0, -0.0f, std::nanf(""), std::numeric_limits<float>::infinity(), -1e-45f, 3.4e38f};
  input.resize(16);
  pair.ExpectPackAgrees(stream_, input);
  pair.ExpectDecodingAgrees(stream_, input);
}

}  // namespace
}  // namespace tactus::cuda
