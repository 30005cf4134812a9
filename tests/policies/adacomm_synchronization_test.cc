#include "policies/adacomm_synchronization.h"

#include <gtest/gtest.h>

#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

// Four equal workers with steps of 0.1 s and a transfer of 0.4 s: alpha = 4.
VirtualJobOptions AlphaFour(const SynchronizationOptions& synchronization) {
  VirtualJobOptions options{.workers = std::vector<VirtualWorker>(4, {.speed = 320}),
                            .transfer_seconds = 0.4,
                            .noise = 0.03};
  options.planner.synchronization = synchronization;
  options.loss.variance = 30;
  options.loss.drift = 0.05;
  options.loss.sample_noise = 0.3;
  return options;
}

double SecondsTo(double loss, const VirtualJobOptions& options) {
  VirtualJob job(options);
  while (job.loss() > loss && job.seconds() < 5000) job.Run(1);
  return job.seconds();
}

TEST(AdacommSynchronizationTest, ThePeriodFallsWithTheLossToSynchronousSteps) {
  VirtualJob job(AlphaFour({.policy = "adacomm", .period = 20, .interval_seconds = 20}));

  job.RunUntil(400);

  std::uint32_t period = 20;
  ASSERT_GE(job.plans().size(), 4u);
  EXPECT_EQ(job.plans().front().period, 20u);
  for (const Plan& plan : job.plans()) {
    EXPECT_LE(plan.period, period);
    period = plan.period;
  }
  EXPECT_EQ(job.plan().synchronization, Synchronization::kEveryStep);
}

TEST(AdacommSynchronizationTest, ALossIsReachedInLessThanHalfTheTimeOfSynchronousSteps) {
  const double loss = 0.1;
  const double synchronous = SecondsTo(loss, AlphaFour({.policy = "every_step"}));

  const double given =
      SecondsTo(loss, AlphaFour({.policy = "adacomm", .period = 20, .interval_seconds = 60}));

  EXPECT_LT(given, synchronous / 2.5);
}

TEST(AdacommSynchronizationTest, WithoutAPeriodASearchFindsOneThatHelps) {
  const double loss = 0.05;
  const double synchronous = SecondsTo(loss, AlphaFour({.policy = "every_step"}));
  VirtualJob job(AlphaFour({.policy = "adacomm", .interval_seconds = 60}));

  while (job.loss() > loss && job.seconds() < 5000) job.Run(1);

  EXPECT_EQ(job.plans().front().synchronization, Synchronization::kEveryStep);
  EXPECT_EQ(job.DecisionsOf(Axis::kSynchronization).front().to, "periodic 50");
  EXPECT_LT(job.seconds(), 0.5 * synchronous);
}

TEST(AdacommSynchronizationTest, ThePeriodIsTheRulesOnTheMeasuredLoss) {
  Planner planner(
      {.synchronization = {.policy = "adacomm", .period = 20, .interval_seconds = 100}});
  Plan plan = planner.Start({.members = 2}).plan;
  plan.version = 1;
  std::uint64_t round = 0;
  const auto run = [&](int rounds, double loss) -> std::optional<Revision> {
    for (int i = 0; i < rounds; ++i) {
      for (const Report& report : ReportsOf(plan, round, {.loss = loss})) planner.Observe(report);
      ++round;
      if (std::optional<Revision> revision = planner.Decide(plan, {})) return revision;
    }
    return std::nullopt;
  };

  ASSERT_FALSE(run(6, 2.30).has_value());
  const std::optional<Revision> first = run(40, 1.61);

  // ceil(sqrt(1.61 / 2.30) 20) = ceil(16.73), the published rule's own numbers.
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->plan.period, 17u);
  EXPECT_EQ(first->decisions[0].from, "periodic 20");
  EXPECT_EQ(first->decisions[0].to, "periodic 17");
  EXPECT_LT(first->decisions[0].predicted_gain, 0) << "it costs time and says so";
}

TEST(AdacommSynchronizationTest, ALostRoundHalvesThePeriod) {
  Planner planner({.synchronization = {.policy = "adacomm", .period = 16}});
  Plan plan = planner.Start({.members = 2}).plan;
  plan.version = 1;
  const auto round = [&](std::uint64_t number, const RoundFacts& facts) {
    for (const Report& report : ReportsOf(plan, number, facts)) planner.Observe(report);
    return planner.Decide(plan, {});
  };
  for (std::uint64_t number = 0; number < 8; ++number) ASSERT_FALSE(round(number, {}));

  const std::optional<Revision> revision = round(8, {.nonfinite_members = 1});

  ASSERT_TRUE(revision.has_value());
  EXPECT_EQ(revision->plan.period, 8u);
}

TEST(AdacommSynchronizationTest, ANewGroupGoesOnWithThePeriodThatWasReached) {
  Planner planner({.synchronization = {.policy = "adacomm", .period = 20, .interval_seconds = 10}});
  Plan plan = planner.Start({.members = 2}).plan;
  plan.version = 1;
  std::optional<Revision> revision;
  for (std::uint64_t round = 0; round < 40 && !revision; ++round) {
    for (const Report& report : ReportsOf(plan, round, {})) planner.Observe(report);
    revision = planner.Decide(plan, {});
  }
  ASSERT_TRUE(revision.has_value());

  const Plan next = planner.Start({.members = 3}).plan;

  EXPECT_EQ(next.period, revision->plan.period);
  EXPECT_LT(next.period, 20u);
}

}  // namespace
}  // namespace tactus::policies
