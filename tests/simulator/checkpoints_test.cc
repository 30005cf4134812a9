// Checkpoints that simulated jobs take while they train, and what losses cost with them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/simulator/two_hosts.h"

namespace tactus::simulator {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Kind = Fault::Kind;

constexpr double kRound = 64e-3;  // seconds, of the two hosts

// Both workers die, so that nobody goes on.
Fault Crash(double at) {
  return {.kind = Kind::kWorkerCrash, .at_seconds = at, .host = "b", .device = "cpu:0"};
}

Outcome SimulateWith(const std::vector<Fault>& faults, const CheckpointModel& checkpoints) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].checkpoints = checkpoints;
  for (Fault fault : faults) {
    scenario.cluster.faults.push_back(fault);
    if (fault.kind != Kind::kWorkerCrash) continue;
    fault.host = "a";
    scenario.cluster.faults.push_back(fault);
  }
  return Simulate(std::move(scenario));
}

// Rounds that the second attempt does anew.
double LostRounds(const JobOutcome& job) {
  return static_cast<double>(job.attempts.at(0).rounds - job.attempts.at(1).first_round);
}

TEST(SimulatedCheckpointsTest, ALossCostsOneIntervalAtMost) {
  const Outcome outcome = SimulateWith(
      {Crash(10), Crash(23)}, {.every = Seconds(3), .write_seconds = 0.3, .upload_seconds = 0.3});

  const JobOutcome& job = outcome.jobs[0];
  EXPECT_EQ(job.state, job::JobState::kSucceeded);
  EXPECT_EQ(job.rounds, 500u);
  ASSERT_THAT(job.attempts, SizeIs(3));
  EXPECT_GT(job.attempts[1].first_round, 0u);
  EXPECT_GT(job.attempts[2].first_round, job.attempts[1].first_round);
  EXPECT_LE(LostRounds(job), (3 + 1) / kRound);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

// They are asked of all members for it, a round later.
TEST(SimulatedCheckpointsTest, WithResidualsALossCostsNoMore) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].checkpoints = {.every = Seconds(3), .write_seconds = 0.3, .upload_seconds = 0.3};
  scenario.jobs[0].settings.adapt.encoding_policy = "adacomp";
  for (const char* const host : {"a", "b"}) {
    Fault crash = Crash(10);
    crash.host = host;
    scenario.cluster.faults.push_back(crash);
  }
  const Outcome outcome = Simulate(std::move(scenario));

  const JobOutcome& job = outcome.jobs[0];
  EXPECT_EQ(job.state, job::JobState::kSucceeded);
  EXPECT_EQ(job.rounds, 500u);
  ASSERT_THAT(job.attempts, SizeIs(2));
  EXPECT_GT(job.attempts[1].first_round, 0u);
  EXPECT_LE(LostRounds(job), (3 + 1) / kRound + 1);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulatedCheckpointsTest, AutoTakesNoneWithinAMinute) {
  const Outcome outcome = SimulateWith({Crash(20)}, {});

  EXPECT_EQ(outcome.jobs[0].attempts.at(1).first_round, 0u);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulatedCheckpointsTest, ADamagedOneGivesWayToTheOneBeforeIt) {
  const CheckpointModel model{.every = Seconds(3)};
  const std::uint64_t newest = SimulateWith({Crash(20)}, model).jobs[0].attempts.at(1).first_round;

  const Outcome outcome =
      SimulateWith({{.kind = Kind::kCheckpointDamaged, .at_seconds = 19.9}, Crash(20)}, model);

  const JobOutcome& job = outcome.jobs[0];
  EXPECT_EQ(job.state, job::JobState::kSucceeded);
  ASSERT_THAT(job.attempts, SizeIs(3));
  EXPECT_EQ(job.attempts[1].first_round, newest);
  EXPECT_THAT(job.attempts[1].reason, HasSubstr("was given up"));
  EXPECT_GT(job.attempts[2].first_round, 0u);
  EXPECT_LT(job.attempts[2].first_round, newest);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulatedCheckpointsTest, OneThatIsNotTakenCostsTheIntervalAndNoMore) {
  const CheckpointModel model{.every = Seconds(3)};

  const Outcome outcome = SimulateWith(
      {{.kind = Kind::kUploadsRefused, .at_seconds = 10, .for_seconds = 8}, Crash(17.9), Crash(28)},
      model);

  const JobOutcome& job = outcome.jobs[0];
  EXPECT_EQ(job.state, job::JobState::kSucceeded);
  ASSERT_THAT(job.attempts, SizeIs(3));
  EXPECT_GT(LostRounds(job), 7 / kRound);
  EXPECT_GT(job.attempts[2].first_round, job.attempts[1].first_round);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(SimulatedCheckpointsTest, TheGroupStandsStillForTheCopyAlone) {
  const double without = SimulateWith({}, {}).jobs[0].train_seconds;
  const double with =
      SimulateWith({}, {.every = Seconds(4), .still_seconds = 0.5, .write_seconds = 2})
          .jobs[0]
          .train_seconds;

  // Rank 0 is on the faster host: it waits for half of a round anyway.
  EXPECT_GT(with, without + 5 * (0.5 - kRound));
  EXPECT_LT(with, without + 10 * 0.5);
}

// One that takes longer than the interval holds up the next one, and nothing else.
TEST(SimulatedCheckpointsTest, OneThatIsBeingWrittenDelaysTheNext) {
  std::vector<std::uint64_t> taken;
  Scenario scenario = TwoHosts();
  scenario.jobs[0].checkpoints = {.every = Seconds(1), .write_seconds = 5};
  scenario.on_step = [&taken](const job::Event& event, Instant, const job::Actions&) {
    const auto* said = std::get_if<job::WorkerSaid>(&event);
    const auto* message =
        said == nullptr ? nullptr : std::get_if<job::CheckpointedMessage>(&said->message);
    if (message != nullptr) taken.push_back(message->rounds);
  };

  const Outcome outcome = Simulate(std::move(scenario));

  ASSERT_GE(taken.size(), 4u);
  for (std::size_t i = 1; i < taken.size(); ++i) {
    EXPECT_GE(static_cast<double>(taken[i] - taken[i - 1]), 5 / kRound);
  }
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
}

TEST(SimulatedCheckpointsTest, ALossInTheEvaluationCostsTheEvaluationAlone) {
  for (const std::uint32_t victim : {0u, 1u}) {
    Scenario scenario = TwoHosts();
    scenario.jobs[0].conclude_seconds = 20;
    scenario.jobs[0].checkpoints = {.write_seconds = 0.3, .upload_seconds = 0.3};
    // Training takes 500 rounds of 64 ms.
    scenario.cluster.faults = {{.kind = Kind::kWorkerCrash,
                                .at_seconds = 45,
                                .host = victim == 0 ? "a" : "b",
                                .device = "cpu:0"}};

    const Outcome outcome = Simulate(std::move(scenario));

    const JobOutcome& job = outcome.jobs[0];
    EXPECT_EQ(job.state, job::JobState::kSucceeded);
    EXPECT_EQ(job.rounds, 500u);
    ASSERT_THAT(job.attempts, SizeIs(2));
    EXPECT_EQ(job.attempts[0].rounds, 500u);
    EXPECT_EQ(job.attempts[1].first_round, 500u);
    EXPECT_THAT(outcome.violations, IsEmpty());
  }
}

}  // namespace
}  // namespace tactus::simulator
