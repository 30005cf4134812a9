// What holds for Adasum whatever the vectors, for a thousand random cases each.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/adasum_twin.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

constexpr std::uint64_t kSeeds = 1000;

std::string Named(std::uint64_t seed) { return "seed " + std::to_string(seed); }

std::vector<float> RandomVector(std::size_t length, Rng& rng) {
  std::vector<float> vector(length);
  for (float& value : vector) value = static_cast<float>(rng.Normal());
  return vector;
}

// Segments may be empty, and may have gaps between them, in which vectors are zero.
AdasumCase RandomCase(std::size_t ranks, Rng& rng) {
  AdasumCase test;
  std::size_t end = 0;
  const std::size_t segments = 1 + rng.Below(5);
  for (std::size_t s = 0; s < segments; ++s) {
    const std::size_t offset = end + (rng.Below(3) == 0 ? rng.Below(4) : 0);
    const std::size_t length = rng.Below(rng.Below(2) == 0 ? 4 : 40);
    test.segments.push_back({.offset = offset, .length = length});
    end = offset + length;
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<float> vector(end);
    const float scale = std::ldexp(1.0f, static_cast<int>(rng.Below(12)) - 6);
    for (const cuda::Segment& segment : test.segments) {
      for (std::size_t i = 0; i < segment.length; ++i) {
        vector[segment.offset + i] = scale * static_cast<float>(rng.Normal());
      }
    }
    test.vectors.push_back(std::move(vector));
  }
  return test;
}

void ExpectAgrees(const AdasumCase& test, const std::vector<float>& actual,
                  const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const cuda::Segment& segment : test.segments) {
    const double tolerance = ToleranceIn(segment, test.vectors);
    for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) {
      ASSERT_NEAR(static_cast<double>(actual[i]), static_cast<double>(expected[i]), tolerance)
          << "element " << i << " of " << actual.size() << ", " << test.vectors.size() << " ranks";
    }
  }
}

AdasumCase Pair(std::vector<float> a, std::vector<float> b) {
  const std::size_t length = a.size();
  return {.vectors = {std::move(a), std::move(b)}, .segments = SegmentsOf({length})};
}

std::vector<float> Times(double factor, std::vector<float> vector) {
  for (float& value : vector) value = static_cast<float>(factor * static_cast<double>(value));
  return vector;
}

TEST(AdasumPropertyTest, CollinearPairsAreAveraged) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const std::vector<float> a = RandomVector(1 + rng.Below(20), rng);
    const double c = 4 * rng.Uniform() - 2;
    const AdasumCase test = Pair(a, Times(c, a));
    ExpectAgrees(test, AgreedAdasum(test), Times((1 + c) / 2, a));
  }
}

TEST(AdasumPropertyTest, CollinearVectorsOnAPowerOfTwoRanksAreAveraged) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const std::vector<float> v = RandomVector(1 + rng.Below(20), rng);
    const std::size_t ranks = std::size_t{1} << rng.Below(5);
    AdasumCase test{.segments = SegmentsOf({v.size()})};
    double sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const double factor = seed % 2 == 0 ? 1 : 0.1 + rng.Uniform();
      sum += factor;
      test.vectors.push_back(Times(factor, v));
    }
    ExpectAgrees(test, AgreedAdasum(test), Times(sum / static_cast<double>(ranks), v));
  }
}

// Each element belongs to one rank, so that all products are zero.
TEST(AdasumPropertyTest, OrthogonalVectorsAreSummed) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const std::size_t node_size = 1 + rng.Below(3);
    const std::size_t nodes = 1 + rng.Below(5);
    const std::vector<float> sum = RandomVector(1 + rng.Below(30), rng);
    AdasumCase test{.vectors = Vectors(nodes * node_size, std::vector<float>(sum.size())),
                    .segments = SegmentsOf({sum.size() / 2, sum.size() - sum.size() / 2})};
    for (std::size_t i = 0; i < sum.size(); ++i) {
      test.vectors[rng.Below(test.vectors.size())][i] = sum[i];
    }
    for (std::size_t rank = 0; rank < test.vectors.size() && node_size > 1; ++rank) {
      test.nodes.push_back(static_cast<std::uint32_t>(rank / node_size));
    }
    ExpectAgrees(test, AgreedAdasum(test), Times(1 / static_cast<double>(node_size), sum));
  }
}

TEST(AdasumPropertyTest, TheOperatorIsSymmetricAndHomogeneousBitForBit) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const std::size_t length = 1 + rng.Below(30);
    const std::vector<float> a = RandomVector(length, rng);
    const std::vector<float> b = RandomVector(length, rng);
    const std::vector<float> result = AgreedAdasum(Pair(a, b));
    const double power = rng.Below(2) == 0 ? 8 : -0.25;
    EXPECT_TRUE(SameBits(AgreedAdasum(Pair(b, a)), result));
    EXPECT_TRUE(
        SameBits(AgreedAdasum(Pair(Times(power, a), Times(power, b))), Times(power, result)));
  }
}

// Turns the plane of two elements.
std::vector<float> Turned(std::vector<float> vector, double angle) {
  const double x = static_cast<double>(vector.front());
  const double y = static_cast<double>(vector.back());
  vector.front() = static_cast<float>(std::cos(angle) * x - std::sin(angle) * y);
  vector.back() = static_cast<float>(std::sin(angle) * x + std::cos(angle) * y);
  return vector;
}

TEST(AdasumPropertyTest, TheOperatorTurnsWithItsOperands) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const std::size_t length = 2 + rng.Below(20);
    const AdasumCase test = Pair(RandomVector(length, rng), RandomVector(length, rng));
    const double angle = 7 * rng.Uniform();
    const AdasumCase turned = Pair(Turned(test.vectors[0], angle), Turned(test.vectors[1], angle));
    ExpectAgrees(test, AgreedAdasum(turned), Turned(AgreedAdasum(test), angle));
  }
}

TEST(AdasumPropertyTest, ThePairsNormAndProductsHaveTheirClosedForms) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const std::size_t length = 1 + rng.Below(30);
    const AdasumCase test = Pair(RandomVector(length, rng), RandomVector(length, rng));
    const cuda::Segment& whole = test.segments.front();
    const double d = DotIn(whole, test.vectors[0], test.vectors[1]);
    const double a2 = Norm2In(whole, test.vectors[0]);
    const double b2 = Norm2In(whole, test.vectors[1]);

    const std::vector<float> result = AgreedAdasum(test);

    const double norm2 = Norm2In(whole, result);
    const double tolerance = 1e-6 * (a2 + b2);
    EXPECT_NEAR(norm2, a2 + b2 - 0.75 * d * d * (1 / a2 + 1 / b2) + d * d * d / (2 * a2 * b2),
                tolerance);
    EXPECT_LE(norm2, a2 + b2 + tolerance);
    EXPECT_NEAR(DotIn(whole, result, test.vectors[0]), a2 + d / 2 - d * d / (2 * b2), tolerance);
  }
}

TEST(AdasumPropertyTest, NormNeverExceedsSumOfSquares) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const AdasumCase test = RandomCase(1 + rng.Below(9), rng);
    const std::vector<float> result = AgreedAdasum(test);
    for (const cuda::Segment& segment : test.segments) {
      double norms2 = 0;
      for (const std::vector<float>& vector : test.vectors) norms2 += Norm2In(segment, vector);
      EXPECT_LE(Norm2In(segment, result), norms2 * (1 + 1e-6));
    }
  }
}

// Also with fewer elements than ranks.
TEST(AdasumPropertyTest, TheReductionAgreesWithTheSequentialTreeFor1To17Ranks) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const AdasumCase test = RandomCase(1 + seed % 17, rng);
    ExpectAgrees(test, AgreedAdasum(test), TwinAdasum(test));
  }
}

TEST(AdasumPropertyTest, TheReductionOverNodesAgreesWithTheTreeOfTheirMeans) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const std::size_t node_size = 2 + rng.Below(3);
    const std::size_t nodes = 1 + rng.Below(6);
    AdasumCase test = RandomCase(nodes * node_size, rng);
    const bool in_a_row = rng.Below(2) == 0;
    for (std::size_t rank = 0; rank < test.vectors.size(); ++rank) {
      test.nodes.push_back(static_cast<std::uint32_t>(in_a_row ? rank / node_size : rank % nodes));
    }
    const std::vector<float> expected = TwinAdasum(test);
    ExpectAgrees(test, AgreedAdasum(test), expected);
  }
}

TEST(AdasumPropertyTest, SegmentsReducedTogetherAreThoseReducedApart) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const std::size_t ranks = 2 + rng.Below(6);
    const std::vector<std::size_t> lengths = {1 + rng.Below(20), 1 + rng.Below(20)};
    AdasumCase together{.segments = SegmentsOf(lengths)};
    AdasumCase first{.segments = SegmentsOf({lengths[0]})};
    AdasumCase second{.segments = SegmentsOf({lengths[1]})};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      first.vectors.push_back(RandomVector(lengths[0], rng));
      second.vectors.push_back(RandomVector(lengths[1], rng));
      std::vector<float> joined = first.vectors.back();
      joined.insert(joined.end(), second.vectors.back().begin(), second.vectors.back().end());
      together.vectors.push_back(std::move(joined));
    }
    std::vector<float> apart = AgreedAdasum(first);
    const std::vector<float> rest = AgreedAdasum(second);
    apart.insert(apart.end(), rest.begin(), rest.end());
    ExpectAgrees(together, AgreedAdasum(together), apart);
  }
}

// Two random halves are hardly ever both parallel or both orthogonal.
TEST(AdasumPropertyTest, OneSegmentCutInTwoGivesAnotherResult) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    AdasumCase test = Pair(RandomVector(20, rng), RandomVector(20, rng));
    const std::vector<float> whole = AgreedAdasum(test);
    test.segments = SegmentsOf({10, 10});
    EXPECT_FALSE(SameBits(AgreedAdasum(test), whole));
  }
}

// The lengths and magnitudes of the published code's own tests: squares stay within float32.
TEST(AdasumPropertyTest, AwkwardLengthsAndMagnitudesAgreeWithTheSequentialTree) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(Named(seed));
    Rng rng(seed);
    const std::size_t ranks = 2 + rng.Below(7);
    const std::vector<std::size_t> lengths = {20 * ranks - 17, 2 * ranks + 1, ranks + 2};
    const std::size_t length = lengths[rng.Below(lengths.size())];
    AdasumCase test{.segments = SegmentsOf({length})};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const double magnitude = std::ldexp(1.0, static_cast<int>(rng.Below(180)) - 116);
      test.vectors.push_back(Times(magnitude, RandomVector(length, rng)));
    }
    ExpectAgrees(test, AgreedAdasum(test), TwinAdasum(test));
  }
}

TEST(AdasumPropertyTest, ALongVectorAgreesWithTheSequentialTree) {
  for (const std::size_t ranks : {4, 6}) {
    Rng rng(ranks);
    AdasumCase test{.segments = SegmentsOf({std::size_t{1} << 18, 7, (std::size_t{1} << 18) - 7})};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      test.vectors.push_back(RandomVector(std::size_t{1} << 19, rng));
    }
    ExpectAgrees(test, AgreedAdasum(test), TwinAdasum(test));
  }
}

}  // namespace
}  // namespace tactus::collective
