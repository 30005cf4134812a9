#include "policies/round_forecast.h"

#include <gtest/gtest.h>

#include "policies/delayed_sgd.h"
#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

Observations Seen(const Plan& plan, const RoundFacts& facts) {
  Observations seen;
  seen.Start({.members = static_cast<std::uint32_t>(plan.batch_sizes.size())});
  seen.Expect(plan);
  ObserveRounds(seen, plan, {.count = 5}, facts);
  return seen;
}

TEST(RoundForecastTest, EveryStepIsTheSlowestStepAndTheTransfer) {
  const Observations seen = Seen(TwoMembers(), {.speeds = {64, 16}});

  const RoundForecast round = Forecast(TwoMembers(), seen, 0.5);

  EXPECT_NEAR(round.seconds, 2.5, 1e-9);
  EXPECT_EQ(round.updates, 1);
  EXPECT_EQ(round.samples, 64);
}

TEST(RoundForecastTest, APeriodicRoundTransfersOnceForAllItsSteps) {
  const Observations seen = Seen(TwoMembers(), {.speeds = {64, 16}});
  Plan plan = TwoMembers();
  plan.synchronization = Synchronization::kPeriodic;
  plan.period = 10;

  const RoundForecast round = Forecast(plan, seen, 0.5);

  EXPECT_NEAR(round.seconds, 20.5, 1e-9);
  EXPECT_EQ(round.updates, 10);
  EXPECT_EQ(round.samples, 64);
}

// Micro-batches of 16 that last 1, 1.5, 2 and 4 s, a transfer of 6 s.
TEST(RoundForecastTest, DelayedMembersNearlyReachTheLimitOfTheirDevices) {
  const Plan start{.version = 1, .batch_sizes = {16, 16, 16, 16}};
  const Observations seen = Seen(start, {.speeds = {16, 16 / 1.5, 8, 4}});
  Plan plan = start;
  plan.synchronization = Synchronization::kDelayed;
  plan.period = 1024;

  const RoundForecast round = Forecast(plan, seen, 6);

  EXPECT_NEAR(round.samples / round.seconds, 38.48, 0.05 * 38.48);
  EXPECT_NEAR(round.samples, 308.24, 0.05 * 308.24);
}

TEST(RoundForecastTest, TheCapOnStepsMakesDelayedMembersWait) {
  const Observations seen = Seen(TwoMembers(), {.speeds = {32, 32}});
  Plan plan = TwoMembers();
  plan.synchronization = Synchronization::kDelayed;
  plan.period = 2;

  const RoundForecast round = Forecast(plan, seen, 20);

  EXPECT_LT(round.samples, 128 + 1e-9);
  EXPECT_NEAR(round.seconds, 20, 1.5);
}

TEST(RoundForecastTest, AMemberWithoutSamplesKeepsNobodyWaiting) {
  Plan plan{.version = 1, .batch_sizes = {32, 32}};
  const Observations seen = Seen(plan, {.speeds = {32, 32}});
  plan.synchronization = Synchronization::kDelayed;
  plan.period = 64;
  plan.batch_sizes = {32, 0};

  const RoundForecast round = Forecast(plan, seen, 3);

  EXPECT_NEAR(round.samples / round.seconds, 32, 0.1 * 32);
}

// One of four is eight times as slow: members share out the steps as they come to them.
TEST(RoundForecastTest, WhereMembersFollowLeadersTheSlowHoldNobodyUp) {
  Plan plan{.version = 1, .batch_sizes = {32, 32, 32, 32, 0}};
  const Observations seen = Seen(plan, {.speeds = {32, 32, 32, 4, 1}});
  plan.synchronization = Synchronization::kLsgd;
  plan.period = 25;

  const RoundForecast round = Forecast(plan, seen, 2);

  EXPECT_NEAR(round.seconds, 32 + 2, 1e-9) << "steps of one second: 32, 32, 32, and 4 of eight";
  EXPECT_EQ(round.updates, 25);
  EXPECT_EQ(round.samples, 128);
}

// The model job is a dumb twin: it computes step by step what Forecast predicts in closed form.
TEST(RoundForecastTest, AgreesWithTheVirtualJobOnEverySynchronization) {
  const std::vector<VirtualWorker> workers = {{.speed = 90}, {.speed = 60}, {.speed = 25}};
  const RoundFacts facts{.speeds = {90, 60, 25}, .transfer_seconds = 0.7};
  for (const char* policy : {"every_step", "periodic", "delayed"}) {
    VirtualJobOptions options{.workers = workers, .transfer_seconds = 0.7};
    options.planner.batch_policy = "fixed";
    options.planner.synchronization = {.policy = policy, .period = 6};
    VirtualJob job(options);
    const Observations seen = Seen({.version = 1, .batch_sizes = {32, 32, 32}}, facts);

    job.Run(200);
    const RoundForecast round = Forecast(job.plan(), seen, 0.7);

    const double rate = round.updates * round.samples / round.seconds;
    EXPECT_NEAR(rate, job.samples() / job.seconds(), 0.04 * rate) << policy;
  }
}

}  // namespace
}  // namespace tactus::policies
