#include "client/seed_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/client/sample_outcome.h"

namespace tactus::client {
namespace {

std::vector<SeedResult> ThreeSeeds() {
  std::vector<SeedResult> results;
  for (const std::uint64_t seed : {5, 6, 7}) {
    results.push_back(ResultOf(seed, SampleOutcome(), 1.5));
    results.back().samples_per_second += 10 * static_cast<double>(seed);
  }
  results[1].seconds_to_loss.reset();
  return results;
}

TEST(SeedTableTest, QuartilesAreInterpolated) {
  const Distribution distribution = DistributionOf({4, 1, 3, 2});

  EXPECT_DOUBLE_EQ(distribution.median, 2.5);
  EXPECT_DOUBLE_EQ(distribution.spread, 3.25 - 1.75);
}

TEST(SeedTableTest, OneValueHasNoSpreadAndNoneHasNoMedian) {
  EXPECT_EQ(DistributionOf({3}).median, 3);
  EXPECT_EQ(DistributionOf({3}).spread, 0);
  EXPECT_TRUE(std::isnan(DistributionOf({NAN, INFINITY}).median));
}

TEST(SeedTableTest, ASeedIsALineAndTheLastOnesAreMedianAndSpread) {
  EXPECT_EQ(
      SeedTable(ThreeSeeds()),
      R"(SEED    STATE      TO LOSS  TRAINING  SAMPLES/S  UTILISATION  LOSS    ROUNDS  DECISIONS  VIOLATIONS
5       succeeded  50.0s    100s      1,010      96.0 %       0.5000  1,500   2          1
6       succeeded  -        100s      1,020      96.0 %       0.5000  1,500   2          1
7       succeeded  50.0s    100s      1,030      96.0 %       0.5000  1,500   2          1
median             50.0s    100s      1,020      96.0 %       0.5000  1,500   2
spread             0.00s    0.00s     10.0       0.0 %        0.0000  0       0
)");
}

TEST(SeedTableTest, TheJsonHasTheSame) {
  const auto table = nlohmann::json::parse(SeedJson(ThreeSeeds()), nullptr, false);

  ASSERT_TRUE(table.is_object());
  EXPECT_EQ(table["seeds"].size(), 3u);
  EXPECT_EQ(table["seeds"][0]["seed"], 5);
  EXPECT_EQ(table["seeds"][0]["violations_total"], 1);
  EXPECT_TRUE(table["seeds"][1]["seconds_to_loss"].is_null());
  EXPECT_EQ(table["median"]["samples_per_second"], 1020);
  EXPECT_EQ(table["spread"]["samples_per_second"], 10);
}

}  // namespace
}  // namespace tactus::client
