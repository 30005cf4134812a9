#include "cuda/ops/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

// A 16-bit format as its definition has it, in float64.
struct Format {
  const char* name;
  int fraction_bits;  // below the leading one
  int bias;
  void (*to)(float, std::span<const float>, std::span<std::uint16_t>);
  void (*from)(float, std::span<const std::uint16_t>, std::span<float>);

  int exponent_max() const { return 2 * bias + 1; }  // of infinities and NaNs
  std::uint16_t infinity() const {
    return static_cast<std::uint16_t>(exponent_max() << fraction_bits);
  }
  std::uint16_t Only(float x, float factor = 1) const {
    std::uint16_t bits = 0;
    to(factor, {&x, 1}, {&bits, 1});
    return bits;
  }
  float Back(std::uint16_t bits, float factor = 1) const {
    float x = 0;
    from(factor, {&bits, 1}, {&x, 1});
    return x;
  }

  // The number of a pattern without sign; what would follow the largest number for infinity's.
  double Value(int pattern) const {
    const int exponent = pattern >> fraction_bits;
    const int fraction = pattern & ((1 << fraction_bits) - 1);
    const int leading = exponent == 0 ? 0 : 1 << fraction_bits;
    return std::ldexp(leading + fraction, std::max(exponent, 1) - bias - fraction_bits);
  }
};

constexpr Format kBfloat16{"bfloat16", 7, 127, host::ToBfloat16, host::FromBfloat16};
constexpr Format kFloat16{"float16", 10, 15, host::ToFloat16, host::FromFloat16};

std::uint32_t Bits(float x) { return std::bit_cast<std::uint32_t>(x); }

class ConvertTest : public testing::TestWithParam<Format> {};

TEST_P(ConvertTest, AllPatternsHaveTheValueOfTheirDefinition) {
  const Format& format = GetParam();
  for (int pattern = 0; pattern < 0x8000; ++pattern) {
    for (const int sign : {0, 0x8000}) {
      const float found = format.Back(static_cast<std::uint16_t>(pattern | sign));
      if (pattern > format.infinity()) {
        ASSERT_EQ(Bits(found), 0x7fffffffu) << pattern;
        continue;
      }
      const double expected = pattern == format.infinity() ? std::numeric_limits<double>::infinity()
                                                           : format.Value(pattern);
      ASSERT_EQ(static_cast<double>(found), sign == 0 ? expected : -expected) << pattern;
      ASSERT_EQ(std::signbit(found), sign != 0) << pattern;
    }
  }
}

TEST_P(ConvertTest, AllPatternsComeBackAsTheyWere) {
  const Format& format = GetParam();
  for (int pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const bool nan = (pattern & 0x7fff) > format.infinity();

    ASSERT_EQ(format.Only(format.Back(bits)), nan ? 0x7fff : bits) << pattern;
  }
}

// Between every two neighbours: the middle goes to the even one, what is beside it to the nearer.
TEST_P(ConvertTest, RoundsToTheNearestAndTiesToEven) {
  const Format& format = GetParam();
  for (int pattern = 0; pattern < format.infinity(); ++pattern) {
    const double middle = (format.Value(pattern) + format.Value(pattern + 1)) / 2;
    const float tie = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(tie), middle);
    const auto below = static_cast<std::uint16_t>(pattern);
    const auto above = static_cast<std::uint16_t>(pattern + 1);
    const std::uint16_t even = pattern % 2 == 0 ? below : above;

    ASSERT_EQ(format.Only(tie), even) << pattern;
    ASSERT_EQ(format.Only(std::nextafter(tie, 0.0f)), below) << pattern;
    ASSERT_EQ(format.Only(std::nextafter(tie, std::numeric_limits<float>::infinity())), above)
        << pattern;
    ASSERT_EQ(format.Only(-tie), even | 0x8000) << pattern;
    ASSERT_EQ(format.Only(-std::nextafter(tie, 0.0f)), below | 0x8000) << pattern;
  }
}

TEST_P(ConvertTest, WhatIsTooLargeIsAnInfinityAndANanANan) {
  const Format& format = GetParam();
  const float infinity = std::numeric_limits<float>::infinity();

  EXPECT_EQ(format.Only(std::numeric_limits<float>::max()), format.infinity());
  EXPECT_EQ(format.Only(-std::numeric_limits<float>::max()), format.infinity() | 0x8000);
  EXPECT_EQ(format.Only(infinity), format.infinity());
  EXPECT_EQ(format.Only(-infinity), format.infinity() | 0x8000);
  for (const std::uint32_t bits :
       {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffffffffu}) {
    EXPECT_EQ(format.Only(std::bit_cast<float>(bits)), 0x7fff) << std::hex << bits;
  }
  EXPECT_EQ(format.Only(infinity, 0), 0x7fff);
  EXPECT_EQ(Bits(format.Back(format.infinity(), 0)), 0x7fffffffu);
}

TEST_P(ConvertTest, AFactorOfAPowerOfTwoIsUndoneExactly) {
  const Format& format = GetParam();
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const float x = format.Back(format.Only(static_cast<float>(rng.Normal())));

    ASSERT_EQ(Bits(format.Back(format.Only(x, 256), 1.0f / 256)), Bits(x));
  }
}

TEST_P(ConvertTest, EveryLengthIsConvertedWhole) {
  const Format& format = GetParam();
  for (const std::size_t length : kLengths) {
    Rng rng(length);
    const Guarded from = RandomBuffer(rng, length);
    std::vector<std::uint16_t> bits(length + 2, 0xabcd);
    Guarded back(length);

    format.to(0.5f, from.span(), std::span(bits).subspan(1, length));
    format.from(2, std::span(bits).subspan(1, length), back.span());

    ASSERT_TRUE(bits.front() == 0xabcd && bits.back() == 0xabcd);
    ASSERT_TRUE(back.Intact());
    for (std::size_t i = 0; i < length; ++i) {
      ASSERT_EQ(bits[i + 1], format.Only(0.5f * from.span()[i])) << i;
      ASSERT_EQ(Bits(back[i]), Bits(2 * format.Back(bits[i + 1]))) << i;
    }
  }
}

TEST_P(ConvertTest, AProductIsRoundedToFloat32First) {
  const Format& format = GetParam();
  const float factor = 1.0f / 3;
  Rng rng(2);
  for (int i = 0; i < 1000; ++i) {
    const float x = static_cast<float>(rng.Normal());
    const float product = factor * x;

    ASSERT_EQ(format.Only(x, factor), format.Only(product));
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ConvertTest, testing::Values(kBfloat16, kFloat16),
                         [](const auto& test) { return test.param.name; });

// Numbers of IEEE 754's table of binary16.
TEST(ConvertPaperTest, Float16HasItsKnownPatterns) {
  EXPECT_EQ(kFloat16.Only(1), 0x3c00);
  EXPECT_EQ(kFloat16.Only(-2), 0xc000);
  EXPECT_EQ(kFloat16.Only(65504), 0x7bff);
  EXPECT_EQ(kFloat16.Only(65519.996f), 0x7bff);
  EXPECT_EQ(kFloat16.Only(65520), 0x7c00);
  EXPECT_EQ(kFloat16.Only(0x1p-14f), 0x0400);
  EXPECT_EQ(kFloat16.Only(0x1p-24f), 0x0001);
  EXPECT_EQ(kFloat16.Only(0x1p-25f), 0x0000);
  EXPECT_EQ(kFloat16.Only(-0x1.8p-25f), 0x8001);
  EXPECT_EQ(kFloat16.Only(-0.0f), 0x8000);
  EXPECT_EQ(kFloat16.Only(1.0f / 3), 0x3555);
}

TEST(ConvertPaperTest, Bfloat16IsTheUpperHalfOfFloat32) {
  EXPECT_EQ(kBfloat16.Only(1), 0x3f80);
  EXPECT_EQ(kBfloat16.Only(3.140625f), 0x4049);
  EXPECT_EQ(kBfloat16.Only(-0.0f), 0x8000);
  EXPECT_EQ(kBfloat16.Only(std::bit_cast<float>(0x00010000)), 0x0001);
}

TEST(ConvertDeathTest, RefusesUnequalLengths) {
  std::vector<float> three(3);
  std::vector<std::uint16_t> four(4);

  EXPECT_DEATH(host::ToBfloat16(1, three, four), "check failed");
  EXPECT_DEATH(host::ToFloat16(1, three, four), "check failed");
  EXPECT_DEATH(host::FromBfloat16(1, four, three), "check failed");
  EXPECT_DEATH(host::FromFloat16(1, four, three), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
