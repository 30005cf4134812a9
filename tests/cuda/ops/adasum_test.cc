#include "cuda/ops/adasum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/ops/vector.h"
#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

using Vector = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t Bits(float value) { return std::bit_cast<std::uint32_t>(value); }

// The operator over one segment, by the functions under test.
Vector Paired(const Vector& a, const Vector& b) {
  Vector out(a.size());
  const AdasumPair pair{.a = a, .b = b};
  host::Combine(host::CoefficientsOf(host::PairSums(pair)), pair, out);
  return out;
}

void ExpectNear(const Vector& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    // Nine digits are printed, and a float32 has no more than eight.
    EXPECT_NEAR(found[i], expected[i], 0x1p-23 * std::abs(expected[i])) << i;
  }
}

class AdasumTwinTest : public testing::TestWithParam<std::size_t> {};

TEST_P(AdasumTwinTest, SumsAgreeWithWiderSums) {
  Rng rng(GetParam());
  const Guarded a = RandomBuffer(rng, GetParam(), 1e3f);
  const Guarded b = RandomBuffer(rng, GetParam());
  long double dot = 0;
  long double magnitudes = 0;
  for (std::size_t i = 0; i < GetParam(); ++i) {
    const long double product = static_cast<long double>(a.span()[i]) * b.span()[i];
    dot += product;
    magnitudes += std::abs(product);
  }

  const AdasumSums sums = host::PairSums({.a = a.span(), .b = b.span()});

  EXPECT_NEAR(sums.dot, static_cast<double>(dot), 1e-12 * static_cast<double>(magnitudes));
  EXPECT_EQ(sums.a_norm2, host::SquaredNorm(a.span()));
  EXPECT_EQ(sums.b_norm2, host::SquaredNorm(b.span()));
}

TEST_P(AdasumTwinTest, SumsAreNotFiniteForOneBadElementAnywhere) {
  const std::size_t length = GetParam();
  if (length == 0) return;
  for (const std::size_t at : {std::size_t{0}, length / 2, length - 1}) {
    for (const float bad : {kInfinity, -kInfinity, kNan}) {
      Guarded a(length);
      const Guarded b(length);
      a[at] = bad;

      const AdasumSums left = host::PairSums({.a = a.span(), .b = b.span()});
      const AdasumSums right = host::PairSums({.a = b.span(), .b = a.span()});

      ASSERT_FALSE(std::isfinite(left.dot) || std::isfinite(left.a_norm2)) << bad << " at " << at;
      ASSERT_FALSE(std::isfinite(right.dot) || std::isfinite(right.b_norm2)) << bad << " at " << at;
      ASSERT_EQ(left.b_norm2, 0);
      ASSERT_EQ(right.a_norm2, 0);
    }
  }
}

TEST_P(AdasumTwinTest, CombinationIsBitIdenticalToItsFormulaAlsoInPlace) {
  Rng rng(GetParam());
  const Guarded a = RandomBuffer(rng, GetParam());
  const Guarded b = RandomBuffer(rng, GetParam());
  const AdasumCoefficients coefficients{.alpha = 1.0 / 3, .beta = -0.7};
  Guarded out(GetParam());
  Guarded onto_a = a;
  Guarded onto_b = b;

  host::Combine(coefficients, {.a = a.span(), .b = b.span()}, out.span());
  host::Combine(coefficients, {.a = onto_a.span(), .b = b.span()}, onto_a.span());
  host::Combine(coefficients, {.a = a.span(), .b = onto_b.span()}, onto_b.span());

  for (std::size_t i = 0; i < GetParam(); ++i) {
    const double left = coefficients.alpha * static_cast<double>(a.span()[i]);
    const double right = coefficients.beta * static_cast<double>(b.span()[i]);
    const std::uint32_t expected = Bits(static_cast<float>(left + right));
    ASSERT_EQ(Bits(out[i]), expected) << i;
    ASSERT_EQ(Bits(onto_a[i]), expected) << i;
    ASSERT_EQ(Bits(onto_b[i]), expected) << i;
  }
  EXPECT_TRUE(out.Intact() && onto_a.Intact() && onto_b.Intact());
}

INSTANTIATE_TEST_SUITE_P(Lengths, AdasumTwinTest, testing::ValuesIn(kLengths));

TEST(AdasumTest, ANumberThatIsNotFiniteInTheSumsGivesTheCoefficientsOfTheFormula) {
  EXPECT_EQ(host::CoefficientsOf({.dot = 1, .a_norm2 = kNan, .b_norm2 = 2}).alpha, 1);
  EXPECT_EQ(host::CoefficientsOf({.dot = 1, .a_norm2 = kNan, .b_norm2 = 2}).beta, 0.75);
  EXPECT_TRUE(std::isnan(host::CoefficientsOf({.dot = HUGE_VAL, .a_norm2 = HUGE_VAL}).alpha));
}

TEST(AdasumTest, TheZeroTestIsOnTheSquaredNorm) {
  const double threshold = std::sqrt(DBL_MIN);
  const double below = std::nextafter(threshold, 0);

  EXPECT_EQ(host::CoefficientsOf({.dot = threshold, .a_norm2 = threshold}).alpha, 0.5);
  EXPECT_EQ(host::CoefficientsOf({.dot = below, .a_norm2 = below}).alpha, 1);
}

TEST(AdasumTest, DivisionComesBeforeHalving) {
  // Twice the norm would be infinite.
  EXPECT_EQ(host::CoefficientsOf({.dot = DBL_MAX, .a_norm2 = DBL_MAX}).alpha, 0.5);
}

TEST(AdasumTest, TheSmallestAndTheLargestFloatsAreWithinTheSums) {
  const Vector smallest(33, std::numeric_limits<float>::denorm_min());
  const Vector largest(33, std::numeric_limits<float>::max());

  EXPECT_EQ(Paired(smallest, smallest), smallest);
  EXPECT_EQ(Paired(largest, largest), largest);
}

TEST(AdasumPaperTest, V1Pair) {
  const Vector a = {1, 2, 3};
  const Vector b = {4, -5, 6};

  const AdasumSums sums = host::PairSums({.a = a, .b = b});
  const AdasumCoefficients coefficients = host::CoefficientsOf(sums);
  const Vector out = Paired(a, b);

  EXPECT_EQ(sums.dot, 12);
  EXPECT_EQ(sums.a_norm2, 14);
  EXPECT_EQ(sums.b_norm2, 77);
  EXPECT_NEAR(coefficients.alpha, 0.571428571, 5e-10);
  EXPECT_NEAR(coefficients.beta, 0.922077922, 5e-10);
  ExpectNear(out, {4.25974026, -3.46753247, 7.24675325});
  EXPECT_NEAR(host::SquaredNorm(out), 82.6846011, 82.7 * 0x1p-23);
}

// The rows of V5 in 16-bit floats are left out: our buffers are float32.
TEST(AdasumPaperTest, V5Edges) {
  EXPECT_EQ(Paired({0, 0}, {3, 4}), (Vector{3, 4}));
  EXPECT_EQ(Paired({3, 4}, {0, 0}), (Vector{3, 4}));
  EXPECT_EQ(Paired({0, 0}, {0, 0}), (Vector{0, 0}));
  EXPECT_EQ(Paired({1, -2}, {-1, 2}), (Vector{0, 0}));
  EXPECT_EQ(Paired({1, -2}, {-2, 4}), (Vector{-0.5, 1}));
  EXPECT_EQ(Paired({1, 0}, {1, 1}), (Vector{1.25, 0.75}));

  // (1, 1) and (1e-200, 1e-200): the second is none of float32's, its sums are some of float64's.
  const AdasumCoefficients tiny =
      host::CoefficientsOf({.dot = 2e-200, .a_norm2 = 2, .b_norm2 = 1e-200 * 1e-200 * 2});
  EXPECT_EQ(tiny.alpha, 1);
  EXPECT_EQ(tiny.beta, 1);
}

TEST(AdasumDeathTest, RefusesUnequalLengths) {
  const Vector three(3);
  const Vector four(4);
  Vector out(3);

  EXPECT_DEATH(host::PairSums({.a = three, .b = four}), "check failed");
  EXPECT_DEATH(host::Combine({}, {.a = three, .b = four}, out), "check failed");
  EXPECT_DEATH(host::Combine({}, {.a = four, .b = four}, out), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
