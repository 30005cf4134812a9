// The invariants of Adasum's pair operator, on random operands.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/rng.h"
#include "cuda/ops/adasum.h"
#include "cuda/ops/vector.h"

namespace tactus::cuda {
namespace {

using Vector = std::vector<float>;

constexpr int kCases = 1000;
// What one rounding to float32 does to a number of size 1.
constexpr double kRounding = 0x1p-24;

Vector Paired(const Vector& a, const Vector& b) {
  Vector out(a.size());
  const AdasumPair pair{.a = a, .b = b};
  host::Combine(host::CoefficientsOf(host::PairSums(pair)), pair, out);
  return out;
}

Vector Scaled(float factor, const Vector& x) {
  Vector scaled = x;
  host::Scale(factor, scaled);
  return scaled;
}

double Dot(const Vector& a, const Vector& b) { return host::PairSums({.a = a, .b = b}).dot; }

// Whole numbers from -1023 to 1023, the first not zero: sums of their products are exact.
Vector WholeNumbers(Rng& rng, std::size_t length) {
  Vector values(length);
  for (float& value : values) value = static_cast<float>(rng.Below(2047)) - 1023.0f;
  values[0] = static_cast<float>(rng.Below(1023) + 1);
  return values;
}

Vector NormalNumbers(Rng& rng, std::size_t length) {
  const double scale = std::exp2(40 * rng.Uniform() - 20);
  Vector values(length);
  for (float& value : values) value = static_cast<float>(scale * rng.Normal());
  return values;
}

std::size_t Length(Rng& rng) { return rng.Below(300) + 1; }

TEST(AdasumPropertyTest, CollinearOperandsAreAveraged) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Rng rng(seed);
    const Vector a = WholeNumbers(rng, Length(rng));
    const auto eighths = static_cast<float>(rng.Below(64) + 1);
    const float c = (rng.Below(2) == 0 ? eighths : -eighths) / 8;

    const Vector out = Paired(a, Scaled(c, a));

    for (std::size_t i = 0; i < a.size(); ++i) {
      const double expected = (1 + c) / 2 * a[i];
      // The coefficients err by 2^-53 times a few; c and a are exact.
      const double tolerance =
          kRounding * std::abs(expected) + 1e-14 * (1 + c * c) * std::abs(a[i]);
      ASSERT_NEAR(out[i], expected, tolerance) << "seed " << seed;
    }
  }
}

TEST(AdasumPropertyTest, OrthogonalOperandsAreSummed) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Rng rng(seed);
    const Vector a = WholeNumbers(rng, 2 * Length(rng));
    Vector b(a.size());
    for (std::size_t i = 0; i < a.size(); i += 2) {
      b[i] = -3 * a[i + 1];
      b[i + 1] = 3 * a[i];
    }

    const Vector out = Paired(a, b);

    for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(out[i], a[i] + b[i]) << "seed " << seed;
  }
}

TEST(AdasumPropertyTest, TheOperatorIsSymmetricToTheBit) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Rng rng(seed);
    const Vector a = NormalNumbers(rng, Length(rng));
    const Vector b = NormalNumbers(rng, a.size());

    ASSERT_EQ(Paired(a, b), Paired(b, a)) << "seed " << seed;
  }
}

TEST(AdasumPropertyTest, TheOperatorIsHomogeneousToTheBitForPowersOfTwo) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Rng rng(seed);
    const Vector a = WholeNumbers(rng, Length(rng));
    const Vector b = WholeNumbers(rng, a.size());
    const float c =
        std::ldexp(rng.Below(2) == 0 ? 1.0f : -1.0f, static_cast<int>(rng.Below(81)) - 40);

    ASSERT_EQ(Paired(Scaled(c, a), Scaled(c, b)), Scaled(c, Paired(a, b))) << "seed " << seed;
  }
}

// Five times a rotation of every two neighbours, by the angle of the triangle 3, 4, 5.
Vector Rotated(const Vector& x) {
  Vector rotated(x.size());
  for (std::size_t i = 0; i < x.size(); i += 2) {
    rotated[i] = 3 * x[i] - 4 * x[i + 1];
    rotated[i + 1] = 4 * x[i] + 3 * x[i + 1];
  }
  return rotated;
}

TEST(AdasumPropertyTest, RotatingBothOperandsRotatesTheResult) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Rng rng(seed);
    const Vector a = WholeNumbers(rng, 2 * Length(rng));
    const Vector b = WholeNumbers(rng, a.size());

    const Vector out = Paired(Rotated(a), Rotated(b));
    const Vector before = Paired(a, b);
    const Vector expected = Rotated(before);

    for (std::size_t i = 0; i < a.size(); ++i) {
      // One rounding in `out`; in `expected` one of each of two numbers, of their products and sum.
      const std::size_t pair = i / 2 * 2;
      const double size = 4.0 * (std::abs(before[pair]) + std::abs(before[pair + 1]));
      ASSERT_NEAR(out[i], expected[i], 4 * kRounding * size + 1e-9) << "seed " << seed;
    }
  }
}

TEST(AdasumTest, TheOperatorIsNotAssociative) {
  const Vector a = {1, 2};
  const Vector b = {2, 0};
  const Vector c = {-1, 1};

  EXPECT_NE(Paired(Paired(a, b), c), Paired(a, Paired(b, c)));
}

TEST(AdasumPropertyTest, TheNormIsThatOfTheFormulaAndAtMostTheSumOfSquares) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Rng rng(seed);
    const Vector a = NormalNumbers(rng, Length(rng));
    const Vector b = NormalNumbers(rng, a.size());
    const AdasumSums s = host::PairSums({.a = a, .b = b});

    const double norm2 = host::SquaredNorm(Paired(a, b));

    const double d2 = s.dot * s.dot;
    const double expected = s.a_norm2 + s.b_norm2 - 0.75 * d2 * (1 / s.a_norm2 + 1 / s.b_norm2) +
                            d2 * s.dot / (2 * s.a_norm2 * s.b_norm2);
    const double squares = s.a_norm2 + s.b_norm2;
    // Every element is rounded once, which changes its square by twice that.
    ASSERT_NEAR(norm2, expected, 2.01 * kRounding * expected + 1e-11 * squares) << "seed " << seed;
    ASSERT_LE(norm2, squares * (1 + 2.01 * kRounding)) << "seed " << seed;
  }
}

TEST(AdasumPropertyTest, TheProjectionOnAnOperandIsThatOfTheFormula) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    Rng rng(seed);
    const Vector a = NormalNumbers(rng, Length(rng));
    const Vector b = NormalNumbers(rng, a.size());
    const AdasumSums s = host::PairSums({.a = a, .b = b});

    const double projection = Dot(Paired(a, b), a);

    const double expected = s.a_norm2 + s.dot / 2 - s.dot * s.dot / (2 * s.b_norm2);
    // The rounding of every element, and the norm of the result is at most sqrt(A + B).
    const double size = std::sqrt((s.a_norm2 + s.b_norm2) * s.a_norm2);
    ASSERT_NEAR(projection, expected, 1.01 * kRounding * size + 1e-11 * size) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::cuda
