#include "policies/loss_window.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus::policies {
namespace {

RoundLosses Step(double loss, double samples = 1) {
  return {.common = {.sum = loss * samples, .samples = samples}};
}

// A window of so many steps of 10 samples each.
RoundLosses Window(double common, double local, std::uint64_t steps) {
  const double samples = 10 * (static_cast<double>(steps) - 1);
  return {.common = {.sum = 10 * common, .samples = 10},
          .local = {.sum = local * samples, .samples = samples},
          .steps = steps};
}

TEST(LossWindowTest, TheMeanOfStepsIsWeightedBySamplesAndForgetsOldOnes) {
  LossWindow losses;
  for (int i = 0; i < 30; ++i) losses.Add(Step(100));
  EXPECT_EQ(losses.Mean(), 100);
  for (std::uint64_t i = 0; i < LossWindow::kSteps - 2; ++i) losses.Add(Step(0, 0));
  losses.Add(Step(3, 2));
  losses.Add(Step(1.0 / 3, 6));

  EXPECT_DOUBLE_EQ(losses.Mean(), 1.0);
  EXPECT_TRUE(losses.full());
}

TEST(LossWindowTest, OneOfManyStepsAtCommonParametersFillsItAlone) {
  LossWindow losses;
  losses.Add({.common = {.sum = 100, .samples = 10}, .steps = 19});
  EXPECT_FALSE(losses.full());

  losses.Add({.common = {.sum = 30, .samples = 10}, .steps = 32});

  EXPECT_TRUE(losses.full());
  EXPECT_DOUBLE_EQ(losses.Mean(), 3.0);
}

TEST(LossWindowTest, WhatMembersLoseByDriftIsLeftOut) {
  LossWindow losses;
  for (std::size_t i = 0; i < LossWindow::kWindowsMin; ++i) {
    EXPECT_FALSE(losses.full());
    losses.Add(Window(1.5, 2.0, 48));
  }

  EXPECT_TRUE(losses.full());
  EXPECT_NEAR(losses.Mean(), 1.5, 1e-12);
}

TEST(LossWindowTest, OneWindowTellsTheLossOfItsFirstStep) {
  LossWindow losses;

  losses.Add(Window(1.25, 2.0, 48));

  EXPECT_NEAR(losses.Mean(), 1.25, 1e-12);
}

// The drift of the windows before stands in for that of a new length, in proportion.
TEST(LossWindowTest, AChangeOfThePeriodBringsNoJump) {
  LossWindow losses;
  for (int i = 0; i < 10; ++i) losses.Add(Window(1.5, 1.5 + 0.01 * 48, 48));
  for (int i = 0; i < 5; ++i) losses.Add(Window(1.5, 1.5 + 0.01 * 4, 4));
  EXPECT_NEAR(losses.Mean(), 1.5, 1e-12);

  for (std::uint64_t i = 0; i < LossWindow::kSteps; ++i) losses.Add(Step(1.5));
  EXPECT_TRUE(losses.full());
  EXPECT_NEAR(losses.Mean(), 1.5, 1e-12);
}

// First steps alone, as many, would have twenty times the variance of what they are a tenth of.
TEST(LossWindowTest, TheLocalStepsQuietTheNoiseOfAWindow) {
  Rng rng(1);
  LossWindow losses;
  double squares = 0;
  constexpr int kWindows = 4000;
  for (int i = 0; i < kWindows; ++i) {
    losses.Add(Window(1.5 + 0.3 * rng.Normal(), 2.0 + 0.3 / 7 * rng.Normal(), 50));
    if (i < 20) continue;
    squares += (losses.Mean() - 1.5) * (losses.Mean() - 1.5);
  }

  // Of the mean of 20 first steps, 0.3^2 / 20, and of one window's others, (0.3 / 7)^2.
  EXPECT_NEAR(squares / (kWindows - 20), 0.09 / 20 + 0.09 / 49, 0.002);
}

TEST(LossWindowTest, AReportBringsBothLosses) {
  const RoundLosses losses = LossesOf({.steps = 4,
                                       .samples_global = 80,
                                       .loss_mean_global = 1.5,
                                       .local_samples_global = 60,
                                       .local_loss_mean_global = 2});

  EXPECT_EQ(losses, (RoundLosses{.common = {.sum = 30, .samples = 20},
                                 .local = {.sum = 120, .samples = 60},
                                 .steps = 4}));
}

TEST(LossWindowTest, AReportThatContradictsItselfIsFolded) {
  const RoundLosses losses = LossesOf({.samples_global = 8, .local_samples_global = 60});

  EXPECT_EQ(losses.local.samples, 8);
  EXPECT_EQ(losses.common.samples, 0);
  EXPECT_EQ(losses.steps, 1u);
}

}  // namespace
}  // namespace tactus::policies
