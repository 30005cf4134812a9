#include "policies/learning_rate.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/rng.h"

namespace tactus::policies {
namespace {

constexpr std::array kRules = {LearningRateRule::kConstant, LearningRateRule::kLinear,
                               LearningRateRule::kSqrt, LearningRateRule::kAdascale};

UpdateFacts RandomFacts(Rng& rng) {
  UpdateFacts facts{.samples = static_cast<double>(1 + rng.Below(500)),
                    .contributors = static_cast<std::uint32_t>(1 + rng.Below(5))};
  facts.gradient_norm2 = rng.Uniform();
  facts.samples_gradient_norm2 = facts.samples * facts.gradient_norm2 * (1 + 5 * rng.Uniform());
  return facts;
}

// Vector V7 of section 3.h: statistics of t0, t1 and t2 in turn, four base batches of 32.
TEST(LearningRatePaperTest, V7ScheduleUnderAdascale) {
  const std::array<UpdateFacts, 3> facts = {{{.samples = 128,
                                              .contributors = 4,
                                              .samples_gradient_norm2 = 32 * 14.0,
                                              .gradient_norm2 = 2},
                                             {.samples = 128,
                                              .contributors = 4,
                                              .samples_gradient_norm2 = 32 * 10.25,
                                              .gradient_norm2 = 1.640625},
                                             {.samples = 128,
                                              .contributors = 4,
                                              .samples_gradient_norm2 = 32 * 0.54,
                                              .gradient_norm2 = 0.0325}}};
  const std::array<std::array<double, 3>, 6> expected = {{{0, 1, .1},
                                                          {1, 1.75, .175},
                                                          {2.75, 1.66523605, .166523605},
                                                          {4.41523605, 1.6869437, .016869437},
                                                          {6.10217976, 1.709167, .01709167},
                                                          {7.81134676, 1.67614057, .0167614057}}};
  LearningRate learning_rate(
      {.schedule = {.shape = Schedule::Shape::kStep, .boundaries = {3}}, .base_batch = 32});

  std::size_t steps = 0;
  for (; learning_rate.progress() < 8; ++steps) {
    ASSERT_LT(steps, expected.size());
    const auto next = learning_rate.Next(LearningRateRule::kAdascale, 128);
    EXPECT_NEAR(learning_rate.progress(), expected[steps][0], 5e-9 * 8) << "step " << steps;
    EXPECT_NEAR(next.gain, expected[steps][1], 5e-9 * 2) << "step " << steps;
    EXPECT_NEAR(next.rate, expected[steps][2], 5e-10) << "step " << steps;
    learning_rate.Applied(LearningRateRule::kAdascale, facts[steps % 3]);
  }

  EXPECT_EQ(steps, 6u);
  EXPECT_NEAR(learning_rate.progress(), 9.48748733, 5e-9);
}

TEST(LearningRateTest, RulesMultiplyTheScheduledRate) {
  const LearningRate learning_rate({.schedule = {.base = 0.2}, .base_batch = 32});

  EXPECT_DOUBLE_EQ(learning_rate.Next(LearningRateRule::kConstant, 288).rate, 0.2);
  EXPECT_DOUBLE_EQ(learning_rate.Next(LearningRateRule::kLinear, 288).rate, 1.8);
  EXPECT_DOUBLE_EQ(learning_rate.Next(LearningRateRule::kSqrt, 288).rate, 0.6);
  EXPECT_DOUBLE_EQ(learning_rate.Next(LearningRateRule::kAdascale, 288).rate, 0.2);
}

TEST(LearningRateTest, ProgressCountsSamplesExceptUnderAdascale) {
  for (const LearningRateRule rule : kRules) {
    LearningRate learning_rate({.base_batch = 32});

    learning_rate.Applied(
        rule,
        {.samples = 48, .contributors = 2, .samples_gradient_norm2 = 96, .gradient_norm2 = 1});

    EXPECT_DOUBLE_EQ(learning_rate.progress(), rule == LearningRateRule::kAdascale ? 1 : 1.5);
  }
}

TEST(LearningRateTest, AChangeToAdascaleFindsHistory) {
  const UpdateFacts facts{
      .samples = 128, .contributors = 4, .samples_gradient_norm2 = 448, .gradient_norm2 = 2};
  for (const LearningRateRule rule : kRules) {
    LearningRate learning_rate({.base_batch = 32});

    learning_rate.Applied(rule, facts);

    EXPECT_DOUBLE_EQ(learning_rate.Next(LearningRateRule::kAdascale, 128).gain, 1.75);
  }
}

// ---- Windows of local steps

// Of four members, whose mean gradient has the squared norm 2 and one sample's the variance v.
UpdateFacts FactsOfNoise(double samples, double v) {
  const double mean2 = 2 + v / samples;
  return {.samples = samples,
          .contributors = 4,
          .samples_gradient_norm2 = samples * mean2 + 3 * v,
          .gradient_norm2 = mean2};
}

constexpr LearningRate::LocalStep kLocalStep = {.samples = 128, .contributors = 4, .own = 32};
constexpr LearningRate::Window kWindow = {.step = kLocalStep, .samples = 1280, .updates = 10};

TEST(LearningRateOfWindowsTest, AdascaleTakesWhatStepsToldUntilAWindowTells) {
  LearningRate learning_rate({.schedule = {.base = 0.1}, .base_batch = 32});
  learning_rate.Applied(LearningRateRule::kAdascale, FactsOfNoise(128, 64));

  // sigma2 = 2 = mu2: (2 + 2) / (2 / 4 + 2).
  EXPECT_DOUBLE_EQ(learning_rate.NextOfWindow(LearningRateRule::kAdascale, kLocalStep).gain, 1.6);

  learning_rate.AppliedWindow(LearningRateRule::kAdascale, kWindow, FactsOfNoise(1280, 384));

  // sigma2 = 12: 14 / 5.
  const LearningRate::Rate next =
      learning_rate.NextOfWindow(LearningRateRule::kAdascale, kLocalStep);
  EXPECT_DOUBLE_EQ(next.gain, 2.8);
  EXPECT_DOUBLE_EQ(next.rate, 0.28);
  EXPECT_DOUBLE_EQ(learning_rate.Next(LearningRateRule::kAdascale, 128).gain, 1.6)
      << "steps at common parameters keep an average of their own";
  EXPECT_DOUBLE_EQ(learning_rate.progress(), 1 + 10 * 1.6)
      << "the first update, before there was a gain, counted once";
}

// q = (1 + phi / b) / (1 + phi / B), phi = 384 / 2.
constexpr double kLength2 = (1 + 192.0 / 32) / (1 + 192.0 / 128);

TEST(LearningRateOfWindowsTest, SqrtMakesUpForTheNoiseThatAdaptiveStepsAreDividedBy) {
  LearningRate learning_rate({.schedule = {.base = 0.1}, .base_batch = 32, .bending_decay = 0.999});

  EXPECT_DOUBLE_EQ(learning_rate.NextOfWindow(LearningRateRule::kSqrt, kLocalStep).gain, 2)
      << "nothing is known";

  learning_rate.AppliedWindow(LearningRateRule::kSqrt, kWindow, FactsOfNoise(1280, 384));

  EXPECT_NEAR(learning_rate.NextOfWindow(LearningRateRule::kSqrt, kLocalStep).gain,
              2 * std::sqrt(kLength2), 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate.progress(), 40);
  EXPECT_DOUBLE_EQ(learning_rate.NextOfWindow(LearningRateRule::kConstant, kLocalStep).gain, 1);
  EXPECT_DOUBLE_EQ(learning_rate.NextOfWindow(LearningRateRule::kLinear, kLocalStep).gain, 4);
}

TEST(LearningRateOfWindowsTest, StepsAlongTheGradientAreAsLongWhateverItsNoise) {
  LearningRate learning_rate({.base_batch = 32});

  learning_rate.AppliedWindow(LearningRateRule::kSqrt, kWindow, FactsOfNoise(1280, 384));

  EXPECT_DOUBLE_EQ(learning_rate.NextOfWindow(LearningRateRule::kSqrt, kLocalStep).gain, 2);
}

// What they are divided by remembers the steps before: 0.9 of it is of the kind before after one.
TEST(LearningRateOfWindowsTest, TheRateFollowsWhatStepsAreDividedBy) {
  LearningRate learning_rate({.base_batch = 32, .bending_decay = 0.9});
  for (int step = 0; step < 1000; ++step) {
    learning_rate.Applied(LearningRateRule::kSqrt, FactsOfNoise(128, 384));
  }
  EXPECT_DOUBLE_EQ(learning_rate.Next(LearningRateRule::kSqrt, 128).gain, 2);

  const LearningRate::Window window = {.step = kLocalStep, .samples = 128, .updates = 1};
  learning_rate.AppliedWindow(LearningRateRule::kSqrt, window, FactsOfNoise(128, 384));

  const double bent = 2 * std::sqrt(0.9 + 0.1 * kLength2);
  EXPECT_NEAR(learning_rate.NextOfWindow(LearningRateRule::kSqrt, kLocalStep).gain, bent, 1e-12);
  EXPECT_NEAR(learning_rate.Next(LearningRateRule::kSqrt, 128).gain, bent, 1e-12)
      << "steps of all samples are divided by the same";

  learning_rate.Applied(LearningRateRule::kSqrt, FactsOfNoise(128, 384));
  EXPECT_NEAR(learning_rate.Next(LearningRateRule::kSqrt, 128).gain,
              2 * std::sqrt(0.9 * (0.9 + 0.1 * kLength2) + 0.1), 1e-12);
}

// As of a group that shrank to one, with what four had measured.
TEST(LearningRateOfWindowsTest, ASingleMemberHasAGainOfOne) {
  LearningRate learning_rate({.base_batch = 32});
  learning_rate.AppliedWindow(LearningRateRule::kAdascale, kWindow, FactsOfNoise(1280, 384));
  const double before = learning_rate.progress();

  const LearningRate::LocalStep step = {.samples = 128, .contributors = 1, .own = 128};
  EXPECT_DOUBLE_EQ(learning_rate.NextOfWindow(LearningRateRule::kAdascale, step).gain, 1);
  learning_rate.AppliedWindow(LearningRateRule::kAdascale,
                              {.step = step, .samples = 1280, .updates = 10}, {.contributors = 1});
  EXPECT_DOUBLE_EQ(learning_rate.progress(), before + 10);
}

TEST(LearningRateOfWindowsTest, AWindowThatTellsNothingOnlyCountsAsProgress) {
  LearningRate learning_rate({.base_batch = 32});

  learning_rate.AppliedWindow(LearningRateRule::kSqrt, kWindow, {});

  EXPECT_DOUBLE_EQ(learning_rate.progress(), 40);
  EXPECT_FALSE(learning_rate.state().windows.estimated);
}

TEST(LearningRateOfWindowsTest, TheStateGoesOnWithWhatWindowsTold) {
  LearningRate learning_rate({.base_batch = 32});
  learning_rate.AppliedWindow(LearningRateRule::kSqrt, kWindow, FactsOfNoise(1280, 384));
  LearningRate other({.base_batch = 32});

  other.Restore(learning_rate.state());

  EXPECT_EQ(other.state(), learning_rate.state());
}

TEST(LearningRateTest, AShortRoundHasAGainBelowOne) {
  LearningRate learning_rate({.base_batch = 32});
  learning_rate.Applied(
      LearningRateRule::kAdascale,
      {.samples = 128, .contributors = 4, .samples_gradient_norm2 = 448, .gradient_norm2 = 2});

  const double gain = learning_rate.Next(LearningRateRule::kAdascale, 8).gain;

  EXPECT_GT(gain, 0.25);
  EXPECT_LT(gain, 1);
}

TEST(LearningRateTest, NormsThatAreNotOfMeanGradientsOnlyCountAsProgress) {
  LearningRate learning_rate({.base_batch = 32});

  learning_rate.Applied(LearningRateRule::kConstant,
                        {.samples = 64, .contributors = 0, .samples_gradient_norm2 = 1e9});

  EXPECT_DOUBLE_EQ(learning_rate.progress(), 2);
  EXPECT_EQ(learning_rate.state().adascale.average.count, 0u);
}

TEST(LearningRateTest, ASkippedUpdateChangesNothing) {
  for (const LearningRateRule rule : kRules) {
    LearningRate learning_rate({.base_batch = 32});
    learning_rate.Applied(
        rule,
        {.samples = 64, .contributors = 2, .samples_gradient_norm2 = 128, .gradient_norm2 = 1});
    const LearningRate::State before = learning_rate.state();

    learning_rate.Applied(rule, {.samples = 64,
                                 .contributors = 2,
                                 .samples_gradient_norm2 = 128,
                                 .gradient_norm2 = std::numeric_limits<double>::quiet_NaN()});

    EXPECT_EQ(learning_rate.state(), before);
  }
}

TEST(LearningRateTest, ProgressIsReexpressedInOtherBaseSteps) {
  LearningRate before({.base_batch = 32});
  before.Applied(LearningRateRule::kLinear, {.samples = 320});
  LearningRate after({.base_batch = 64});

  after.Restore(before.state());

  EXPECT_DOUBLE_EQ(after.progress(), 5);
}

TEST(LearningRatePropertyTest, GoesOnFromAStateWithTheSameBits) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const LearningRateOptions options{
        .schedule = {.warmup_steps = 7, .shape = Schedule::Shape::kCosine, .steps = 100}};
    LearningRate whole(options);
    const auto rule = [&rng] { return kRules[rng.Below(kRules.size())]; };
    for (int i = 0; i < 10; ++i) whole.Applied(rule(), RandomFacts(rng));
    LearningRate restored(options);
    restored.Restore(whole.state());

    for (int i = 0; i < 10; ++i) {
      const LearningRateRule next = rule();
      const UpdateFacts facts = RandomFacts(rng);
      ASSERT_EQ(restored.Next(next, facts.samples).rate, whole.Next(next, facts.samples).rate)
          << "seed " << seed;
      whole.Applied(next, facts);
      restored.Applied(next, facts);
    }
    ASSERT_EQ(restored.state(), whole.state()) << "seed " << seed;
  }
}

TEST(LearningRatePropertyTest, AtTheBaseBatchEveryRuleIsTheSchedule) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    LearningRate learning_rate({.schedule = {.warmup_steps = 5}, .base_batch = 32});
    for (int step = 0; step < 10; ++step) {
      UpdateFacts facts = RandomFacts(rng);
      facts.samples = 32;
      const LearningRateRule rule = kRules[rng.Below(kRules.size())];
      ASSERT_EQ(learning_rate.progress(), step) << "seed " << seed;
      ASSERT_EQ(learning_rate.Next(rule, 32).gain, 1) << "seed " << seed;
      learning_rate.Applied(rule, facts);
    }
  }
}

TEST(ScheduledRateTest, WarmsUpLinearlyFromAFractionOfTheRate) {
  const Schedule schedule{.base = 1, .warmup_steps = 4};

  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 0), 0.2);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 0.99), 0.2);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 1), 0.4);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 3), 0.8);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 4), 1);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 1e15), 1);
}

TEST(ScheduledRateTest, StepsDownAtEachBoundary) {
  const Schedule schedule{
      .base = 1, .shape = Schedule::Shape::kStep, .boundaries = {10, 20}, .factor = 0.5};

  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 9.999), 1);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 10), 0.5);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 19.5), 0.5);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 20), 0.25);
}

TEST(ScheduledRateTest, CosineComesDownFromTheEndOfTheWarmupToTheFinalRate) {
  const Schedule schedule{.base = 1,
                          .warmup_steps = 10,
                          .shape = Schedule::Shape::kCosine,
                          .steps = 110,
                          .final_rate = 0.1};

  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 10), 1);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 60), 0.55);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 110), 0.1);
  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 1e15), 0.1);
}

TEST(ScheduledRateTest, CosineThatEndsWithinTheWarmupWarmsUpToTheBaseFirst) {
  const Schedule schedule{
      .base = 1, .warmup_steps = 10, .shape = Schedule::Shape::kCosine, .steps = 5};

  EXPECT_DOUBLE_EQ(ScheduledRate(schedule, 9), 10.0 / 11);
  EXPECT_EQ(ScheduledRate(schedule, 10), 0);
}

TEST(ScheduledRateOracleTest, CosineAgreesWithTheLibrarys) {
  const Schedule schedule{.base = 2, .shape = Schedule::Shape::kCosine, .steps = 10'000};

  for (int step = 0; step <= 10'000; ++step) {
    ASSERT_NEAR(ScheduledRate(schedule, step), 1 + std::cos(std::numbers::pi * step / 10'000),
                1e-15)
        << "step " << step;
  }
}

Schedule RandomSchedule(Rng& rng) {
  Schedule schedule{.base = 0.001 + rng.Uniform(),
                    .warmup_steps = static_cast<std::uint32_t>(rng.Below(50)),
                    .shape = static_cast<Schedule::Shape>(rng.Below(3)),
                    .boundaries = {rng.Below(50), 50 + rng.Below(50)},
                    .factor = rng.Uniform(),
                    .steps = 1 + rng.Below(100)};
  schedule.final_rate = schedule.base * rng.Uniform();
  return schedule;
}

TEST(StepOfFallPropertyTest, IsTheFirstThatASearchStepByStepFinds) {
  int fallen = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const Schedule schedule = RandomSchedule(rng);
    std::optional<std::uint64_t> first;
    for (std::uint64_t step = 200; step-- > schedule.warmup_steps;) {
      if (ScheduledRate(schedule, static_cast<double>(step)) <= schedule.base / 2) first = step;
    }

    EXPECT_EQ(StepOfFall(schedule, 0.5), first) << "seed " << seed;
    fallen += first ? 1 : 0;
  }
  EXPECT_GT(fallen, 200);
  EXPECT_LT(fallen, 800);
}

TEST(ScheduledRatePropertyTest, IsNeverNegativeAndNeverAboveTheBase) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const Schedule schedule = RandomSchedule(rng);

    for (int i = 0; i < 20; ++i) {
      const double rate = ScheduledRate(schedule, 150 * rng.Uniform());
      ASSERT_GE(rate, 0) << "seed " << seed;
      ASSERT_LE(rate, schedule.base * (1 + 1e-15)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tactus::policies
