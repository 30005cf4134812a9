#include "policies/orthogonality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace tactus::policies {
namespace {

using Gradient = std::vector<double>;

double Dot(const Gradient& a, const Gradient& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Gradient Combine(const Gradient& a, const Gradient& b) {
  const double dot = Dot(a, b);
  Gradient both(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    both[i] = (1 - dot / Dot(a, a) / 2) * a[i] + (1 - dot / Dot(b, b) / 2) * b[i];
  }
  return both;
}

// Adasum over a tree of 2^k parts.
double OfAdasum(std::vector<Gradient> parts) {
  AdasumNorms norms{.contributors = static_cast<std::uint32_t>(parts.size())};
  for (const Gradient& part : parts) norms.parts_norm2 += Dot(part, part);
  while (parts.size() > 1) {
    std::vector<Gradient> halved;
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      halved.push_back(Combine(parts[i], parts[i + 1]));
    }
    parts = halved;
  }
  norms.combined_norm2 = Dot(parts[0], parts[0]);
  return Orthogonality(norms);
}

double OfMean(const std::vector<Gradient>& gradients, const std::vector<double>& samples) {
  UpdateFacts facts{.contributors = static_cast<std::uint32_t>(gradients.size())};
  Gradient mean(gradients[0].size(), 0.0);
  double samples_squared = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    facts.samples += samples[i];
    samples_squared += samples[i] * samples[i];
    facts.samples_gradient_norm2 += samples[i] * Dot(gradients[i], gradients[i]);
    for (std::size_t j = 0; j < mean.size(); ++j) mean[j] += samples[i] * gradients[i][j];
  }
  for (double& value : mean) value /= facts.samples;
  facts.gradient_norm2 = Dot(mean, mean);
  return Orthogonality(facts, samples_squared);
}

Gradient RandomGradient(Rng& rng) {
  Gradient gradient(16);
  for (double& value : gradient) value = rng.Normal();
  return gradient;
}

// `count` gradients of one length, each along its own axis.
std::vector<Gradient> Axes(std::size_t count, double length) {
  std::vector<Gradient> axes(count, Gradient(count, 0.0));
  for (std::size_t i = 0; i < count; ++i) axes[i][i] = length;
  return axes;
}

TEST(OrthogonalityTest, TwoPartsAtAnAngleKeepWhatThePairOperatorLeaves) {
  const double cosine = 0.6;

  EXPECT_NEAR(OfAdasum({{1, 0}, {cosine, 0.8}}), (1 - cosine / 2) * (1 - cosine / 2) * (1 + cosine),
              1e-12);
  EXPECT_NEAR(OfMean({{1, 0}, {cosine, 0.8}}, {8, 8}), 1 - cosine / 2, 1e-12);
}

TEST(OrthogonalityTest, OppositePartsCountAsTheEndsOfTheRange) {
  EXPECT_EQ(OfAdasum({{1, 0}, {-1, 0}}), 0.5);
  EXPECT_EQ(OfMean({{1, 0}, {-1, 0}}, {8, 8}), 1);
}

TEST(OrthogonalityTest, ASinglePartIsAllThereIs) {
  EXPECT_EQ(Orthogonality({.combined_norm2 = 3, .parts_norm2 = 3, .contributors = 1}), 1);
  EXPECT_EQ(OfMean({{1, 2}}, {8}), 1);
}

TEST(OrthogonalityTest, NothingToCombineAndNumbersThatAreNotFiniteGiveOne) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();

  EXPECT_EQ(Orthogonality({.contributors = 4}), 1);
  EXPECT_EQ(Orthogonality({.combined_norm2 = kNan, .parts_norm2 = 1, .contributors = 4}), 1);
  EXPECT_EQ(Orthogonality({.combined_norm2 = kInfinity, .parts_norm2 = 1, .contributors = 4}), 1);
  EXPECT_EQ(OfMean({{0, 0}, {0, 0}}, {8, 8}), 1);
  EXPECT_EQ(Orthogonality({.samples = 16, .contributors = 2, .samples_gradient_norm2 = kNan}, 128),
            1);
}

TEST(OrthogonalityPropertyTest, ParallelPartsGiveOneOverTheirNumber) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t count = std::size_t{2} << rng.Below(3);
    const std::vector<Gradient> gradients(count, RandomGradient(rng));
    std::vector<double> samples;
    for (std::size_t i = 0; i < count; ++i)
      samples.push_back(1.0 + static_cast<double>(rng.Below(64)));

    ASSERT_NEAR(OfAdasum(gradients), 1.0 / static_cast<double>(count), 1e-12) << "seed " << seed;
    ASSERT_NEAR(OfMean(gradients, samples), 1.0 / static_cast<double>(count), 1e-9)
        << "seed " << seed;
  }
}

TEST(OrthogonalityPropertyTest, OrthogonalPartsGiveOneAlsoOfUnequalBatches) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t count = std::size_t{2} << rng.Below(3);
    const std::vector<Gradient> gradients = Axes(count, 0.1 + rng.Uniform());
    std::vector<double> samples;
    for (std::size_t i = 0; i < count; ++i)
      samples.push_back(1.0 + static_cast<double>(rng.Below(64)));

    ASSERT_NEAR(OfAdasum(gradients), 1, 1e-12) << "seed " << seed;
    ASSERT_NEAR(OfMean(gradients, samples), 1, 1e-9) << "seed " << seed;
  }
}

TEST(OrthogonalityPropertyTest, AnythingElseLiesBetween) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t count = std::size_t{2} << rng.Below(3);
    std::vector<Gradient> gradients;
    std::vector<double> samples;
    for (std::size_t i = 0; i < count; ++i) {
      gradients.push_back(RandomGradient(rng));
      samples.push_back(1.0 + static_cast<double>(rng.Below(64)));
    }

    for (const double orthogonality : {OfAdasum(gradients), OfMean(gradients, samples)}) {
      ASSERT_GE(orthogonality, 1.0 / static_cast<double>(count)) << "seed " << seed;
      ASSERT_LE(orthogonality, 1) << "seed " << seed;
    }
  }
}

TEST(OrthogonalityOracleTest, OfEqualBatchesFollowsTheMeanPairwiseCosine) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t count = 2 + rng.Below(6);
    const Gradient common = RandomGradient(rng);
    std::vector<Gradient> gradients;
    for (std::size_t i = 0; i < count; ++i) {
      gradients.push_back(RandomGradient(rng));
      for (std::size_t j = 0; j < common.size(); ++j) gradients[i][j] += 2 * common[j];
      const double length = std::sqrt(Dot(gradients[i], gradients[i]));
      for (double& value : gradients[i]) value /= length;
    }
    double cosine = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < i; ++j) cosine += Dot(gradients[i], gradients[j]);
    }
    const double parts = static_cast<double>(count);
    cosine /= parts * (parts - 1) / 2;

    ASSERT_NEAR(OfMean(gradients, std::vector<double>(count, 8)), 1 - cosine * (1 - 1 / parts),
                1e-9)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::policies
