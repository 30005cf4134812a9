#include <algorithm>
#include <cmath>
#include <limits>

#include "cuda/ops/quantise.h"
#include "tests/cuda/twins/packed_device.h"

namespace tactus::cuda {
namespace {

// How a table is quantised, and by whose draws.
struct Case {
  SegmentTable segments{};
  std::vector<std::uint8_t> bits{};
  std::vector<float> scales{};
  Draws draws{.seed = 11, .round = 22, .worker = 33, .stream = 44};
  std::uint32_t first_segment = 55;
};

void ExpectAgreement(Stream stream, const Case& test, const std::vector<float>& values,
                     std::size_t shift) {
  const DevicePackedChunks chunks(test.segments, test.bits);
  const DeviceArray<std::uint8_t> bits(test.bits);
  const DeviceArray<float> scales(test.scales);
  const DeviceArray<float> device_values(values, shift);
  std::vector<std::uint32_t> words(FirstWords(test.segments, test.bits).back());
  const DeviceArray<std::uint32_t> device_words =
      DeviceArray<std::uint32_t>::OfLength(words.size());
  std::vector<float> out = RandomValues(5, values.size());
  const DeviceArray<float> device_out(out, shift);
  const Quantisation on_device{bits.span(), scales.span()};
  const Quantisation on_host{test.bits, test.scales};

  kernels::Quantise(stream, chunks.view(), on_device,
                    {device_values.span(), test.draws, test.first_segment}, device_words.span());
  host::Quantise(test.segments, on_host, {values, test.draws, test.first_segment}, words);
  ASSERT_EQ(device_words.Read(), words);
  ExpectSameBits(device_values.Read(), values);

  kernels::DequantiseAdd(stream, chunks.view(), on_device,
                         {.words = device_words.span(), .weight = 1.0 / 3}, device_out.span());
  host::DequantiseAdd(test.segments, on_host, {.words = words, .weight = 1.0 / 3}, out);
  ExpectSameBits(device_out.Read(), out);

  kernels::Dequantise(stream, chunks.view(), on_device, device_words.span(), device_out.span());
  host::Dequantise(test.segments, on_host, words, out);
  ExpectSameBits(device_out.Read(), out);
}

class QuantiseKernelsTest : public TwinLengthTest {};

TEST_P(QuantiseKernelsTest, OneSegmentIsBitIdenticalForEveryNumberOfBits) {
  // At the longest the bits that fill no words evenly.
  for (std::uint8_t bits = length() > 10'000 ? 7 : 2; bits <= 8; ++bits) {
    const Case test{.segments = {{.offset = 0, .length = length()}}, .bits = {bits}, .scales = {3}};

    ExpectAgreement(stream_, test, RandomValues(bits, length()), shift());
  }
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, QuantiseKernelsTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

class QuantiseKernelsCaseTest : public TwinTest {};

TEST_F(QuantiseKernelsCaseTest, ManySegmentsOfDifferentBitsAreBitIdentical) {
  Case test{.segments = TwinSegments()};
  for (std::size_t s = 0; s < test.segments.size(); ++s) {
    test.bits.push_back(static_cast<std::uint8_t>(s % 8 == 0 ? 0 : 1 + s % 8));
    test.scales.push_back(s % 5 == 4 ? 0 : 0.7f * static_cast<float>(s + 1));
  }
  const std::vector<float> values = RandomValues(6, FlatLength(test.segments), 3);
  for (const std::size_t shift : kShifts) ExpectAgreement(stream_, test, values, shift);
}

TEST_F(QuantiseKernelsCaseTest, EdgesAreBitIdentical) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  std::vector<float> values = {0,       -0.0f,    1e-45f, -1e-45f,       1,         -1,
                               largest, -largest, 0.5f,   std::nanf(""), -infinity, infinity};
  values.resize(16);
  for (const float scale : {0.0f, 1e-45f, 0x1p-125f, 1.0f, largest, infinity, std::nanf("")}) {
    for (std::uint8_t bits = 2; bits <= 8; ++bits) {
      const Case test{.segments = {{.offset = 0, .length = 12}}, .bits = {bits}, .scales = {scale}};

      ExpectAgreement(stream_, test, values, 0);
    }
  }
}

TEST_F(QuantiseKernelsCaseTest, ATableWithoutSegmentsSendsNothing) {
  ExpectAgreement(stream_, {}, std::vector<float>(16), 0);
}

}  // namespace
}  // namespace tactus::cuda
