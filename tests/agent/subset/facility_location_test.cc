#include "agent/subset/facility_location.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::subset {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;

struct Cloud {
  std::vector<float> values{};
  std::size_t width = 1;
  Points points() const { return {.values = values, .width = width}; }
};

// Some of them alike, on a grid, so that there are ties.
Cloud RandomCloud(std::uint64_t seed, std::size_t count_max = 40) {
  Rng rng(seed);
  Cloud cloud{.width = 1 + rng.Below(4)};
  const std::size_t count = 1 + rng.Below(count_max);
  const bool grid = rng.Below(2) == 0;
  for (std::size_t i = 0; i < count * cloud.width; ++i) {
    const double value = 8 * rng.Uniform() - 4;
    cloud.values.push_back(static_cast<float>(grid ? std::round(value) : value));
  }
  return cloud;
}

std::vector<std::uint64_t> RandomWeights(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<std::uint64_t> weights;
  for (std::size_t i = 0; i < count; ++i) weights.push_back(1 + rng.Below(9));
  return weights;
}

// F of some points, by its definition.
double ValueOf(const Points& points, const std::vector<std::size_t>& picked,
               const std::vector<std::uint64_t>& weights) {
  float longest = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < points.size(); ++j) {
      longest = std::max(longest, Distance(points.Row(i), points.Row(j)));
    }
  }
  double value = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    float best = 0;
    for (const std::size_t j : picked) {
      best = std::max(best, longest - Distance(points.Row(i), points.Row(j)));
    }
    value += static_cast<double>(weights[i]) * best;
  }
  return value;
}

// The dumb twin: all gains anew for each pick, of sums that are exact where no distance is a tiny
// part of the longest.
struct Naive {
  std::vector<std::size_t> points{};
  std::vector<double> gains{};
};

Naive PickNaively(const Points& points, std::size_t budget,
                  const std::vector<std::uint64_t>& weights) {
  const std::size_t n = points.size();
  std::vector<float> ways(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) ways[i * n + j] = Distance(points.Row(i), points.Row(j));
  }
  std::vector<float> nearest(n, *std::ranges::max_element(ways));
  Naive picked;
  while (picked.points.size() < budget) {
    std::size_t best = n;
    double most = -1;
    for (std::size_t j = 0; j < n; ++j) {
      if (std::ranges::count(picked.points, j) > 0) continue;
      double gain = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double nearer = static_cast<double>(nearest[i]) - ways[i * n + j];
        gain += static_cast<double>(weights[i]) * std::max(0.0, nearer);
      }
      if (gain > most) best = j, most = gain;
    }
    picked.points.push_back(best);
    picked.gains.push_back(most);
    for (std::size_t i = 0; i < n; ++i) {
      nearest[i] = std::min(nearest[i], ways[i * n + best]);
    }
  }
  return picked;
}

// Section 8h, vector 1.
class FacilityLocationPaperTest : public testing::Test {
 protected:
  Picked Pick(std::size_t budget) const {
    return PickGreedily({.values = values_, .width = 2}, {.budget = budget});
  }
  const std::vector<float> values_ = {0, 0, 1, 0, 0, 1, 4, 4, 5, 4, 10, 0};
};

TEST_F(FacilityLocationPaperTest, ThreeOfSix) {
  const Picked picked = Pick(3);

  EXPECT_THAT(picked.points, ElementsAre(1, 4, 5));
  EXPECT_THAT(picked.gains, ElementsAre(DoubleNear(38.228186, 1e-5), DoubleNear(12.253730, 1e-5),
                                        DoubleNear(6.403124, 1e-5)));
  EXPECT_THAT(picked.weights, ElementsAre(3, 2, 1));
  EXPECT_NEAR(picked.error, 3.4142136, 1e-6);
  double x = 0;
  double y = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    x += static_cast<double>(picked.weights[k]) * values_[2 * picked.points[k]];
    y += static_cast<double>(picked.weights[k]) * values_[2 * picked.points[k] + 1];
  }
  EXPECT_EQ(x, 23);
  EXPECT_EQ(y, 8);
  EXPECT_NEAR(std::hypot(x - 20, y - 9), 3.1622777, 1e-6);
  EXPECT_LE(std::hypot(x - 20, y - 9), picked.error);
}

TEST_F(FacilityLocationPaperTest, OneTwoFourAndAllOfSix) {
  EXPECT_THAT(Pick(1).points, ElementsAre(1));
  EXPECT_THAT(Pick(1).weights, ElementsAre(6));
  EXPECT_NEAR(Pick(1).error, 22.071068, 1e-5);
  EXPECT_THAT(Pick(2).points, ElementsAre(1, 4));
  EXPECT_THAT(Pick(2).weights, ElementsAre(3, 3));
  EXPECT_NEAR(Pick(2).error, 9.817338, 1e-5);
  EXPECT_THAT(Pick(4).points, ElementsAre(1, 4, 5, 0));
  EXPECT_THAT(Pick(4).weights, ElementsAre(1, 2, 1, 2));
  EXPECT_NEAR(Pick(4).error, 2, 1e-6);
  EXPECT_THAT(Pick(6).weights, Each(1u));
  EXPECT_EQ(Pick(6).error, 0);
}

TEST(FacilityLocationPropertyTest, PicksWhatNaivePicks) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const Cloud cloud = RandomCloud(seed);
    const std::size_t n = cloud.points().size();
    const std::size_t budget = 1 + Rng(seed).Fork("budget").Below(n);
    const bool weighted = seed % 3 == 0;
    const auto weights = weighted ? RandomWeights(n, seed) : std::vector<std::uint64_t>(n, 1);
    const Naive naive = PickNaively(cloud.points(), budget, weights);

    const Picked picked =
        PickGreedily(cloud.points(), {.budget = budget,
                                      .weights = weighted ? std::span<const std::uint64_t>(weights)
                                                          : std::span<const std::uint64_t>()});

    // Where all are alike any are picked.
    if (ValueOf(cloud.points(), {0}, weights) == 0) continue;
    ASSERT_EQ(picked.points, naive.points);
    ASSERT_EQ(picked.gains, naive.gains);
  }
}

// As proxies are: wide, in clusters, many of them; and each there twice, which ties all gains.
TEST(FacilityLocationPropertyTest, PicksWhatNaivePicksOfManyWidePoints) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::size_t n = 150 + rng.Below(150);
    Cloud cloud{.width = 5 + rng.Below(60)};
    for (std::size_t i = 0; i < n; ++i) {
      const double centre = static_cast<double>(rng.Below(5));
      for (std::size_t k = 0; k < cloud.width; ++k) {
        cloud.values.push_back(static_cast<float>(centre + 0.3 * rng.Normal()));
      }
    }
    if (seed % 2 == 1) {
      const std::vector<float> again = cloud.values;
      cloud.values.insert(cloud.values.end(), again.begin(), again.end());
    }
    const std::size_t points = cloud.points().size();
    const std::vector<std::uint64_t> weights(points, 1 + seed / 2);
    const Naive naive = PickNaively(cloud.points(), n / 2, weights);

    const Picked picked = PickGreedily(cloud.points(), {.budget = n / 2, .weights = weights});

    ASSERT_EQ(picked.points, naive.points);
    ASSERT_EQ(picked.gains, naive.gains);
  }
}

TEST(FacilityLocationPropertyTest, WeightsErrorAndGainsAreAsPromised) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const Cloud cloud = RandomCloud(seed);
    const Points points = cloud.points();
    const std::vector<std::uint64_t> weights = RandomWeights(points.size(), seed);
    const std::size_t budget = 1 + Rng(seed).Fork("budget").Below(points.size());
    const std::uint64_t total = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});

    const Picked picked =
        PickGreedily(points, {.budget = budget, .weights = weights, .seed = seed});

    ASSERT_EQ(picked.points.size(), budget);
    std::vector<std::size_t> distinct = picked.points;
    std::ranges::sort(distinct);
    ASSERT_EQ(std::ranges::adjacent_find(distinct), distinct.end());
    ASSERT_EQ(std::accumulate(picked.weights.begin(), picked.weights.end(), std::uint64_t{0}),
              total);
    double missed2 = 0;
    for (std::size_t k = 0; k < points.width; ++k) {
      double missed = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        missed += static_cast<double>(weights[i]) * points.Row(i)[k];
      }
      for (std::size_t j = 0; j < budget; ++j) {
        missed -= static_cast<double>(picked.weights[j]) * points.Row(picked.points[j])[k];
      }
      missed2 += missed * missed;
    }
    ASSERT_LE(std::sqrt(missed2), picked.error * (1 + 1e-5) + 1e-3);
    for (std::size_t j = 0; j < budget; ++j) {
      ASSERT_GE(picked.weights[j], weights[picked.points[j]]);
    }
    ASSERT_TRUE(std::ranges::is_sorted(picked.gains, std::greater<>()));
    ASSERT_NEAR(picked.value, ValueOf(points, picked.points, weights),
                1e-4 * static_cast<double>(total));
  }
}

// Squares of what is near vanish in float32, of what is far are infinite: nothing else is.
TEST(FacilityLocationTest, DistancesOfAllSizesArePickedBy) {
  const std::vector<float> values = {0, 1e-30f, 1e-12f, 1, 2, 3e38f, -3e38f};

  const Picked picked = PickGreedily({.values = values, .width = 1}, {.budget = 3});

  // The first five are one to whoever looks from as far.
  EXPECT_THAT(picked.points, ElementsAre(0, 5, 6));
  EXPECT_THAT(picked.weights, ElementsAre(5, 1, 1));
  for (const double gain : picked.gains) EXPECT_TRUE(std::isfinite(gain));
}

TEST(FacilityLocationTest, WhoIsToldToEndPicksNothing) {
  std::vector<float> wide;
  for (std::size_t i = 0; i < 512 * 512; ++i) wide.push_back(static_cast<float>(i % 1013));
  int asked = 0;

  const Picked picked = PickGreedily({.values = wide, .width = 512},
                                     {.budget = 9, .go_on = [&asked] { return ++asked < 3; }});

  EXPECT_EQ(asked, 3);
  EXPECT_THAT(picked.points, testing::IsEmpty());
}

TEST(FacilityLocationPropertyTest, IsNoWorseThanTheBoundOfSubmodularFunctions) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const Cloud cloud = RandomCloud(seed, 8);
    const std::size_t n = cloud.points().size();
    const std::vector<std::uint64_t> weights(n, 1);
    const std::size_t budget = 1 + Rng(seed).Fork("budget").Below(n);
    double best = 0;
    for (std::uint32_t set = 0; set < (1u << n); ++set) {
      std::vector<std::size_t> members;
      for (std::size_t i = 0; i < n; ++i) {
        if (set >> i & 1) members.push_back(i);
      }
      if (members.size() == budget)
        best = std::max(best, ValueOf(cloud.points(), members, weights));
    }

    const Picked picked = PickGreedily(cloud.points(), {.budget = budget});

    ASSERT_GE(picked.value, (1 - 1 / std::exp(1.0)) * best - 1e-4);
  }
}

TEST(FacilityLocationTest, OfPointsThatAreAllAlikeAnyArePicked) {
  const std::vector<float> alike(40, 2.5f);
  const auto pick = [&](std::uint64_t seed) {
    return PickGreedily({.values = alike, .width = 2}, {.budget = 5, .seed = seed});
  };

  EXPECT_THAT(pick(1).weights, ElementsAre(16, 1, 1, 1, 1));
  EXPECT_EQ(pick(1).error, 0);
  EXPECT_EQ(pick(1).points, pick(1).points);
  EXPECT_NE(pick(1).points, pick(2).points);
}

}  // namespace
}  // namespace tactus::subset
