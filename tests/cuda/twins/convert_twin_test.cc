#include <bit>
#include <cmath>

#include "base/rng.h"
#include "cuda/ops/convert.h"
#include "tests/cuda/twins/twin_test.h"

namespace tactus::cuda {
namespace {

// The four conversions, host's and device's side by side.
struct Format {
  void (*host_to)(float, std::span<const float>, std::span<std::uint16_t>);
  void (*kernel_to)(Stream, float, std::span<const float>, std::span<std::uint16_t>);
  void (*host_from)(float, std::span<const std::uint16_t>, std::span<float>);
  void (*kernel_from)(Stream, float, std::span<const std::uint16_t>, std::span<float>);
};

constexpr Format kFormats[] = {
    {host::ToBfloat16, kernels::ToBfloat16, host::FromBfloat16, kernels::FromBfloat16},
    {host::ToFloat16, kernels::ToFloat16, host::FromFloat16, kernels::FromFloat16}};

std::vector<std::uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

// A NaN has to be the one that the header names: bits are compared, not values.
void ExpectToAgrees(Stream stream, const Format& format, float factor,
                    const std::vector<float>& from, std::size_t shift) {
  const DeviceArray<float> device_from(from, shift);
  const DeviceArray<std::uint16_t> device_to =
      DeviceArray<std::uint16_t>::OfLength(from.size(), shift);
  std::vector<std::uint16_t> to(from.size());

  format.kernel_to(stream, factor, device_from.span(), device_to.span());
  format.host_to(factor, from, to);

  EXPECT_EQ(device_to.Read(), to);
  EXPECT_EQ(BitsOf(device_from.Read()), BitsOf(from));
}

void ExpectFromAgrees(Stream stream, const Format& format, float factor,
                      const std::vector<std::uint16_t>& from, std::size_t shift) {
  const DeviceArray<std::uint16_t> device_from(from, shift);
  const DeviceArray<float> device_to = DeviceArray<float>::OfLength(from.size(), shift);
  std::vector<float> to(from.size());

  format.kernel_from(stream, factor, device_from.span(), device_to.span());
  format.host_from(factor, from, to);

  EXPECT_EQ(BitsOf(device_to.Read()), BitsOf(to));
}

class ConvertKernelsTest : public TwinLengthTest {};

TEST_P(ConvertKernelsTest, EveryLengthAndViewIsBitIdentical) {
  std::vector<std::uint16_t> patterns(length());
  Rng rng(length());
  for (std::uint16_t& pattern : patterns) pattern = static_cast<std::uint16_t>(rng.Next());
  for (const Format& format : kFormats) {
    ExpectToAgrees(stream_, format, 128, RandomValues(1, length()), shift());
    ExpectFromAgrees(stream_, format, 1.0f / 3, patterns, shift());
  }
}

TEST_P(ConvertKernelsTest, ViewsThatLieUnlikeAreBitIdentical) {
  const std::vector<float> from = RandomValues(2, length());
  std::vector<std::uint16_t> expected(length());
  std::vector<float> expected_back(length());
  const DeviceArray<float> device_from(from, shift());
  const DeviceArray<std::uint16_t> to = DeviceArray<std::uint16_t>::OfLength(length(), shift() + 1);
  const DeviceArray<float> back = DeviceArray<float>::OfLength(length(), shift());
  for (const Format& format : kFormats) {
    format.kernel_to(stream_, 1, device_from.span(), to.span());
    format.kernel_from(stream_, 1, to.span(), back.span());
    format.host_to(1, from, expected);
    format.host_from(1, expected, expected_back);

    EXPECT_EQ(to.Read(), expected);
    ExpectSameBits(back.Read(), expected_back);
  }
}

INSTANTIATE_TEST_SUITE_P(LengthsAndShifts, ConvertKernelsTest,
                         testing::Combine(testing::ValuesIn(kTwinLengths),
                                          testing::ValuesIn(kShifts)));

class ConvertKernelsCaseTest : public TwinTest {};

TEST_F(ConvertKernelsCaseTest, AllPatternsAreBitIdentical) {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  for (const Format& format : kFormats) {
    for (const float factor : {1.0f, 0.0f, -0x1p-10f, 3e38f}) {
      ExpectFromAgrees(stream_, format, factor, patterns, 0);
    }
  }
}

// Between every two patterns the middle and what is beside it, and what lies anywhere.
TEST_F(ConvertKernelsCaseTest, TiesAndTheirNeighboursAreBitIdentical) {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  for (const Format& format : kFormats) {
    std::vector<float> values(patterns.size());
    format.host_from(1, patterns, values);
    std::vector<float> probes;
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const double middle = (static_cast<double>(values[i]) + values[i + 1]) / 2;
      const float tie = static_cast<float>(middle);
      for (const float probe : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, HUGE_VALF)}) {
        probes.push_back(probe);
      }
    }
    ExpectToAgrees(stream_, format, 1, probes, 0);
  }
}

TEST_F(ConvertKernelsCaseTest, RandomBitsAreBitIdentical) {
  Rng rng(9);
  std::vector<float> from(500'000);
  for (float& x : from) x = std::bit_cast<float>(static_cast<std::uint32_t>(rng.Next()));
  for (const Format& format : kFormats) {
    ExpectToAgrees(stream_, format, 1, from, 1);
    ExpectToAgrees(stream_, format, 0x1p-40f, from, 0);
  }
}

}  // namespace
}  // namespace tactus::cuda
