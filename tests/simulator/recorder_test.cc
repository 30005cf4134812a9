// What an outcome says of a job, with and without trouble on the way.

#include "simulator/recorder.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "simulator/noisy_quadratic.h"
#include "simulator/random_scenario.h"
#include "simulator/simulation.h"

namespace tactus::simulator {
namespace {

// What the recorder kept of the decisions of one job.
std::vector<policies::Decision> Recorded(const std::vector<policies::Decision>& persisted) {
  Recorder recorder(false);
  for (const policies::Decision& decision : persisted) {
    recorder.OnActions({job::PersistDecision{.job = {1}, .decision = decision}}, Instant{});
  }
  return recorder.TakeJobs().at(0).records;
}

TEST(RecorderTest, ADecisionIsKeptInItsNewestFormByPlanAndAxis) {
  using policies::Axis;
  const policies::Decision batch = {.plan_version = 2, .axis = Axis::kBatch, .to = "8 + 8"};
  const policies::Decision when = {
      .plan_version = 2, .axis = Axis::kSynchronization, .to = "delayed"};
  const policies::Decision later = {.plan_version = 3, .axis = Axis::kBatch, .to = "4 + 12"};
  policies::Decision measured = when;
  measured.measured_gain = 0.5;

  EXPECT_EQ(Recorded({when, later, batch, measured}),
            (std::vector<policies::Decision>{batch, measured, later}));
}

Scenario Twins(std::uint64_t rounds) {
  Scenario scenario;
  for (int i = 0; i < 2; ++i) {
    scenario.cluster.hosts.push_back(
        {.name = i == 0 ? "a" : "b",
         .devices = {{.name = "cpu:0", .batch_seconds = 0.02, .sample_seconds = 1e-3 * (1 + i)}}});
  }
  SimulatedJob job{.learner = std::make_unique<NoisyQuadratic>(NoisyQuadraticOptions{})};
  job.settings.workers_min = 2;
  job.engine.stop.rounds = rounds;
  scenario.jobs.push_back(std::move(job));
  return scenario;
}

TEST(RecorderTest, TheCurveMissesNoRoundWhenTheCoordinatorDoes) {
  Scenario scenario = Twins(300);
  for (const double at : {3.0, 7.0, 12.0}) {
    scenario.cluster.faults.push_back(
        {.kind = Fault::Kind::kCoordinatorCrash, .at_seconds = at, .for_seconds = 2});
  }

  const JobOutcome job = Simulate(std::move(scenario)).jobs.at(0);

  ASSERT_EQ(job.curve.size(), 300u);
  EXPECT_EQ(job.curve.back().samples, job.samples);
  EXPECT_EQ(job.samples, 300u * 64);
  EXPECT_NEAR(job.curve.back().seconds, job.train_seconds, 1e-6);
}

TEST(RecorderTest, TheFirstPlanIsAdoptedInRoundZeroAndLaterOnesWhenTheyHold) {
  const JobOutcome job = Simulate(Twins(300)).jobs.at(0);

  ASSERT_GE(job.decisions.size(), 2u);
  EXPECT_EQ(job.decisions[0].adopted_round, 0u);
  ASSERT_TRUE(job.decisions[1].adopted_round.has_value());
  EXPECT_GT(job.decisions[1].adopted_round, 5u);
  for (const CurvePoint& point : job.curve) {
    const bool later = point.round >= job.decisions[1].adopted_round;
    EXPECT_EQ(point.plan_version >= job.decisions[1].plan.version, later) << point.round;
  }
}

TEST(RecorderTest, UtilisationIsAShareWhateverTheDevicesAndFaults) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    for (const JobOutcome& job : Simulate(RandomScenario(seed)).jobs) {
      EXPECT_GE(job.utilisation, 0) << seed;
      // Rounding of times to nanoseconds.
      EXPECT_LE(job.utilisation, 1 + 1e-6) << seed;
    }
  }
}

TEST(RecorderTest, AWorkersTimesAddUpToTheTraining) {
  const JobOutcome job = Simulate(Twins(300)).jobs.at(0);

  for (const WorkerOutcome& worker : job.workers) {
    EXPECT_NEAR(worker.compute_seconds + worker.wait_seconds + worker.transfer_seconds,
                job.train_seconds, 1e-3);
  }
}

TEST(RecorderTest, TheLossOnValidationSamplesIsSeenAtTheFirstEdgesThatAreFarEnoughApart) {
  Scenario scenario = Twins(300);
  scenario.jobs[0].validate_every = Seconds(1);

  const JobOutcome job = Simulate(std::move(scenario)).jobs.at(0);

  ASSERT_GE(job.validation.size(), 5u);
  EXPECT_EQ(job.validation[0].rounds, 0u);
  EXPECT_EQ(job.validation[0].seconds, 0);
  EXPECT_GT(job.validation[0].loss, job.validation.back().loss);
  for (std::size_t i = 1; i < job.validation.size(); ++i) {
    const ValidationPoint& point = job.validation[i];
    const CurvePoint& round = job.curve.at(point.rounds - 1);
    EXPECT_EQ(point.seconds, round.seconds);
    EXPECT_EQ(point.samples, round.samples);
    EXPECT_GE(point.seconds, job.validation[i - 1].seconds + 1);
    // The round before would have been too early.
    EXPECT_LT(job.curve.at(point.rounds - 2).seconds, job.validation[i - 1].seconds + 1);
  }
}

TEST(RecorderTest, TheLastSeenLossIsThatOfTheResult) {
  Scenario scenario = Twins(300);
  scenario.jobs[0].validate_every = Seconds(1e-6);
  scenario.jobs[0].settings.adapt.synchronization.policy = "periodic";
  scenario.jobs[0].settings.adapt.synchronization.period = 7;

  const JobOutcome job = Simulate(std::move(scenario)).jobs.at(0);

  ASSERT_EQ(job.validation.size(), 301u);
  EXPECT_EQ(job.validation.back().loss, job.validation_loss);
}

TEST(RecorderTest, LookingAtTheLossChangesNothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Outcome blind = Simulate(RandomScenario(seed));
    Scenario scenario = RandomScenario(seed);
    for (SimulatedJob& job : scenario.jobs) job.validate_every = Seconds(0.5);
    const Outcome seen = Simulate(std::move(scenario));

    EXPECT_EQ(blind.seconds, seen.seconds) << seed;
    EXPECT_EQ(blind.events, seen.events) << seed;
    for (std::size_t i = 0; i < blind.jobs.size(); ++i) {
      EXPECT_EQ(blind.jobs[i].train_loss, seen.jobs[i].train_loss) << seed;
      EXPECT_EQ(blind.jobs[i].reason, seen.jobs[i].reason) << seed;
    }
  }
}

// Nobody holds their mean before the end, which is what the result is of.
TEST(RecorderTest, OfMembersThatDifferTheLossOfTheirMeanIsSeen) {
  const auto scenario = [](bool seen) {
    Scenario of = Twins(300);
    of.jobs[0].settings.adapt.synchronization.policy = "lsgd";
    of.jobs[0].settings.adapt.synchronization.period = 7;
    if (seen) of.jobs[0].validate_every = Seconds(1e-6);
    return of;
  };

  const Outcome seen = Simulate(scenario(true));
  const Outcome blind = Simulate(scenario(false));

  const JobOutcome& job = seen.jobs.at(0);
  ASSERT_EQ(job.validation.size(), 301u);
  EXPECT_EQ(job.validation.back().loss, job.validation_loss);
  EXPECT_LT(job.validation[150].loss, job.validation.front().loss);
  EXPECT_EQ(blind.seconds, seen.seconds);
  EXPECT_EQ(blind.events, seen.events);
  EXPECT_EQ(blind.jobs[0].validation_loss, job.validation_loss);
}

TEST(RecorderTest, WhatARoundThatIsLostHadTaughtIsNotInTheLosses) {
  Scenario scenario = Twins(300);
  scenario.jobs[0].validate_every = Seconds(0.1);
  scenario.jobs[0].checkpoints.every = Seconds(3);
  for (const char* host : {"a", "b"}) {
    scenario.cluster.faults.push_back({.at_seconds = 10, .host = host, .device = "cpu:0"});
  }

  const JobOutcome job = Simulate(std::move(scenario)).jobs.at(0);

  ASSERT_EQ(job.attempts.size(), 2u);
  for (std::size_t i = 1; i < job.validation.size(); ++i) {
    EXPECT_GE(job.validation[i].rounds, job.validation[i - 1].rounds);
    EXPECT_GE(job.validation[i].samples, job.validation[i - 1].samples);
  }
}

TEST(RecorderTest, SecondsToLossIsTheFirstRoundAtOrBelow) {
  JobOutcome job;
  for (std::uint64_t round = 0; round < 40; ++round) {
    job.curve.push_back({.round = round,
                         .seconds = 1.0 + static_cast<double>(round),
                         .loss_smoothed = 40.0 - static_cast<double>(round),
                         .smoothed_over_all = round >= 19});
  }

  EXPECT_EQ(SecondsToLoss(job, 10.5), 31.0);
  EXPECT_EQ(SecondsToLoss(job, 0.5), std::nullopt);
  // A stop condition looks at 20 steps at least.
  EXPECT_EQ(SecondsToLoss(job, 39), 20.0);
}

}  // namespace
}  // namespace tactus::simulator
