#include "cuda/ops/quantise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/ops/quantise_element.h"
#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

using testing::Each;
using testing::ElementsAre;

std::uint32_t Bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// The word that draws U, and the code that it gives as a number.
std::uint32_t WordOf(double u) { return static_cast<std::uint32_t>(u * 0x1p32); }
std::vector<int> CodesOf(unsigned bits, float nu, const std::vector<float>& x,
                         const std::vector<double>& u) {
  const QuantiseFactors factors = QuantiseFactorsOf(bits, nu);
  std::vector<int> codes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    codes.push_back(CodeValue(QuantisedCode(factors, bits, x[i], WordOf(u[i])), bits));
  }
  return codes;
}

const std::vector<float> kGradient = {0.5f, -1, 0.25f, 2, -0.125f, 0};
const std::vector<double> kDraws = {0.1, 0.5, 0.9, 0.3, 0.2, 0};

TEST(QuantisePaperTest, CodesAreThoseOfTheTestVectors) {
  EXPECT_THAT(CodesOf(2, 2, kGradient, kDraws), ElementsAre(1, 0, 0, 1, 0, 0));
  EXPECT_THAT(CodesOf(3, 2, kGradient, kDraws), ElementsAre(1, -1, 0, 3, 0, 0));
  EXPECT_THAT(CodesOf(4, 2, kGradient, kDraws), ElementsAre(2, -3, 0, 7, -1, 0));
  EXPECT_THAT(CodesOf(4, 2, {-0.5f, 0.75f, 1.5f, -2, 0, 1}, {0.6, 0.2, 0.4, 0.7, 0.5, 0.45}),
              ElementsAre(-2, 3, 5, -7, 0, 4));
}

TEST(QuantisePaperTest, FourBitsArePackedAsInTheTestVector) {
  const QuantiseFactors factors = QuantiseFactorsOf(4, 2);
  float x[8] = {};
  PhiloxBlock draws[2];
  for (std::size_t i = 0; i < kGradient.size(); ++i) {
    x[i] = kGradient[i];
    draws[i / 4].word[i % 4] = WordOf(kDraws[i]);
  }

  EXPECT_EQ(QuantiseEight(factors, 4, x, draws), 0x0970b2u);
}

// The expected squared error: a value between two levels is either, and right on average.
TEST(QuantisePaperTest, ErrorsAreThoseOfTheTestVectors) {
  const auto expected_error = [](unsigned bits) {
    const QuantiseFactors factors = QuantiseFactorsOf(bits, 2);
    const double step = QuantiseStepOf(bits, 2);
    double error = 0;
    for (const float x : kGradient) {
      const double above = static_cast<double>(QuantisedFixed(factors, x) & 0xffffffff) * 0x1p-32;
      error += above * (1 - above) * step * step;
    }
    return error;
  };

  EXPECT_NEAR(expected_error(3), 0.3663194, 2e-6);
  EXPECT_NEAR(expected_error(4), 0.0647321, 2e-6);
}

// Vector 3: codes of two members add up exactly where the scale is their number of levels.
TEST(QuantisePaperTest, SumsOfCodesAreThoseOfTheTestVector) {
  const std::vector<std::vector<std::uint32_t>> messages = {{0x000970b2}, {0x0040f53a}};
  const SegmentTable segments = {{.length = 6}};
  const std::vector<std::uint8_t> bits = {4};
  const std::vector<float> levels = {7};
  std::vector<float> sums(6);

  for (const std::vector<std::uint32_t>& words : messages) {
    host::DequantiseAdd(segments, {bits, levels}, {.words = words}, sums);
  }

  EXPECT_THAT(sums, ElementsAre(0, 0, 5, 0, -1, 4));
  const std::vector<float> means = {0, 0, 0.7142857f, 0, -0.1428571f, 0.5714286f};
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(sums[i] * QuantiseStepOf(4, 2) / 2, means[i], 2e-6);
  }
}

// Buffers of one table, quantised.
struct Message {
  SegmentTable segments{};
  std::vector<std::uint8_t> bits{};
  std::vector<float> scales{};
  std::vector<std::uint32_t> words{};

  Quantisation quantisation() const { return {bits, scales}; }

  void Encode(std::span<const float> values, const Draws& draws = {}) {
    words.assign(FirstWords(segments, bits).back(), 0xaaaaaaaa);
    host::Quantise(segments, quantisation(), {values, draws}, words);
  }
  std::vector<float> Decode(float padding = 0) const {
    std::vector<float> out(FlatLength(segments), padding);
    host::Dequantise(segments, quantisation(), words, out);
    return out;
  }
};

Message MessageOf(std::initializer_list<std::size_t> lengths, std::uint8_t bits, float scale) {
  Message message;
  for (const std::size_t length : lengths) message.segments.push_back({.length = length});
  AssignOffsets(message.segments);
  message.bits.assign(lengths.size(), bits);
  message.scales.assign(lengths.size(), scale);
  return message;
}

// 2^32 y, exactly rounded down, of any finite x and of a nu whose steps are normal numbers: long
// division, by the formula of the header alone. `whole` <- whether nothing was rounded.
std::uint64_t ExactFixed(unsigned bits, float nu, float x, bool* whole = nullptr) {
  if (whole != nullptr) *whole = x == 0;
  if (x == 0) return 0;
  int nu_exponent = 0;
  int x_exponent = 0;
  const double nu_fraction = std::frexp(static_cast<double>(nu), &nu_exponent);
  const double x_fraction = std::frexp(std::abs(static_cast<double>(x)), &x_exponent);
  const auto divisor = static_cast<unsigned __int128>(std::ldexp(nu_fraction, 24));
  // 24 bits, times s, times 2^32: 63 bits, to be divided by 2^(exponents' difference), too.
  unsigned __int128 dividend = static_cast<std::uint64_t>(std::ldexp(x_fraction, 24));
  dividend *= (1u << (bits - 1)) - 1;
  dividend <<= 32;
  const int shift = std::min(nu_exponent - x_exponent, 64);
  EXPECT_GE(shift, 0);
  const unsigned __int128 scaled = divisor << shift;
  if (whole != nullptr) *whole = dividend % scaled == 0;
  return static_cast<std::uint64_t>(dividend / scaled);
}

// The code that the formula of the header gives, as a number: `y` are multiples of 2^-32.
int NaiveCode(const Message& message, std::uint32_t segment, std::size_t i, float x,
              const Draws& draws) {
  const unsigned bits = message.bits[segment];
  const auto quad = static_cast<std::uint32_t>(i / 4);
  const std::uint32_t word = WordsOfQuad(draws, segment, quad).word[i % 4];
  const float nu = message.scales[segment];
  const std::uint64_t y = ExactFixed(bits, nu, std::min(std::abs(x), nu));
  // Within a draw in 2^32 of where the code changes both are right; the fixed seeds have none such.
  EXPECT_NE(word, y & 0xffffffff);
  const int level = static_cast<int>(y >> 32) + (word < (y & 0xffffffff) ? 1 : 0);
  return x < 0 ? -level : level;
}

// The code of element i, read bit by bit.
int CodeAt(const Message& message, std::size_t segment, std::size_t i) {
  const std::uint64_t first = FirstWords(message.segments, message.bits)[segment];
  const unsigned bits = message.bits[segment];
  unsigned code = 0;
  for (unsigned k = 0; k < bits; ++k) {
    const std::size_t bit = i * bits + k;
    code |= (message.words[first + bit / 32] >> (bit % 32) & 1) << k;
  }
  const int magnitude = static_cast<int>(code & ((1u << (bits - 1)) - 1));
  return (code >> (bits - 1)) != 0 ? -magnitude : magnitude;
}

class QuantiseTest : public testing::TestWithParam<std::size_t> {};

TEST_P(QuantiseTest, CodesStandWhereTheLayoutSaysAndDecodeToTheirValue) {
  const std::size_t length = GetParam() > 1000 ? 10'007 : GetParam();
  const Draws draws{.seed = 3, .round = 5, .worker = 7, .stream = 11};
  for (std::uint8_t bits = 2; bits <= 8; ++bits) {
    Message message = MessageOf({length}, bits, 4);
    Rng rng(length * 8 + bits);
    Guarded values = RandomBuffer(rng, FlatLength(message.segments));

    message.Encode(values.span(), draws);
    const std::vector<float> out = message.Decode();

    const double levels = (1 << (bits - 1)) - 1;
    for (std::size_t i = 0; i < length; ++i) {
      const int code = NaiveCode(message, 0, i, values[i], draws);
      ASSERT_EQ(CodeAt(message, 0, i), code) << i;
      ASSERT_EQ(Bits(out[i]), Bits(static_cast<float>(4 / levels * code))) << i;
    }
    const std::size_t used = length * bits % 32;
    if (used != 0) {
      ASSERT_EQ(message.words.back() >> used, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, QuantiseTest, testing::ValuesIn(kLengths));

TEST(QuantiseTest, SegmentsHaveBitsScalesAndDrawsOfTheirOwn) {
  Message message = MessageOf({20, 9, 0, 40, 20}, 0, 0);
  message.bits = {3, 0, 5, 8, 3};
  message.scales = {4, 1, 1, 8, 4};
  Rng rng(1);
  std::vector<float> values(FlatLength(message.segments));
  for (float& x : values) x = static_cast<float>(rng.Normal());
  std::copy_n(values.begin(), 20, values.begin() + 96);

  message.Encode(values);
  const std::vector<float> out = message.Decode(9);

  bool differs = false;
  for (std::size_t i = 0; i < 20; ++i) {
    ASSERT_EQ(CodeAt(message, 0, i), NaiveCode(message, 0, i, values[i], {})) << i;
    ASSERT_EQ(CodeAt(message, 4, i), NaiveCode(message, 4, i, values[i], {})) << i;
    differs = differs || CodeAt(message, 0, i) != CodeAt(message, 4, i);
  }
  EXPECT_TRUE(differs);
  for (std::size_t i = 0; i < 40; ++i) {
    ASSERT_EQ(CodeAt(message, 3, i), NaiveCode(message, 3, i, values[48 + i], {})) << i;
  }
  EXPECT_EQ(std::count(out.begin() + 32, out.begin() + 41, 0.0f), 9);  // not sent
  EXPECT_EQ(out[20], 9);                                               // padding
}

TEST(QuantiseTest, TheLargestMagnitudeIsExactForEveryDraw) {
  for (const float nu : {1.0f, 3.1f, 1e-30f, 7.7e37f, 0x1.fffffep-100f}) {
    for (std::uint8_t bits = 2; bits <= 8; ++bits) {
      Message message = MessageOf({1000}, bits, nu);
      std::vector<float> values(FlatLength(message.segments), nu);
      std::fill(values.begin() + 500, values.end(), -nu);

      message.Encode(values);
      const std::vector<float> out = message.Decode();

      for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(out[i], i < 500 ? nu : -nu) << nu;
    }
  }
}

TEST(QuantiseTest, TheLargestMagnitudeHasTheLastLevelForTheLeastLikelyDraw) {
  Rng rng(6);
  for (int i = 0; i < 10'000; ++i) {
    const auto nu = static_cast<float>(std::ldexp(1 + rng.Uniform(), i % 246 - 119));
    for (unsigned bits = 2; bits <= 8; ++bits) {
      const QuantiseFactors factors = QuantiseFactorsOf(bits, nu);

      for (const std::uint32_t word : {0u, 0xffffffffu}) {
        ASSERT_EQ(QuantisedMagnitude(factors, nu, word), (1u << (bits - 1)) - 1) << nu;
      }
    }
  }
}

// Numbers of every exponent below nu's, and those next to a whole level, where a bound is met.
std::vector<float> MagnitudesTo(float nu, unsigned bits, Rng& rng) {
  const int levels = (1 << (bits - 1)) - 1;
  std::vector<float> all = {0, nu, std::nextafter(nu, 0.0f), 1e-45f, 0x1p-126f};
  for (int level = 1; level < levels; ++level) {
    const float at = static_cast<float>(static_cast<double>(nu) * level / levels);
    for (const float x : {std::nextafter(at, 0.0f), at, std::nextafter(at, nu)}) all.push_back(x);
  }
  for (int shift = 0; shift < 60; ++shift) {
    const double x = std::ldexp(static_cast<double>(nu) * (0.5 + 0.5 * rng.Uniform()), -shift);
    all.push_back(static_cast<float>(x));
    all.push_back(std::ldexp(nu, -shift));
  }
  std::erase_if(all, [nu](float x) { return x > nu; });
  return all;
}

TEST(QuantiseTest, TheFixedPointIsTheExactQuotientRoundedDownOrTheNextAndNeverOffAWholeOne) {
  Rng rng(8);
  int above = 0;
  for (int i = 0; i < 2'000; ++i) {
    const double drawn = std::ldexp(1 + rng.Uniform(), i % 246 - 119);
    const auto nu = static_cast<float>(i % 5 == 0 ? std::ldexp(1.0, i % 246 - 119) : drawn);
    for (unsigned bits = 2; bits <= 8; ++bits) {
      const QuantiseFactors factors = QuantiseFactorsOf(bits, nu);
      for (const float x : MagnitudesTo(nu, bits, rng)) {
        bool whole = false;
        const std::uint64_t exact = ExactFixed(bits, nu, x, &whole);
        const std::uint64_t found = QuantisedFixed(factors, x);
        ASSERT_GE(found, exact) << x << " of " << nu;
        ASSERT_LE(found, exact + (whole ? 0 : 1)) << x << " of " << nu;
        above += found > exact ? 1 : 0;
      }
    }
  }
  EXPECT_GT(above, 0);  // that the bound is met, and the test can tell
}

TEST(QuantiseTest, ADrawIsBelowTheRestOrNotToTheLastBit) {
  const QuantiseFactors factors = QuantiseFactorsOf(2, 1);

  EXPECT_EQ(QuantisedMagnitude(factors, 0.5f, 0x7fffffff), 1u);
  EXPECT_EQ(QuantisedMagnitude(factors, 0.5f, 0x80000000), 0u);
  EXPECT_EQ(QuantisedMagnitude(factors, 0x1p-32f, 0), 1u);
  EXPECT_EQ(QuantisedMagnitude(factors, 0x1p-32f, 1), 0u);
  EXPECT_EQ(QuantisedMagnitude(factors, 0x1p-33f, 0), 0u);
}

TEST(QuantiseTest, ZeroIsZeroAndHasNoSign) {
  Message message = MessageOf({64}, 4, 1);
  std::vector<float> values(64, -0.0f);

  message.Encode(values);

  EXPECT_THAT(message.words, Each(0u));
  EXPECT_THAT(message.Decode(), Each(0));
}

TEST(QuantiseTest, AScaleTooSmallForItsStepsGivesZeros) {
  for (const float nu : {0.0f, 1e-45f, 6.9f * 0x1p-126f}) {
    Message message = MessageOf({64}, 4, nu);
    const std::vector<float> values(64, nu);

    message.Encode(values);

    EXPECT_THAT(message.words, Each(0u));
    EXPECT_THAT(message.Decode(), Each(0));
  }
  Message message = MessageOf({64}, 4, 7 * 0x1p-126f);
  message.Encode(std::vector<float>(64, 7 * 0x1p-126f));
  EXPECT_THAT(message.Decode(), Each(7 * 0x1p-126f));
}

TEST(QuantiseTest, WhatIsBeyondTheScaleHasTheLastLevel) {
  const float infinity = std::numeric_limits<float>::infinity();
  Message message = MessageOf({16}, 3, 1);
  std::vector<float> values(16);
  values[0] = 5;
  values[1] = -infinity;
  values[2] = std::numeric_limits<float>::quiet_NaN();

  message.Encode(values);

  EXPECT_EQ(CodeAt(message, 0, 0), 3);
  EXPECT_EQ(CodeAt(message, 0, 1), -3);
  EXPECT_EQ(CodeAt(message, 0, 2), 3);
}

TEST(QuantiseTest, AScaleThatIsNotFiniteIsNotHidden) {
  for (const float nu :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const QuantiseFactors factors = QuantiseFactorsOf(3, nu);
    EXPECT_EQ(QuantisedMagnitude(factors, nu, 0), 0u);
    Message message = MessageOf({16}, 3, nu);
    message.Encode(std::vector<float>(16, 1));

    EXPECT_THAT(message.words, Each(0u));
    for (const float x : message.Decode()) EXPECT_FALSE(std::isfinite(x));
  }
}

TEST(QuantiseTest, AddingIsWeightedAndKeepsWhatIsThere) {
  Message message = MessageOf({40}, 5, 2);
  Rng rng(3);
  const Guarded values = RandomBuffer(rng, 48, 0.5f);
  message.Encode(values.span());
  Guarded sum = RandomBuffer(rng, 48);
  const Guarded before = sum;

  host::DequantiseAdd(message.segments, message.quantisation(),
                      {.words = message.words, .weight = 1.0 / 3}, sum.span());

  const double step = 1.0 / 3 * (2.0 / 15);
  for (std::size_t i = 0; i < 48; ++i) {
    const float added = i < 40 ? static_cast<float>(step * CodeAt(message, 0, i)) : 0;
    ASSERT_EQ(Bits(sum[i]), Bits(before.span()[i] + added)) << i;
  }
  EXPECT_TRUE(sum.Intact());
}

TEST(QuantiseTest, ARetryDrawsTheSameAndAnotherRoundDoesNot) {
  Message message = MessageOf({1000}, 2, 4);
  Rng rng(4);
  const Guarded values = RandomBuffer(rng, FlatLength(message.segments));
  message.Encode(values.span(), {.seed = 1, .round = 9});
  const std::vector<std::uint32_t> words = message.words;

  message.Encode(values.span(), {.seed = 1, .round = 9});
  EXPECT_EQ(message.words, words);
  for (const Draws& draws :
       {Draws{1, 10, 0, 0}, Draws{2, 9, 0, 0}, Draws{1, 9, 1, 0}, Draws{1, 9, 0, 1}}) {
    message.Encode(values.span(), draws);
    EXPECT_NE(message.words, words);
  }
}

// Five standard deviations of the mean of n draws, each with a variance of at most a quarter step.
TEST(QuantisePropertyTest, TheMeanOverDrawsIsTheElementAndNoneIsFurtherThanAStep) {
  constexpr int kRounds = 4000;
  for (std::uint8_t bits = 2; bits <= 8; ++bits) {
    Message message = MessageOf({16}, bits, 2);
    Rng rng(bits);
    const Guarded values = RandomBuffer(rng, 16, 0.3f);
    const double step = 2.0 / ((1 << (bits - 1)) - 1);
    std::vector<double> sums(16);
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      message.Encode(values.span(), {.round = round});
      const std::vector<float> out = message.Decode();
      for (std::size_t i = 0; i < 16; ++i) {
        ASSERT_LT(std::abs(out[i] - values.span()[i]), step * (1 + 1e-6));
        sums[i] += out[i];
      }
    }

    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_NEAR(sums[i] / kRounds, values.span()[i], 5 * step / 2 / std::sqrt(kRounds));
    }
  }
}

TEST(QuantiseDeathTest, RefusesWhatItsContractExcludes) {
  Message message = MessageOf({32}, 4, 1);
  std::vector<float> flat(32);
  message.Encode(flat);
  const auto decode = [&](const Message& m, std::span<float> out) {
    host::Dequantise(m.segments, m.quantisation(), m.words, out);
  };
  Message one_bit = message;
  one_bit.bits[0] = 1;
  Message nine_bits = message;
  nine_bits.bits[0] = 9;
  Message short_of_words = message;
  short_of_words.words.pop_back();
  Message without_scale = message;
  without_scale.scales.clear();

  EXPECT_DEATH(one_bit.Encode(flat), "check failed");
  EXPECT_DEATH(nine_bits.Encode(flat), "check failed");
  EXPECT_DEATH(decode(short_of_words, flat), "check failed");
  EXPECT_DEATH(decode(without_scale, flat), "check failed");
  EXPECT_DEATH(decode(message, std::span(flat).first(31)), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
