#include "agent/subset/distances.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::subset {
namespace {

std::vector<float> RandomValues(Rng& rng, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(rng.Normal()));
  return values;
}

TEST(DistancesToTest, AreThoseOfPairsBitForBit) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::size_t width = 1 + rng.Below(20);
    const std::vector<float> values = RandomValues(rng, width * (1 + rng.Below(200)));
    const std::vector<float> others = RandomValues(rng, width * (1 + rng.Below(20)));
    const Points points{.values = values, .width = width};
    const Points from{.values = others, .width = width};
    std::vector<std::vector<float>> ways(from.size(), std::vector<float>(points.size() + 1, -7));
    std::vector<DistancesTo::Row> rows;
    for (std::size_t i = 0; i < from.size(); ++i) {
      rows.push_back({from.Row(i), std::span(ways[i]).first(points.size())});
    }

    DistancesTo(points).Compute(rows);

    for (std::size_t i = 0; i < from.size(); ++i) {
      for (std::size_t j = 0; j < points.size(); ++j) {
        ASSERT_EQ(ways[i][j], Distance(from.Row(i), points.Row(j)));
      }
      ASSERT_EQ(ways[i].back(), -7);
    }
  }
}

TEST(DistancesToTest, OfAPointToItselfIsZeroAndBothWaysAreAlike) {
  Rng rng(1);
  const std::vector<float> values = RandomValues(rng, 70 * 11);
  const Points points{.values = values, .width = 11};
  std::vector<float> ways(70 * 70);
  std::vector<DistancesTo::Row> rows;
  for (std::size_t i = 0; i < 70; ++i) {
    rows.push_back({points.Row(i), std::span(ways).subspan(i * 70, 70)});
  }

  DistancesTo(points).Compute(rows);

  for (std::size_t i = 0; i < 70; ++i) {
    EXPECT_EQ(ways[i * 70 + i], 0);
    for (std::size_t j = 0; j < i; ++j) EXPECT_EQ(ways[i * 70 + j], ways[j * 70 + i]);
  }
}

}  // namespace
}  // namespace tactus::subset
