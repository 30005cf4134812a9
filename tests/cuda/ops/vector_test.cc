#include "cuda/ops/vector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t Bits(float value) { return std::bit_cast<std::uint32_t>(value); }

class VectorTwinTest : public testing::TestWithParam<std::size_t> {};

TEST_P(VectorTwinTest, AxpyIsBitIdenticalToItsFormula) {
  Rng rng(GetParam());
  const Guarded x = RandomBuffer(rng, GetParam());
  Guarded y = RandomBuffer(rng, GetParam());
  const Guarded before = y;

  host::Axpy(-0.37f, x.span(), y.span());

  for (std::size_t i = 0; i < GetParam(); ++i) {
    const float product = -0.37f * x.span()[i];
    const float sum = before.span()[i] + product;
    ASSERT_EQ(Bits(y[i]), Bits(sum)) << i;
  }
  EXPECT_TRUE(x.Intact() && y.Intact());
}

TEST_P(VectorTwinTest, AxpyOfABufferOntoItselfIsAllowed) {
  Rng rng(GetParam());
  Guarded x = RandomBuffer(rng, GetParam());
  const Guarded before = x;

  host::Axpy(3.0f, x.span(), x.span());

  for (std::size_t i = 0; i < GetParam(); ++i) {
    const float product = 3.0f * before.span()[i];
    const float sum = before.span()[i] + product;
    ASSERT_EQ(Bits(x[i]), Bits(sum)) << i;
  }
  EXPECT_TRUE(x.Intact());
}

TEST_P(VectorTwinTest, ScaleIsBitIdenticalToItsFormula) {
  Rng rng(GetParam());
  Guarded x = RandomBuffer(rng, GetParam());
  const Guarded before = x;

  host::Scale(1.0f / 3, x.span());

  for (std::size_t i = 0; i < GetParam(); ++i) {
    const float product = (1.0f / 3) * before.span()[i];
    ASSERT_EQ(Bits(x[i]), Bits(product)) << i;
  }
  EXPECT_TRUE(x.Intact());
}

TEST_P(VectorTwinTest, FillSetsEveryElementAndNothingElse) {
  Guarded x(GetParam());

  host::Fill(-2.5f, x.span());

  const std::span<const float> values = x.span();
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float v) { return v == -2.5f; }));
  EXPECT_TRUE(x.Intact());
}

TEST_P(VectorTwinTest, SquaredNormAgreesWithAWiderSum) {
  Rng rng(GetParam());
  const Guarded x = RandomBuffer(rng, GetParam(), 1e3f);
  long double expected = 0;
  for (const float value : x.span()) expected += static_cast<long double>(value) * value;

  const double norm = host::SquaredNorm(x.span());

  EXPECT_NEAR(norm, static_cast<double>(expected), 1e-12 * static_cast<double>(expected));
  EXPECT_TRUE(x.Intact());
}

TEST_P(VectorTwinTest, SquaredNormOfEqualValuesDoesNotDrift) {
  Guarded x(GetParam());
  host::Fill(0.1f, x.span());
  const double exact = static_cast<double>(0.1f) * static_cast<double>(0.1f);
  const double expected = exact * static_cast<double>(GetParam());

  EXPECT_NEAR(host::SquaredNorm(x.span()), expected, 1e-12 * expected);
}

TEST_P(VectorTwinTest, SquaredNormIsNotFiniteForOneBadElementAnywhere) {
  const std::size_t length = GetParam();
  if (length == 0) return;
  for (const std::size_t at : {std::size_t{0}, length / 2, length - 1}) {
    for (const float bad : {kInfinity, -kInfinity, kNan}) {
      Guarded x(length);
      x[at] = bad;

      ASSERT_FALSE(std::isfinite(host::SquaredNorm(x.span()))) << bad << " at " << at;
    }
  }
}

TEST_P(VectorTwinTest, SquaredNormOfTheLargestFloatsIsFinite) {
  Guarded x(GetParam());
  host::Fill(std::numeric_limits<float>::max(), x.span());

  EXPECT_TRUE(std::isfinite(host::SquaredNorm(x.span())));
}

TEST_P(VectorTwinTest, ANonFiniteElementSpoilsItsOwnPlaceAlone) {
  const std::size_t length = GetParam();
  if (length == 0) return;
  Rng rng(length);
  Guarded x = RandomBuffer(rng, length);
  Guarded y = RandomBuffer(rng, length);
  x[length / 2] = kNan;

  host::Axpy(0.0f, x.span(), y.span());
  host::Scale(2.0f, y.span());

  for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(std::isnan(y[i]), i == length / 2) << i;
}

INSTANTIATE_TEST_SUITE_P(Lengths, VectorTwinTest, testing::ValuesIn(kLengths));

TEST(VectorTest, AxpyWithZeroTimesInfinityIsNotANumber) {
  const float x[] = {kInfinity};
  float y[] = {1};

  host::Axpy(0.0f, x, y);

  EXPECT_TRUE(std::isnan(y[0]));
}

TEST(VectorTest, TheSmallestNumbersAreNotFlushedToZero) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  std::vector<float> x(33, smallest);

  host::Scale(3.0f, x);

  for (const float value : x) EXPECT_EQ(value, 3 * smallest);
  EXPECT_GT(host::SquaredNorm(x), 0);
}

TEST(VectorDeathTest, AxpyRefusesUnequalLengths) {
  std::vector<float> x(3);
  std::vector<float> y(4);

  EXPECT_DEATH(host::Axpy(1, x, y), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
