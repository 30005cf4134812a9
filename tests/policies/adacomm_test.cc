#include "policies/adacomm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace tactus::policies {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An averaging that ends an interval.
AveragingPoint EndOfInterval(double loss, double rate = 1) {
  return {.seconds = 60, .loss = loss, .rate = rate};
}

// The initial period, then that after each interval.
std::vector<std::uint32_t> Periods(Adacomm& adacomm, const std::vector<AveragingPoint>& points) {
  std::vector<std::uint32_t> periods = {adacomm.period()};
  for (const AveragingPoint& point : points) periods.push_back(adacomm.Averaged(point).period);
  return periods;
}

Adacomm FromTwenty() { return {{.period_initial = 20}, 2.30, 1}; }

// Vectors V4 of section 4.h of the specification, row by row.
TEST(AdacommPaperTest, V4BasicRuleAlone) {
  const std::vector<double> losses = {2.30, 1.61, 1.15, .92, .90, .90, .91, .5, .2};
  const std::vector<std::uint32_t> expected = {20, 17, 15, 13, 13, 13, 13, 10, 6};

  for (std::size_t i = 0; i < losses.size(); ++i) {
    const double ratio = PeriodRatio({.loss_initial = 2.30, .loss = losses[i]});
    EXPECT_EQ(CandidatePeriod(ratio, 20, 128), expected[i]) << "at " << i;
  }
}

TEST(AdacommPaperTest, V4WithFallback) {
  Adacomm adacomm = FromTwenty();
  std::vector<AveragingPoint> points;
  for (const double loss : {1.61, 1.15, .92, .90, .90, .91, .5, .2}) {
    points.push_back(EndOfInterval(loss));
  }

  EXPECT_EQ(Periods(adacomm, points), (std::vector<std::uint32_t>{20, 17, 15, 13, 7, 4, 2, 1, 1}));
}

TEST(AdacommPaperTest, V4WithLearningRate) {
  Adacomm adacomm({.period_initial = 10}, 2.30, .2);

  EXPECT_EQ(
      Periods(adacomm, {EndOfInterval(1.15, .2), EndOfInterval(.60, .2), EndOfInterval(.40, .02),
                        EndOfInterval(.20, .02), EndOfInterval(.20, .02)}),
      (std::vector<std::uint32_t>{10, 8, 6, 14, 10, 5}));
}

TEST(AdacommPaperTest, V4RawPeriodsWithLearningRate) {
  const std::vector<LossPoint> points = {
      {.loss_initial = 2.30, .loss = 2.30, .rate_initial = .2, .rate = .2},
      {.loss_initial = 2.30, .loss = 1.15, .rate_initial = .2, .rate = .2},
      {.loss_initial = 2.30, .loss = .60, .rate_initial = .2, .rate = .2},
      {.loss_initial = 2.30, .loss = .40, .rate_initial = .2, .rate = .02},
      {.loss_initial = 2.30, .loss = .20, .rate_initial = .2, .rate = .02}};
  const std::vector<double> raw = {10, 7.07106781, 5.10753918, 13.1876095, 9.32504808};
  // With tau_0 under the root as well, as in Paddle.
  const std::vector<double> misplaced = {3.16227766, 2.23606798, 1.61514571, 4.17028828,
                                         2.94883912};

  for (std::size_t i = 0; i < points.size(); ++i) {
    const double ratio = PeriodRatio(points[i]);
    EXPECT_NEAR(std::sqrt(ratio) * 10, raw[i], 5e-8) << "at " << i;
    EXPECT_NEAR(std::sqrt(ratio * 10), misplaced[i], 5e-9) << "at " << i;
    EXPECT_GT(CandidatePeriod(ratio, 10, 128), std::ceil(misplaced[i])) << "at " << i;
  }
}

TEST(AdacommPaperTest, V4LossThatIsNotANumber) {
  Adacomm adacomm({.period_initial = 20}, 2.3, 1);

  const AdacommDecision alarm = adacomm.Averaged(EndOfInterval(kNan));
  const AdacommDecision after = adacomm.Averaged(EndOfInterval(1.15));

  EXPECT_EQ(alarm.cause, AdacommCause::kBadLoss);
  EXPECT_EQ(alarm.period, 20u);
  EXPECT_EQ(after.period, 15u);
}

TEST(AdacommTest, NothingChangesWithinAnInterval) {
  Adacomm adacomm = FromTwenty();

  for (int i = 0; i < 5; ++i) {
    const AdacommDecision decision = adacomm.Averaged({.seconds = 11, .loss = 0.1});
    ASSERT_EQ(decision.cause, AdacommCause::kWaiting);
    ASSERT_EQ(decision.period, 20u);
  }
  const AdacommDecision decision = adacomm.Averaged({.seconds = 11, .loss = 1.15});

  EXPECT_EQ(decision.cause, AdacommCause::kLoss);
  EXPECT_EQ(decision.period, 15u);
  EXPECT_EQ(adacomm.state().intervals, 1u);
  EXPECT_EQ(adacomm.state().seconds, 0);
}

TEST(AdacommTest, SecondsThatAreNotPositiveDoNotCount) {
  Adacomm adacomm = FromTwenty();

  for (const double seconds : {kNan, kInfinity, -100.0, 0.0}) {
    adacomm.Averaged({.seconds = seconds, .loss = 0.1});
  }

  EXPECT_EQ(adacomm.state().seconds, 0);
  EXPECT_EQ(adacomm.period(), 20u);
}

TEST(AdacommTest, ABadLossKeepsThePeriod) {
  for (const double loss : {kNan, kInfinity, -kInfinity, -0.1}) {
    Adacomm adacomm = FromTwenty();

    EXPECT_EQ(adacomm.Averaged(EndOfInterval(loss)).cause, AdacommCause::kBadLoss) << loss;
    EXPECT_EQ(adacomm.period(), 20u) << loss;
    EXPECT_EQ(adacomm.state().intervals, 1u) << loss;
  }
}

TEST(AdacommTest, ALossAboveTheInitialOneFallsBack) {
  Adacomm adacomm = FromTwenty();

  const AdacommDecision decision = adacomm.Averaged(EndOfInterval(23));

  EXPECT_EQ(decision.cause, AdacommCause::kFallback);
  EXPECT_EQ(decision.period, 10u);
}

TEST(AdacommTest, AnInitialLossAtItsFloorMeansSynchronousSteps) {
  for (const double initial : {0.5, 0.4, kNan, kInfinity}) {
    Adacomm adacomm({.period_initial = 20, .loss_floor = 0.5}, initial, 1);

    EXPECT_EQ(adacomm.period(), 1u) << initial;
    EXPECT_EQ(adacomm.Averaged(EndOfInterval(0.6, 0.01)).cause, AdacommCause::kNoHeadroom);
    EXPECT_EQ(adacomm.period(), 1u) << initial;
  }
}

TEST(AdacommTest, PeriodStaysWithinItsBounds) {
  Adacomm adacomm({.period_initial = 20, .period_max = 30}, 2.3, 1);

  EXPECT_EQ(adacomm.Averaged(EndOfInterval(2.0, 1e-9)).period, 30u);
  EXPECT_EQ(adacomm.Averaged(EndOfInterval(0.0, 1e-8)).period, 1u);
}

TEST(AdacommTest, AStateIsFittedToASmallerLargestPeriod) {
  const Adacomm before({.period_initial = 100}, 2.3, 1);

  const Adacomm after({.period_initial = 20, .period_max = 30}, before.state());

  EXPECT_EQ(after.period(), 30u);
}

TEST(AdacommTest, ARateOfZeroIsNoChange) {
  Adacomm adacomm = FromTwenty();

  const AdacommDecision decision = adacomm.Averaged(EndOfInterval(1.15, 0));

  EXPECT_EQ(decision.cause, AdacommCause::kLoss);
  EXPECT_EQ(decision.period, 15u);
}

TEST(AdacommTest, ARateThatRisesAsInAWarmUpAsksForNoLess) {
  Adacomm adacomm({.period_initial = 20}, 2.3, 0.1 / 501);

  EXPECT_EQ(adacomm.Averaged(EndOfInterval(2.3, 0.05)).period, 20u);
  EXPECT_EQ(adacomm.Averaged(EndOfInterval(2.3 / 2, 0.1)).period, 15u);
  EXPECT_EQ(adacomm.state().rate_initial, 0.1);
  EXPECT_EQ(adacomm.Averaged(EndOfInterval(2.3 / 2, 0.01)).period, 45u);
}

TEST(AdacommTest, ALastBitOfTheRateIsNoChange) {
  Adacomm adacomm({.period_initial = 20}, 2.3, 0.1);

  EXPECT_EQ(adacomm.Averaged(EndOfInterval(2.3, std::nextafter(0.1, 0))).cause,
            AdacommCause::kFallback);
}

// The loss falls by the same share in each doubling of the time, for ever.
double PowerOfTime(double seconds) { return 2.6 * std::pow(seconds, -0.2); }

std::uint32_t PeriodAfter(double seconds, const AdacommOptions& options) {
  Adacomm adacomm(options, PowerOfTime(5), 1, 5);
  for (double now = 10; now <= seconds; now += 5) {
    adacomm.Averaged({.seconds = 5, .loss = PowerOfTime(now)});
  }
  return adacomm.period();
}

TEST(AdacommTest, ALossThatFallsAsAPowerOfTimeStandsStillAsPublishedAndNotInLogTime) {
  EXPECT_EQ(PeriodAfter(900, {.period_initial = 48}), 1u);
  // sqrt of the loss, 7200 s against 5 s: 0.48 of 48, and one of the last interval.
  EXPECT_NEAR(PeriodAfter(7200, {.period_initial = 48, .log_time = true}), 24, 1);
}

TEST(AdacommTest, ALossThatStandsStillInLogTimeFallsBackOnceAnInterval) {
  Adacomm adacomm({.period_initial = 32, .log_time = true}, 2, 1);
  std::vector<double> changes;
  std::uint32_t period = 32;
  for (double now = 5; now <= 2000; now += 5) {
    const AdacommDecision decision = adacomm.Averaged({.seconds = 5, .loss = 2});
    if (decision.period == period) continue;
    EXPECT_EQ(decision.cause, AdacommCause::kFallback);
    period = decision.period;
    changes.push_back(now);
  }

  EXPECT_EQ(period, 1u);
  ASSERT_EQ(changes.size(), 5u);
  for (std::size_t i = 1; i < changes.size(); ++i) {
    EXPECT_GE(changes[i] - changes[i - 1],
              std::max(60.0, Adacomm::kIntervalShare * changes[i] - 5));
  }
}

TEST(AdacommTest, AWindowFillsAtMostHalfAnInterval) {
  Adacomm adacomm = FromTwenty();

  // 30 s - 6 s leave 12 steps of 2 s.
  const AdacommDecision capped =
      adacomm.Averaged({.seconds = 46, .loss = 2, .step_seconds = 2, .transfer_seconds = 6});
  const AdacommDecision faster =
      adacomm.Averaged({.seconds = 1, .loss = 2, .step_seconds = 0.1, .transfer_seconds = 6});
  const AdacommDecision next =
      adacomm.Averaged({.seconds = 13, .loss = 1.15, .step_seconds = 0.1, .transfer_seconds = 6});

  EXPECT_TRUE(capped.capped);
  EXPECT_EQ(capped.period, 12u);
  EXPECT_EQ(faster.period, 12u) << "the cap rises only with an interval";
  EXPECT_FALSE(next.capped);
  EXPECT_EQ(next.cause, AdacommCause::kLoss) << "the cap did not pass for a fallback";
  EXPECT_EQ(next.period, 15u);
}

TEST(AdacommTest, ALongTransferStillLeavesAsMuchTimeForComputing) {
  Adacomm adacomm = FromTwenty();

  const AdacommDecision decision =
      adacomm.Averaged({.seconds = 50, .loss = 2, .step_seconds = 4, .transfer_seconds = 40});

  EXPECT_EQ(decision.period, 10u);
  EXPECT_TRUE(decision.capped);
}

TEST(AdacommTest, LostParametersHalveThePeriod) {
  Adacomm adacomm = FromTwenty();

  adacomm.ParametersLost();
  EXPECT_EQ(adacomm.period(), 10u);

  for (int i = 0; i < 5; ++i) adacomm.ParametersLost();
  EXPECT_EQ(adacomm.period(), 1u);
}

TEST(AdacommTest, AChangeOfMembersScalesThePeriodWithTheRootOfTheTransfer) {
  Adacomm adacomm = FromTwenty();

  adacomm.MembersChanged({.seconds_before = 4, .seconds_after = 1});
  EXPECT_EQ(adacomm.period(), 10u);
  EXPECT_EQ(adacomm.Averaged(EndOfInterval(1.15)).cause, AdacommCause::kLoss);
  EXPECT_EQ(adacomm.period(), 8u);

  adacomm.MembersChanged({.seconds_before = 1, .seconds_after = 16});
  EXPECT_EQ(adacomm.period(), 32u);
  EXPECT_EQ(adacomm.state().loss_initial, 2.30);
}

TEST(AdacommTest, AnUnknownTransferChangesNothing) {
  Adacomm adacomm = FromTwenty();
  const Adacomm::State before = adacomm.state();

  for (const double bad : {0.0, -1.0, kNan, kInfinity}) {
    adacomm.MembersChanged({.seconds_before = bad, .seconds_after = 1});
    adacomm.MembersChanged({.seconds_before = 1, .seconds_after = bad});
  }

  EXPECT_EQ(adacomm.state(), before);
}

TEST(AdacommTest, PeriodOneMeansSynchronousSteps) {
  Adacomm adacomm({.period_initial = 2}, 2.3, 1);
  EXPECT_FALSE(adacomm.Averaged({.seconds = 1, .loss = 2.3}).synchronous);

  const AdacommDecision decision = adacomm.Averaged(EndOfInterval(0.1));

  EXPECT_EQ(decision.period, 1u);
  EXPECT_TRUE(decision.synchronous);
}

// The invariants of section 4.g.
TEST(AdacommPropertyTest, PeriodNeverGrowsBetweenLearningRateChanges) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    Adacomm adacomm({.period_initial = static_cast<std::uint32_t>(1 + rng.Below(128)),
                     .fallback = 0.01 + 0.98 * rng.Uniform()},
                    0.1 + rng.Uniform(), 0.1);
    double rate = 0.1;
    for (int interval = 0; interval < 40; ++interval) {
      const bool changes = rng.Below(10) == 0;
      if (changes) rate *= 0.1 + rng.Uniform();
      const std::uint32_t before = adacomm.period();
      const std::uint32_t after = adacomm.Averaged(EndOfInterval(2 * rng.Uniform(), rate)).period;
      ASSERT_GE(after, 1u) << "seed " << seed;
      ASSERT_LE(after, 128u) << "seed " << seed;
      ASSERT_TRUE(changes || after <= before) << "seed " << seed;
    }
  }
}

TEST(AdacommPropertyTest, AfterAPlateauThePeriodFallsEachIntervalUntilOne) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const double loss = 0.1 + rng.Uniform();
    Adacomm adacomm({.period_initial = static_cast<std::uint32_t>(2 + rng.Below(127)),
                     .fallback = 0.01 + 0.98 * rng.Uniform()},
                    loss, 1);

    while (adacomm.period() > 1) {
      const std::uint32_t before = adacomm.period();
      ASSERT_EQ(adacomm.Averaged(EndOfInterval(loss)).cause, AdacommCause::kFallback);
      ASSERT_LT(adacomm.period(), before) << "seed " << seed;
    }
    ASSERT_EQ(adacomm.Averaged(EndOfInterval(loss)).period, 1u) << "seed " << seed;
  }
}

TEST(AdacommPropertyTest, HalvingReachesOneWithinTheLogarithmOfThePeriod) {
  for (std::uint32_t initial = 1; initial <= 128; ++initial) {
    Adacomm adacomm({.period_initial = initial}, 1, 1);
    const int intervals = static_cast<int>(std::ceil(std::log2(initial)));

    for (int i = 0; i < intervals; ++i) adacomm.Averaged(EndOfInterval(1));

    ASSERT_EQ(adacomm.period(), 1u) << "from " << initial;
  }
}

TEST(AdacommPropertyTest, TheUnitOfTheLossDoesNotMatter) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const double unit = std::ldexp(1.0, static_cast<int>(rng.Below(40)) - 20);
    const double initial = 0.1 + rng.Uniform();
    Adacomm plain({}, initial, 1);
    Adacomm scaled({}, unit * initial, 1);

    for (int interval = 0; interval < 20; ++interval) {
      const double loss = rng.Uniform();
      ASSERT_EQ(plain.Averaged(EndOfInterval(loss)).period,
                scaled.Averaged(EndOfInterval(unit * loss)).period)
          << "seed " << seed;
    }
  }
}

TEST(AdacommPropertyTest, TheInitialLossGivesTheInitialPeriodAndAHundredthOfTheRateTenTimes) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const double loss = 0.1 + rng.Uniform();
    const LossPoint start{.loss_initial = loss, .loss = loss};
    const LossPoint decayed{.loss_initial = loss, .loss = loss, .rate = 0.01};
    const auto initial = static_cast<double>(1 + rng.Below(100));

    ASSERT_EQ(CandidatePeriod(PeriodRatio(start), initial, 128), initial) << "seed " << seed;
    ASSERT_EQ(CandidatePeriod(PeriodRatio(decayed), initial, 100'000), 10 * initial)
        << "seed " << seed;
  }
}

TEST(AdacommPropertyTest, GoesOnFromAState) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const auto point = [&rng] {
      return AveragingPoint{.seconds = 40 * rng.Uniform(),
                            .loss = 2.3 * rng.Uniform(),
                            .rate = rng.Below(5) == 0 ? 0.1 : 1.0,
                            .step_seconds = rng.Uniform(),
                            .transfer_seconds = 5 * rng.Uniform()};
    };
    Adacomm whole({}, 2.3, 1);
    for (int i = 0; i < 7; ++i) whole.Averaged(point());
    Adacomm restored({}, whole.state());

    for (int i = 0; i < 7; ++i) {
      const AveragingPoint next = point();
      ASSERT_EQ(restored.Averaged(next).period, whole.Averaged(next).period) << "seed " << seed;
    }
    ASSERT_EQ(restored.state(), whole.state()) << "seed " << seed;
  }
}

TEST(AdacommPropertyTest, AnyNumbersLeaveAPeriodWithinItsBounds) {
  const std::vector<double> odd = {0, -1, 1e-300, 1e300, kNan, kInfinity, -kInfinity, 1};
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const auto any = [&] { return odd[rng.Below(odd.size())]; };
    Adacomm adacomm({}, any(), any());

    for (int i = 0; i < 20; ++i) {
      adacomm.Averaged({.seconds = 60,
                        .loss = any(),
                        .rate = any(),
                        .step_seconds = any(),
                        .transfer_seconds = any()});
      adacomm.MembersChanged({.seconds_before = any(), .seconds_after = any()});
      ASSERT_GE(adacomm.period(), 1u) << "seed " << seed;
      ASSERT_LE(adacomm.period(), 128u) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tactus::policies
