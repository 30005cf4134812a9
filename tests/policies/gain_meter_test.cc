#include "policies/gain_meter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/policies/round_reports.h"

namespace tactus::policies {
namespace {

Decision Promise(const std::string& metric) {
  return {.plan_version = 2,
          .axis = Axis::kSynchronization,
          .from = "a",
          .to = "b",
          .metric = metric,
          .reason = "because"};
}

// A group under version 1 that has run some rounds; version 2 follows.
class GainMeterTest : public testing::Test {
 protected:
  GainMeterTest() {
    seen_.Start({.members = 2});
    seen_.Expect(plan_);
  }

  void Run(int rounds, double transfer_seconds) {
    ObserveRounds(seen_, plan_, {.first = round_, .count = rounds},
                  {.transfer_seconds = transfer_seconds, .loss = 1});
    round_ += static_cast<std::uint64_t>(rounds);
    meter_.Step(seen_);
  }

  void Adopt() {
    ++plan_.version;
    seen_.Expect(plan_);
  }

  Observations seen_;
  GainMeter meter_{32};
  Plan plan_ = TwoMembers();
  std::uint64_t round_ = 0;
};

TEST_F(GainMeterTest, TheGainIsTheRateAfterOverTheRateBefore) {
  Run(20, 0.32);  // rounds of 0.64 s
  meter_.Follow({Promise("samples/s")}, seen_);
  Adopt();
  Run(30, 0.08);  // rounds of 0.4 s

  const std::vector<Decision> measured = meter_.Take();

  ASSERT_EQ(measured.size(), 1u);
  EXPECT_NEAR(measured[0].measured_gain.value_or(0), 0.64 / 0.4 - 1, 1e-9);
  EXPECT_EQ(measured[0].reason, "because");
  EXPECT_TRUE(meter_.Take().empty()) << "taken once";
}

TEST_F(GainMeterTest, TheFirstRoundUnderAPlanIsNotMeasured) {
  Run(20, 0.32);
  meter_.Follow({Promise("samples/s")}, seen_);
  Adopt();
  Run(1, 100);
  Run(20, 0.32);

  const std::vector<Decision> measured = meter_.Take();

  ASSERT_EQ(measured.size(), 1u);
  EXPECT_NEAR(measured[0].measured_gain.value_or(1), 0, 1e-9);
}

TEST_F(GainMeterTest, TenSecondsAreEnoughHoweverShortTheRounds) {
  Run(5, 0.0);
  meter_.Follow({Promise("samples/s")}, seen_);
  Adopt();
  Run(1 + 31, 0.0);  // rounds of 0.32 s
  EXPECT_TRUE(meter_.Take().empty());
  Run(1, 0.0);

  EXPECT_EQ(meter_.Take().size(), 1u);
}

TEST_F(GainMeterTest, OfLongRoundsThreeAreMeasured) {
  Run(5, 30);
  meter_.Follow({Promise("samples/s")}, seen_);
  Adopt();
  Run(3, 30);
  EXPECT_TRUE(meter_.Take().empty());
  Run(1, 30);

  EXPECT_EQ(meter_.Take().size(), 1u);
}

TEST_F(GainMeterTest, APlanThatGaveWayAfterTwoSecondsIsMeasuredByWhatThereIs) {
  Run(20, 0.32);
  meter_.Follow({Promise("samples/s")}, seen_);
  Adopt();
  Run(1 + 5, 0.08);  // 2 s and one round
  EXPECT_TRUE(meter_.Take().empty());
  meter_.Follow({}, seen_);

  const std::vector<Decision> measured = meter_.Take();

  ASSERT_EQ(measured.size(), 1u);
  EXPECT_NEAR(measured[0].measured_gain.value_or(0), 0.64 / 0.4 - 1, 1e-9);
}

TEST_F(GainMeterTest, APlanThatGaveWayTooEarlyIsNeverMeasured) {
  Run(20, 0.1);
  meter_.Follow({Promise("samples/s")}, seen_);
  Adopt();
  Run(1 + 4, 0.08);
  meter_.Follow({}, seen_);
  Adopt();
  Run(50, 0.1);

  EXPECT_TRUE(meter_.Take().empty());
}

// The rounds before are not kept for ten seconds then.
TEST_F(GainMeterTest, OfVeryShortRoundsSoManyAreMeasuredAsAreKept) {
  // Steps of 0.32 s are shortened with the batch.
  plan_.batch_sizes = {1, 1};
  seen_.Expect(plan_);
  Run(600, 0);
  meter_.Follow({Promise("samples/s")}, seen_);
  Adopt();
  Run(GainMeter::kRoundsMax, 0);
  EXPECT_TRUE(meter_.Take().empty());
  Run(1, 0);

  const std::vector<Decision> measured = meter_.Take();

  ASSERT_EQ(measured.size(), 1u);
  EXPECT_NEAR(measured[0].measured_gain.value_or(1), 0, 1e-9);
}

// What a round would have taken with the shares before it, whatever it was before.
TEST_F(GainMeterTest, SharesAreMeasuredWithinTheRoundsAfterThem) {
  Run(20, 0.32);
  Decision promise = Promise("samples/s");
  promise.axis = Axis::kBatch;
  meter_.Follow({promise}, seen_);
  const std::vector<std::uint32_t> before = plan_.batch_sizes;
  plan_.batch_sizes = {before[0] + before[0] / 2, before[1] - before[0] / 2};
  Adopt();
  Run(40, 0.08);

  const std::vector<Decision> measured = meter_.Take();

  ASSERT_EQ(measured.size(), 1u);
  const Observations::Range range = seen_.Find({.first = 2, .end = 3, .leave_out = 1});
  const WholeRound& round = seen_.rounds()[range.from];
  EXPECT_GT(round.compute_seconds_before, 0);
  EXPECT_NE(round.compute_seconds_before, round.compute_seconds);
  EXPECT_NEAR(measured[0].measured_gain.value_or(0),
              (round.compute_seconds_before - round.compute_seconds) / round.seconds, 1e-9);
}

TEST_F(GainMeterTest, WhatPromisesNothingIsNotMeasured) {
  Run(20, 0.1);
  meter_.Follow({Promise("")}, seen_);
  Adopt();
  Run(50, 0.1);

  EXPECT_TRUE(meter_.Take().empty());
}

TEST_F(GainMeterTest, UsefulSamplesCountThePartOfALargerBatchThatTeaches) {
  Run(20, 0.32);
  meter_.Follow({Promise("useful samples/s")}, seen_);
  plan_.batch_sizes = {64, 64};
  Adopt();
  Run(20, 0.32);  // twice the samples in 0.96 s instead of 0.64 s

  const std::vector<Decision> measured = meter_.Take();

  // At the constant rate and a noise scale of 100: r(64) = 1.61, r(128) = 2.32; q = 2 - 1/r.
  ASSERT_EQ(measured.size(), 1u);
  const double before = 2 - 1 / (2 * 132.0 / 164);
  const double after = 2 - 1 / (4 * 132.0 / 228);
  EXPECT_NEAR(measured[0].measured_gain.value_or(0), after / 0.96 / (before / 0.64) - 1, 1e-6);
}

TEST_F(GainMeterTest, AFallOfTheLossIsMeasuredAgainstTheFallBefore) {
  const auto falling = [&](int rounds, double power) {
    for (int i = 0; i < rounds; ++i) {
      const double loss = std::pow(seen_.seconds() + 0.42, -power);
      ObserveRounds(seen_, plan_, {.first = round_++}, {.transfer_seconds = 0.1, .loss = loss});
    }
    meter_.Step(seen_);
  };
  falling(20, 0.4);
  meter_.Follow({Promise("loss")}, seen_);
  Adopt();
  falling(30, 0.6);

  const std::vector<Decision> measured = meter_.Take();

  ASSERT_EQ(measured.size(), 1u);
  EXPECT_NEAR(measured[0].measured_gain.value_or(0), 0.5, 1e-6);
}

TEST_F(GainMeterTest, AGroupThatEndedIsForgotten) {
  Run(20, 0.1);
  meter_.Follow({Promise("samples/s")}, seen_);
  meter_.Forget();
  Adopt();
  Run(50, 0.1);

  EXPECT_TRUE(meter_.Take().empty());
}

}  // namespace
}  // namespace tactus::policies
