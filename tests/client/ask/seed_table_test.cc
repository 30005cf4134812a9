#include "client/ask/seed_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/client/sample_outcome.h"

namespace tactus::client {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<SeedResult> ThreeSeeds() {
  std::vector<SeedResult> results;
  for (const std::uint64_t seed : {5, 6, 7}) {
    results.push_back(ResultOf(seed, SampleOutcome(), 1.5));
    results.back().samples_per_second += 10 * static_cast<double>(seed);
  }
  results[1].seconds_to_loss = INFINITY;
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
  EXPECT_TRUE(std::isnan(DistributionOf({NAN, NAN}).median));
}

TEST(SeedTableTest, WhatWasNeverReachedCountsAsInfinite) {
  EXPECT_EQ(DistributionOf({1, 2, INFINITY}).median, 2);
  EXPECT_EQ(DistributionOf({1, INFINITY}).median, INFINITY);
  EXPECT_EQ(DistributionOf({1, INFINITY, INFINITY}).median, INFINITY);
  EXPECT_EQ(DistributionOf({1, 2, 3, 4, INFINITY}).spread, 2);
  EXPECT_TRUE(std::isnan(DistributionOf({1, INFINITY}).spread));
  EXPECT_TRUE(std::isnan(DistributionOf({INFINITY, INFINITY}).spread));
}

TEST(SeedTableTest, ASeedIsALineAndTheLastOnesAreMedianAndSpread) {
  EXPECT_EQ(
      SeedTable(ThreeSeeds()),
      R"(SEED    STATE      TO LOSS      TRAINING  SAMPLES/S  UTILISATION  LOSS    ROUNDS  DECISIONS  VIOLATIONS
5       succeeded  50.0s        100s      1,010      96.0 %       0.5000  1,500   2          1
6       succeeded  not reached  100s      1,020      96.0 %       0.5000  1,500   2          1
7       succeeded  50.0s        100s      1,030      96.0 %       0.5000  1,500   2          1
median             50.0s        100s      1,020      96.0 %       0.5000  1,500   2
spread             -            0.00s     10.0       0.0 %        0.0000  0       0
the loss was reached by 2 of 3 seeds
)");
}

TEST(SeedTableTest, AJobThatFailedCountsInTheTimeToTheLossAlone) {
  std::vector<SeedResult> results = ThreeSeeds();
  results[1].state = results[2].state = job::JobState::kFailed;
  results[2].seconds_to_loss = INFINITY;
  results[1].train_seconds = 0.5;

  const std::string table = SeedTable(results);

  EXPECT_THAT(table, HasSubstr("\nmedian             not reached  100s      1,010 "));
  EXPECT_THAT(table, EndsWith("\nthe loss was reached by 1 of 3 seeds\n"
                              "the other medians are of the 1 of 3 seeds whose job succeeded\n"));
}

TEST(SeedTableTest, NothingIsSaidOfALossThatWasNotAskedFor) {
  std::vector<SeedResult> results = {ResultOf(5, SampleOutcome(), std::nullopt)};
  EXPECT_THAT(SeedTable(results), HasSubstr("\n5       succeeded  -        100s "));
  EXPECT_THAT(SeedTable(results), Not(HasSubstr("loss was")));

  results[0].state = job::JobState::kFailed;
  EXPECT_THAT(SeedTable(results),
              EndsWith("\nmedians are of the 0 of 1 seeds whose job succeeded\n"));
}

TEST(SeedTableTest, TheJsonHasTheSame) {
  const auto table = nlohmann::json::parse(SeedJson(ThreeSeeds()), nullptr, false);

  ASSERT_TRUE(table.is_object());
  EXPECT_EQ(table["seeds"].size(), 3u);
  EXPECT_EQ(table["seeds"][0]["seed"], 5);
  EXPECT_EQ(table["seeds"][0]["violations_total"], 1);
  EXPECT_TRUE(table["seeds"][1]["seconds_to_loss"].is_null());
  EXPECT_EQ(table["succeeded"], 3);
  EXPECT_EQ(table["reached"], 2);
  EXPECT_EQ(table["median"]["seconds_to_loss"], 50);
  EXPECT_TRUE(table["spread"]["seconds_to_loss"].is_null());
  EXPECT_EQ(table["median"]["samples_per_second"], 1020);
  EXPECT_EQ(table["spread"]["samples_per_second"], 10);
}

}  // namespace
}  // namespace tactus::client
