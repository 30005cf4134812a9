#include "agent/engine/stop_rule.h"

#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

TEST(StopRuleTest, LossCountsOnlyOverAFullWindow) {
  policies::LossWindow losses;
  const policies::RoundLosses round = {.common = {.sum = 1, .samples = 1}};
  for (std::size_t i = 0; i + 1 < policies::LossWindow::kSteps; ++i) losses.Add(round);
  const StopOptions options{.train_loss = 1.5};

  EXPECT_EQ(ReasonToStop(options, {.rounds = 19, .losses = &losses}), "");
  losses.Add(round);
  EXPECT_EQ(ReasonToStop(options, {.rounds = 20, .losses = &losses}), "train_loss 1 reached 1.5");
}

TEST(StopRuleTest, EpochsAndRoundsAreCounted) {
  const policies::LossWindow losses;

  EXPECT_EQ(ReasonToStop({.epochs = 2}, {.epochs = 1, .losses = &losses}), "");
  EXPECT_EQ(ReasonToStop({.epochs = 2}, {.epochs = 2, .losses = &losses}), "2 epochs completed");
  EXPECT_EQ(ReasonToStop({.rounds = 5}, {.rounds = 5, .losses = &losses}), "5 rounds completed");
  EXPECT_EQ(ReasonToStop({}, {.rounds = 5, .epochs = 9, .losses = &losses}), "");
}

TEST(StopRuleTest, OfNoLossOfAValidationAnythingFollows) {
  const policies::LossWindow losses;
  const StopOptions options{.validation_loss = 100, .patience = 2};

  EXPECT_EQ(ReasonToStop(options, {.losses = &losses}), "");
  EXPECT_EQ(ReasonToStop(options, {.losses = &losses,
                                   .validation = {.count = 2, .loss = 1e9, .since_best = 1}}),
            "");
  EXPECT_EQ(ReasonToStop(options, {.losses = &losses,
                                   .validation = {.count = 2, .loss = 1e9, .since_best = 2}}),
            "patience: 2 validations in a row without a new best");
}

}  // namespace
}  // namespace tactus::engine
