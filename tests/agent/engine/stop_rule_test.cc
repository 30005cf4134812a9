#include "agent/engine/stop_rule.h"

#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

TEST(StopRuleTest, LossCountsOnlyOverAFullWindow) {
  LossWindow losses;
  for (std::size_t i = 0; i + 1 < LossWindow::kSteps; ++i) losses.Add(1.0, 1, 1);
  const StopOptions options{.train_loss = 1.5};

  EXPECT_EQ(ReasonToStop(options, {.rounds = 19, .losses = &losses}), "");
  losses.Add(1.0, 1, 1);
  EXPECT_EQ(ReasonToStop(options, {.rounds = 20, .losses = &losses}), "train_loss 1 reached 1.5");
}

TEST(StopRuleTest, MeanIsWeightedBySamplesAndForgetsOldRounds) {
  LossWindow losses;
  for (int i = 0; i < 30; ++i) losses.Add(100, 1, 1);
  for (std::size_t i = 0; i < LossWindow::kSteps - 2; ++i) losses.Add(0, 0, 1);
  losses.Add(6, 2, 1);
  losses.Add(2, 6, 1);

  EXPECT_DOUBLE_EQ(losses.Mean(), 1.0);
}

TEST(StopRuleTest, ARoundOfManyStepsFillsTheWindowAlone) {
  LossWindow losses;
  losses.Add(100, 10, 19);
  EXPECT_FALSE(losses.full());

  losses.Add(30, 10, 32);

  EXPECT_TRUE(losses.full());
  EXPECT_DOUBLE_EQ(losses.Mean(), 3.0);
}

TEST(StopRuleTest, EpochsAndRoundsAreCounted) {
  const LossWindow losses;

  EXPECT_EQ(ReasonToStop({.epochs = 2}, {.epochs = 1, .losses = &losses}), "");
  EXPECT_EQ(ReasonToStop({.epochs = 2}, {.epochs = 2, .losses = &losses}), "2 epochs completed");
  EXPECT_EQ(ReasonToStop({.rounds = 5}, {.rounds = 5, .losses = &losses}), "5 rounds completed");
  EXPECT_EQ(ReasonToStop({}, {.rounds = 5, .epochs = 9, .losses = &losses}), "");
}

}  // namespace
}  // namespace tactus::engine
