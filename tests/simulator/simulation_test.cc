// Whole simulations: what a fault does to a job, and that equal scenarios give equal outcomes.

#include "simulator/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "simulator/random_scenario.h"
#include "tests/simulator/two_hosts.h"

namespace tactus::simulator {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Outcome SimulateWith(const Fault& fault) {
  Scenario scenario = TwoHosts();
  scenario.cluster.faults.push_back(fault);
  return Simulate(std::move(scenario));
}

TEST(SimulationTest, ARoundTakesWhatTheSlowestTakes) {
  const Outcome outcome = Simulate(TwoHosts());

  ASSERT_EQ(outcome.jobs.size(), 1u);
  const JobOutcome& job = outcome.jobs[0];
  EXPECT_EQ(job.state, job::JobState::kSucceeded);
  EXPECT_EQ(job.reason, "500 rounds completed");
  EXPECT_EQ(job.name, "twins-1");
  EXPECT_EQ(job.samples, 32'000u);
  // 64 ms and a reduction of a hundred bytes: two latencies of 50 us.
  EXPECT_NEAR(job.train_seconds, 500 * 0.0641, 500 * 0.0001);
  EXPECT_NEAR(job.utilisation, 1000 / 1500.0, 0.01);
  EXPECT_NEAR(job.workers.at(0).wait_seconds, 500 * 0.032, 0.1);
  EXPECT_EQ(outcome.violations_total, 0u);
}

// A million parameters of two members are 4 MB a round out of each host, whatever buffer of the
// engine they leave in.
TEST(SimulationTest, WhatIsCombinedWeighsTheModelInEveryKindOfRound) {
  for (const char* const policy : {"every_step", "delayed", "periodic"}) {
    Scenario scenario = TwoHosts();
    scenario.jobs[0].parameters = 1'000'000;
    scenario.jobs[0].engine.stop.rounds = 100;
    scenario.jobs[0].settings.adapt.synchronization = {.policy = policy, .period = 2};

    const Outcome outcome = Simulate(std::move(scenario));

    EXPECT_NEAR(outcome.jobs[0].bytes, 100 * 2 * 4e6, 2e7) << policy;
    EXPECT_THAT(outcome.violations, IsEmpty());
  }
}

TEST(SimulationTest, ProportionalSharesUseWhatFixedOnesWaste) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].settings.adapt.batch_policy = "proportional";
  scenario.jobs[0].tries_out = false;  // so that shares change once speeds are measured

  const JobOutcome job = Simulate(std::move(scenario)).jobs[0];

  EXPECT_GT(job.samples_per_second, 1400);
  EXPECT_GE(job.decisions_total, 2u);
  ASSERT_GE(job.decisions.size(), 2u);
  EXPECT_GT(job.decisions[1].adopted_round.value_or(0), 0u);
}

TEST(SimulationTest, SharesFollowTheSpeedsThatWereTriedOutFromTheFirstRoundOn) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].settings.adapt.batch_policy = "proportional";

  const JobOutcome job = Simulate(std::move(scenario)).jobs[0];

  EXPECT_GT(job.utilisation, 0.99);
  EXPECT_THAT(job.decisions.at(0).plan.reason, HasSubstr("tried out"));
}

TEST(SimulationTest, CrashedWorkersCostWhatIsNewerThanTheCheckpointAndNotTheJob) {
  const JobOutcome undisturbed = Simulate(TwoHosts()).jobs[0];

  Scenario scenario = TwoHosts();
  for (const char* host : {"b", "a"}) {
    scenario.cluster.faults.push_back(
        {.kind = Fault::Kind::kWorkerCrash, .at_seconds = 10, .host = host, .device = "cpu:0"});
  }
  const Outcome outcome = Simulate(std::move(scenario));

  const JobOutcome& job = outcome.jobs[0];
  EXPECT_EQ(job.state, job::JobState::kSucceeded);
  ASSERT_EQ(job.attempts.size(), 2u);
  EXPECT_THAT(job.attempts[0].reason, HasSubstr("worker 2 on node b was ended by signal 9"));
  EXPECT_GT(job.attempts[0].rounds, 0u);
  EXPECT_EQ(job.attempts[1].first_round, 0u) << "there was no checkpoint";
  EXPECT_EQ(job.rounds, undisturbed.rounds);
  EXPECT_EQ(job.samples, undisturbed.samples);
  EXPECT_EQ(job.curve.size(), undisturbed.curve.size()) << "rounds that were lost are not on it";
  EXPECT_EQ(job.train_loss, undisturbed.train_loss) << "the same rounds, done again";
  EXPECT_EQ(outcome.faults, 2u);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

// Where workers survive it: one alone takes a checkpoint, as the job needs two.
TEST(SimulationTest, AWorkerThatSurvivesTheOthersCrashLosesNoRound) {
  bool survived = false;
  Scenario scenario = TwoHosts();
  scenario.cluster.faults = {
      {.kind = Fault::Kind::kWorkerCrash, .at_seconds = 10, .host = "b", .device = "cpu:0"}};
  scenario.on_step = [&survived](const job::Event& event, Instant, const job::Actions&) {
    const auto* said = std::get_if<job::WorkerSaid>(&event);
    survived |= said != nullptr && std::holds_alternative<job::GroupLostMessage>(said->message);
  };

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_EQ(outcome.jobs[0].attempts.size(), survived ? 1u : 2u);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

// Windows of local steps go on in the next group: the round after the loss has computed for longer
// than it is away from it.
TEST(SimulationTest, ALostWorkerCostsTheOthersNoLocalSteps) {
  Scenario scenario = TwoHosts();
  scenario.cluster.hosts.push_back(
      {.name = "c", .devices = {{.name = "cpu:0", .sample_seconds = 1e-3}}});
  scenario.jobs[0].settings.workers_max = 3;
  scenario.jobs[0].settings.adapt.synchronization = {.policy = "periodic", .period = 50};
  scenario.jobs[0].engine.stop.rounds = 20;
  scenario.cluster.faults = {
      {.kind = Fault::Kind::kWorkerCrash, .at_seconds = 16, .host = "c", .device = "cpu:0"}};
  std::optional<Instant> lost;
  std::optional<double> since;  // the loss, at the next round's end [s]
  job::RoundRecord next;
  scenario.on_step = [&](const job::Event& event, Instant now, const job::Actions& actions) {
    const auto* said = std::get_if<job::WorkerSaid>(&event);
    const auto* left =
        said == nullptr ? nullptr : std::get_if<job::GroupLostMessage>(&said->message);
    if (left != nullptr && !left->planned && !lost) lost = now;
    for (const job::Action& action : actions) {
      const auto* round = std::get_if<job::PersistRound>(&action);
      if (round == nullptr || !lost || since) continue;
      since = ToSeconds(now - *lost);
      next = round->round;
    }
  };

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_EQ(outcome.jobs[0].attempts.size(), 1u);
  ASSERT_TRUE(since.has_value());
  ASSERT_EQ(next.worker_samples.size(), 2u);
  EXPECT_EQ(next.worker_samples[1], 50u * 32);
  EXPECT_GT(next.worker_compute_seconds[1], *since);
  EXPECT_GT(next.seconds, *since);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, APauseCostsItsTimeAndNothingElse) {
  const double undisturbed = Simulate(TwoHosts()).jobs[0].train_seconds;

  const Outcome outcome = SimulateWith({.kind = Fault::Kind::kPause,
                                        .at_seconds = 10,
                                        .for_seconds = 5,
                                        .host = "a",
                                        .device = "cpu:0"});

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  // It may have waited for the slower one for up to 32 ms when the pause began.
  EXPECT_NEAR(outcome.jobs[0].train_seconds, undisturbed + 5, 0.064);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, ASlowDownIsAnsweredByANewPlan) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].settings.adapt.batch_policy = "proportional";
  scenario.jobs[0].tries_out = false;  // so that shares change once speeds are measured
  scenario.cluster.faults.push_back({.kind = Fault::Kind::kSlowDown,
                                     .at_seconds = 10,
                                     .for_seconds = 1000,
                                     .host = "a",
                                     .device = "cpu:0",
                                     .factor = 4});

  const Outcome outcome = Simulate(std::move(scenario));

  const JobOutcome& job = outcome.jobs[0];
  EXPECT_LT(job.decisions.back().plan.batch_sizes.at(0), 32u);
  EXPECT_GT(job.decisions.back().seconds, 10);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, TrainingGoesOnWithoutACoordinator) {
  const double undisturbed = Simulate(TwoHosts()).jobs[0].train_seconds;

  const Outcome outcome =
      SimulateWith({.kind = Fault::Kind::kCoordinatorCrash, .at_seconds = 10, .for_seconds = 15});

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_NEAR(outcome.jobs[0].train_seconds, undisturbed, 1e-6);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, AnAgentThatIsUnheardForLongKeepsItsWorkers) {
  const double undisturbed = Simulate(TwoHosts()).jobs[0].train_seconds;

  const Outcome outcome = SimulateWith({.kind = Fault::Kind::kPartition,
                                        .at_seconds = 5,
                                        .for_seconds = 3000,
                                        .host = "b",
                                        .peer = "coordinator"});

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_NEAR(outcome.jobs[0].train_seconds, undisturbed, 0.1);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, ACoordinatorThatHearsNobodyForLongLosesNothing) {
  Scenario scenario = TwoHosts();
  for (const char* host : {"a", "b"}) {
    scenario.cluster.faults.push_back({.kind = Fault::Kind::kPartition,
                                       .at_seconds = 5,
                                       .for_seconds = 3000,
                                       .host = host,
                                       .peer = "coordinator"});
  }

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, ACoordinatorWithTheWrongStoreStopsNobody) {
  const double undisturbed = Simulate(TwoHosts()).jobs[0].train_seconds;

  const Outcome outcome =
      SimulateWith({.kind = Fault::Kind::kWrongStore, .at_seconds = 5, .for_seconds = 600});

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_NEAR(outcome.jobs[0].train_seconds, undisturbed, 0.1);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, AHostThatIsDeadIsLostWhenNobodyTellsOfANewRound) {
  Scenario scenario = TwoHosts();
  scenario.seconds_max = 120;
  scenario.cluster.faults.push_back(
      {.kind = Fault::Kind::kPartition, .at_seconds = 5, .host = "b", .peer = "coordinator"});
  for (const bool back : {false, true}) {
    scenario.cluster.faults.push_back({.kind = Fault::Kind::kPartition,
                                       .at_seconds = 5,
                                       .host = back ? "a" : "b",
                                       .peer = back ? "b" : "a"});
  }

  const Outcome outcome = Simulate(std::move(scenario));

  ASSERT_FALSE(outcome.jobs[0].attempts.empty());
  EXPECT_THAT(outcome.jobs[0].attempts[0].reason, HasSubstr("node b was lost"));
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, APartitionBetweenHostsDelaysARound) {
  const double undisturbed = Simulate(TwoHosts()).jobs[0].train_seconds;

  const Outcome outcome = SimulateWith({.kind = Fault::Kind::kPartition,
                                        .at_seconds = 10,
                                        .for_seconds = 7,
                                        .host = "a",
                                        .peer = "b",
                                        .one_way = true});

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_NEAR(outcome.jobs[0].train_seconds, undisturbed + 7, 0.1);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, AFullDiskHoldsUpWhatMustBeDurableAndNoRound) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].settings.adapt.batch_policy = "proportional";
  scenario.jobs[0].tries_out = false;  // so that shares change once speeds are measured
  // Plans are persisted before they are sent, so none comes before the disk has room.
  scenario.cluster.faults.push_back(
      {.kind = Fault::Kind::kDiskFull, .at_seconds = 1.2, .for_seconds = 10});

  const Outcome outcome = Simulate(std::move(scenario));

  const JobOutcome& job = outcome.jobs[0];
  EXPECT_EQ(job.state, job::JobState::kSucceeded);
  EXPECT_GT(job.decisions.at(1).adopted_round.value_or(0), 100u);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, AMicroBatchThatDoesNotFitFailsTheJob) {
  Scenario scenario = TwoHosts();
  scenario.cluster.hosts[1].devices[0].samples_max = 31;

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_THAT(outcome.jobs[0].reason,
              HasSubstr("worker 2 on node b: out of memory: a micro-batch of 32 samples, 31 fit"));
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulationTest, AnotherJobWaitsInTheQueue) {
  Scenario scenario = TwoHosts();
  scenario.jobs.push_back(std::move(TwoHosts().jobs[0]));

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.jobs.at(1).state, job::JobState::kSucceeded);
  EXPECT_GT(outcome.jobs[1].queued_seconds, outcome.jobs[0].train_seconds);
}

// Not the seed's noise alone: everything, down to the trace.
TEST(SimulationTest, EqualScenariosGiveEqualOutcomes) {
  const auto run = [](std::uint64_t seed) {
    Scenario scenario = RandomScenario(seed);
    scenario.trace = true;
    return Simulate(std::move(scenario));
  };
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Outcome first = run(seed);
    const Outcome second = run(seed);

    EXPECT_EQ(first.seconds, second.seconds);
    EXPECT_EQ(first.events, second.events);
    ASSERT_EQ(first.jobs.size(), second.jobs.size());
    for (std::size_t i = 0; i < first.jobs.size(); ++i) {
      EXPECT_EQ(first.jobs[i].train_loss, second.jobs[i].train_loss) << seed;
      EXPECT_EQ(first.jobs[i].reason, second.jobs[i].reason) << seed;
    }
    ASSERT_EQ(first.trace.spans.size(), second.trace.spans.size());
    for (std::size_t i = 0; i < first.trace.spans.size(); ++i) {
      EXPECT_EQ(first.trace.spans[i].start_seconds, second.trace.spans[i].start_seconds);
    }
  }
}

TEST(SimulationTest, ATimeLimitSaysWhatIsNotOver) {
  Scenario scenario = TwoHosts();
  scenario.seconds_max = 5;

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(outcome.violations_total, 0u);
  EXPECT_THAT(outcome.unfinished, HasSubstr("twins-1 (training on 2 workers)"));
}

}  // namespace
}  // namespace tactus::simulator
