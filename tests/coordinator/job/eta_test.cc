#include "coordinator/job/eta.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace tactus::job {
namespace {

constexpr double kRoundSeconds = 0.5;

Progress Halfway() {
  return {.rounds = 10,
          .epoch_samples = 100,
          .samples = 50,
          .samples_per_second = 5,
          .elapsed_seconds = 20};
}

TEST(EtaTest, ALossAloneCannotBeForetold) {
  EXPECT_FALSE(ForeseeEnd({.stop_train_loss = 1.0}, Halfway(), kRoundSeconds).has_value());
}

TEST(EtaTest, TimeIsWhatIsLeftOfIt) {
  EXPECT_DOUBLE_EQ(*ForeseeEnd({.stop_time = Seconds(60)}, Halfway(), kRoundSeconds), 40);
}

TEST(EtaTest, EpochsGoByTheRate) {
  EXPECT_DOUBLE_EQ(*ForeseeEnd({.stop_epochs = 2}, Halfway(), kRoundSeconds), 30);
}

TEST(EtaTest, RoundsGoByTheirLength) {
  EXPECT_DOUBLE_EQ(*ForeseeEnd({.stop_rounds = 30}, Halfway(), kRoundSeconds), 10);
}

TEST(EtaTest, TheNearestConditionCounts) {
  const JobSettings settings{.stop_epochs = 2, .stop_time = Seconds(60), .stop_rounds = 30};

  EXPECT_DOUBLE_EQ(*ForeseeEnd(settings, Halfway(), kRoundSeconds), 10);
}

TEST(EtaTest, WhatIsOverdueIsZero) {
  EXPECT_DOUBLE_EQ(*ForeseeEnd({.stop_time = Seconds(10)}, Halfway(), kRoundSeconds), 0);
}

TEST(EtaTest, WithoutARateThereIsNoForesight) {
  Progress stalled = Halfway();
  stalled.samples_per_second = 0;

  EXPECT_FALSE(ForeseeEnd({.stop_epochs = 2, .stop_rounds = 30}, stalled, 0).has_value());
}

}  // namespace
}  // namespace tactus::job
