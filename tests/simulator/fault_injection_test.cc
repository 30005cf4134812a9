// Faults that overlap, never end or hit somebody who is down already, in whole simulations.

#include "simulator/fault_injection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/simulator/two_hosts.h"

namespace tactus::simulator {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using Kind = Fault::Kind;

Outcome SimulateWith(std::vector<Fault> faults, Scenario scenario = TwoHosts()) {
  scenario.cluster.faults = std::move(faults);
  return Simulate(std::move(scenario));
}

Fault PartitionFromCoordinator(double at, double seconds) {
  return {.kind = Kind::kPartition,
          .at_seconds = at,
          .for_seconds = seconds,
          .host = "b",
          .peer = kCoordinatorPeer};
}

Fault AgentCrash(double at, double seconds) {
  return {.kind = Kind::kAgentCrash, .at_seconds = at, .for_seconds = seconds, .host = "b"};
}

Fault Pause(double at, double seconds) {
  return {.kind = Kind::kPause,
          .at_seconds = at,
          .for_seconds = seconds,
          .host = "b",
          .device = "cpu:0"};
}

Fault WorkerCrash(double at) {
  return {.kind = Kind::kWorkerCrash, .at_seconds = at, .host = "b", .device = "cpu:0"};
}

// The pauses on the trace of the simulation.
std::vector<TraceSpan> PausesOf(std::vector<Fault> faults) {
  Scenario scenario = TwoHosts();
  scenario.trace = true;
  Outcome outcome = SimulateWith(std::move(faults), std::move(scenario));
  EXPECT_THAT(outcome.violations, IsEmpty());
  std::erase_if(outcome.trace.spans,
                [](const TraceSpan& span) { return span.kind != TraceSpan::Kind::kPause; });
  return outcome.trace.spans;
}

void ExpectOnePause(const std::vector<Fault>& faults, double start, double seconds) {
  const std::vector<TraceSpan> pauses = PausesOf(faults);

  ASSERT_EQ(pauses.size(), 1u);
  EXPECT_DOUBLE_EQ(pauses[0].start_seconds, start);
  EXPECT_NEAR(pauses[0].seconds, seconds, 1e-9);
}

class EndlessPartitionTest : public testing::TestWithParam<Algorithm> {};

// The group, or, where workers survive it, the next one that needs the link.
TEST_P(EndlessPartitionTest, LosesTheJobsGroupWhenTheLinkHadTimeToHeal) {
  for (const bool one_way : {true, false}) {
    Scenario scenario = TwoHosts();
    scenario.cluster.algorithm = GetParam();
    scenario.jobs[0].settings.retries = 0;

    const Outcome outcome = SimulateWith({{.kind = Kind::kPartition,
                                           .at_seconds = 10,
                                           .host = "a",
                                           .peer = "b",
                                           .one_way = one_way}},
                                         std::move(scenario));

    EXPECT_EQ(outcome.jobs[0].state, job::JobState::kFailed);
    const std::string& reason = outcome.jobs[0].reason;
    const bool survived = reason.find("finished no round") != std::string::npos;
    if (!survived) {
      EXPECT_THAT(reason, HasSubstr("wait for one another, and nothing comes through"));
    }
    // The round under way when it began, 15 minutes, 10 more to start in vain, and the end.
    EXPECT_GT(outcome.seconds, survived ? 1510 : 910);
    EXPECT_LT(outcome.seconds, survived ? 1540 : 940);
    EXPECT_THAT(outcome.violations, IsEmpty());
  }
}

// Of two hosts that lose each other.
struct Cut {
  Outcome outcome{};
  job::JobRecord record{};
  std::vector<job::GroupLostMessage> said{};
};

Cut SimulateCut(double seconds, bool one_way) {
  Scenario scenario = TwoHosts();
  Cut cut;
  scenario.on_step = [&](const job::Event& event, Instant, const job::Actions& actions) {
    const auto* said = std::get_if<job::WorkerSaid>(&event);
    const auto* lost =
        said == nullptr ? nullptr : std::get_if<job::GroupLostMessage>(&said->message);
    if (lost != nullptr) cut.said.push_back(*lost);
    for (const job::Action& action : actions) {
      const auto* persist = std::get_if<job::PersistJob>(&action);
      if (persist != nullptr) cut.record = persist->record;
    }
  };
  cut.outcome = SimulateWith({{.kind = Kind::kPartition,
                               .at_seconds = 10,
                               .for_seconds = seconds,
                               .host = "a",
                               .peer = "b",
                               .one_way = one_way,
                               .breaks = true}},
                             std::move(scenario));
  return cut;
}

TEST(FaultInjectionTest, AConnectionThatBreaksCostsTheSameWorkersARegroup) {
  for (const bool one_way : {true, false}) {
    const Cut cut = SimulateCut(0.5, one_way);

    EXPECT_EQ(cut.outcome.jobs[0].state, job::JobState::kSucceeded);
    EXPECT_EQ(cut.record.regroups, 1u);
    EXPECT_EQ(cut.record.attempts.size(), 1u);
    ASSERT_EQ(cut.said.size(), 2u);
    EXPECT_THAT(cut.said[0].blames, testing::ElementsAre(1u));
    EXPECT_THAT(cut.said[1].blames, testing::ElementsAre(0u));
    EXPECT_THAT(cut.outcome.violations, IsEmpty());
  }
}

TEST(FaultInjectionTest, ALinkThatStaysCutHoldsUpTheNextGroupUntilItHasHealed) {
  const Cut cut = SimulateCut(120, /*one_way=*/false);

  EXPECT_EQ(cut.outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_GT(cut.outcome.seconds, 130);
  EXPECT_EQ(cut.record.regroups, 1u);
  EXPECT_EQ(cut.record.attempts.size(), 1u);
  EXPECT_THAT(cut.outcome.violations, IsEmpty());
}

TEST(FaultInjectionTest, AWorkerThatStandsStillForEverIsEndedAndTheJobGoesOn) {
  const Outcome outcome = SimulateWith(
      {{.kind = Kind::kPause, .at_seconds = 10, .host = "b", .device = "cpu:0"}}, TwoHosts());

  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_GT(outcome.seconds, 10 + 120);
  EXPECT_LT(outcome.seconds, 10 + 120 + 120);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

// Of a job on three hosts whose worker on "b" has a bit flipped after 20 s.
struct Flipped {
  Outcome outcome{};
  std::vector<job::DifferedMessage> said{};
};

Flipped SimulateFlips(const std::vector<unsigned>& bits, std::size_t hosts = 3) {
  Scenario scenario = TwoHosts();
  if (hosts == 3) scenario.cluster.hosts.push_back({.name = "c", .devices = {{.name = "cpu:0"}}});
  scenario.jobs[0].settings.workers_min = static_cast<std::uint32_t>(hosts);
  scenario.jobs[0].engine.stop.rounds = 2000;
  Flipped flipped;
  scenario.on_step = [&](const job::Event& event, Instant, const job::Actions&) {
    const auto* said = std::get_if<job::WorkerSaid>(&event);
    const auto* differed =
        said == nullptr ? nullptr : std::get_if<job::DifferedMessage>(&said->message);
    if (differed != nullptr) flipped.said.push_back(*differed);
  };
  std::vector<Fault> faults;
  for (const unsigned bit : bits) {
    faults.push_back({.kind = Kind::kBitFlip,
                      .at_seconds = 20 + 15.0 * static_cast<double>(faults.size()),
                      .host = "b",
                      .device = "cpu:0",
                      .element = 3,
                      .bit = bit});
  }
  flipped.outcome = SimulateWith(std::move(faults), std::move(scenario));
  return flipped;
}

TEST(FaultInjectionTest, AFlippedBitIsFoundAndTheWorkerTakesOverWhatTheOthersHold) {
  for (const unsigned bit : {0u, 22u, 23u, 31u}) {
    const Flipped flipped = SimulateFlips({bit});

    EXPECT_EQ(flipped.outcome.jobs[0].state, job::JobState::kSucceeded) << bit;
    ASSERT_EQ(flipped.said.size(), 1u) << bit;
    EXPECT_THAT(flipped.said[0].wrong, testing::ElementsAre(1u));
    EXPECT_TRUE(flipped.said[0].majority);
    EXPECT_THAT(flipped.outcome.violations, IsEmpty());
  }
}

TEST(FaultInjectionTest, OfTwoWorkersBothGoOnWithTheFirstOnesParameters) {
  const Flipped flipped = SimulateFlips({22}, 2);

  EXPECT_EQ(flipped.outcome.jobs[0].state, job::JobState::kSucceeded);
  ASSERT_EQ(flipped.said.size(), 1u);
  EXPECT_FALSE(flipped.said[0].majority);
  EXPECT_THAT(flipped.outcome.violations, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EndlessPartitionTest,
                         testing::Values(Algorithm::kMesh, Algorithm::kRing,
                                         Algorithm::kRecursiveHalving, Algorithm::kTree));

// How often a node was called unreachable, in a run in which no job is harmed by it.
int TimesMissed(const std::vector<Fault>& faults) {
  int missed = 0;
  Scenario scenario = TwoHosts();
  scenario.on_step = [&missed](const job::Event& event, Instant, const job::Actions&) {
    missed += std::holds_alternative<job::NodeUnreachable>(event) ? 1 : 0;
  };
  const Outcome outcome = SimulateWith(faults, std::move(scenario));
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_THAT(outcome.violations, IsEmpty());
  return missed;
}

TEST(FaultInjectionTest, APartitionEndsWithTheLastOfThoseThatOverlap) {
  // Neither alone keeps the agent away for ten seconds.
  EXPECT_EQ(TimesMissed({PartitionFromCoordinator(10, 8), PartitionFromCoordinator(25, 8)}), 0);
  EXPECT_EQ(TimesMissed({PartitionFromCoordinator(10, 8), PartitionFromCoordinator(15, 8)}), 1);
}

TEST(FaultInjectionTest, AOneWayPartitionDoesNotEndOneOfBothWays) {
  Fault one_way = PartitionFromCoordinator(11, 3);
  one_way.one_way = true;

  EXPECT_EQ(TimesMissed({PartitionFromCoordinator(10, 13), one_way}), 1);
}

TEST(FaultInjectionTest, TheDiskHasRoomAfterTheLastOfTheFaultsThatFillIt) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].settings.adapt.batch_policy = "proportional";
  scenario.jobs[0].tries_out = false;  // so that shares change once speeds are measured

  const Outcome outcome =
      SimulateWith({{.kind = Kind::kDiskFull, .at_seconds = 1.2, .for_seconds = 2},
                    {.kind = Kind::kDiskFull, .at_seconds = 2, .for_seconds = 10}},
                   std::move(scenario));

  // Plans wait for the disk, and rounds take 64 ms.
  EXPECT_GT(outcome.jobs[0].decisions.at(1).adopted_round.value_or(0), 100u);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(FaultInjectionTest, AnAgentThatIsDownCannotCrashNorComeBackEarlier) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].submit_seconds = 22;  // the agent is given up by then

  const Outcome outcome =
      SimulateWith({AgentCrash(10, 30), AgentCrash(11, 14)}, std::move(scenario));

  EXPECT_EQ(outcome.faults, 1u);
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  EXPECT_GT(outcome.jobs[0].queued_seconds, 17);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

TEST(FaultInjectionTest, APauseInAMicroBatchCostsItsTimeAndOneInAWaitNothing) {
  const auto train_seconds = [](const std::string& host, double backward_share) {
    Scenario scenario = TwoHosts();
    // Two seconds and one.
    for (std::size_t i = 0; i < 2; ++i) {
      scenario.cluster.hosts[i].devices[0].sample_seconds = (2.0 - static_cast<double>(i)) / 32;
    }
    scenario.jobs[0].backward_share = backward_share;
    scenario.jobs[0].engine.stop.rounds = 20;
    Fault pause = Pause(10, 0.9);
    pause.host = host;
    pause.at_seconds = 11.6;  // the round began at about 11, and b is done at about 12
    if (host.empty()) return Simulate(std::move(scenario)).jobs[0].train_seconds;
    const Outcome outcome = SimulateWith({pause}, std::move(scenario));
    EXPECT_THAT(outcome.violations, IsEmpty());
    return outcome.jobs[0].train_seconds;
  };
  for (const double backward_share : {0.0, 0.9}) {
    const double undisturbed = train_seconds("", backward_share);

    EXPECT_NEAR(train_seconds("a", backward_share), undisturbed + 0.9, 1e-6);
    EXPECT_NEAR(train_seconds("b", backward_share), undisturbed, 1e-6);
  }
}

TEST(FaultInjectionTest, APauseOfAWorkerThatLoadsCostsItsTime) {
  const double undisturbed = Simulate(TwoHosts()).seconds;

  const Outcome outcome = SimulateWith({Pause(0.5, 0.2)});

  EXPECT_NEAR(outcome.seconds, undisturbed + 0.2, 0.01);
  EXPECT_EQ(outcome.faults, 1u);
}

TEST(FaultInjectionTest, APauseIsOnTheTraceFromItsBeginningToItsEnd) {
  ExpectOnePause({Pause(10, 4)}, 10, 4);
}

TEST(FaultInjectionTest, OverlappingPausesAreOneOnTheTrace) {
  ExpectOnePause({Pause(10, 4), Pause(12, 6), Pause(13, 1)}, 10, 8);
}

TEST(FaultInjectionTest, APauseEndsOnTheTraceWhenItsWorkerDoes) {
  ExpectOnePause({Pause(10, 100), WorkerCrash(12)}, 10, 2);
  ExpectOnePause({Pause(10, 0), WorkerCrash(12)}, 10, 2);
}

TEST(FaultInjectionTest, AMicroBatchOfYearsEndsWithItsWorker) {
  Scenario scenario = TwoHosts();
  scenario.jobs[0].settings.retries = 0;
  scenario.cluster.hosts[1].devices[0].sample_seconds = 3600;
  scenario.cluster.hosts[1].devices[0].noise = {
      .slow_factor = 1e6, .slow_seconds = 1e6, .fast_seconds = kPhaseSecondsMin};

  const Outcome outcome = SimulateWith(
      {{.kind = Kind::kSlowDown, .at_seconds = 0.1, .host = "b", .device = "cpu:0", .factor = 1e6},
       Pause(100, 50),
       WorkerCrash(200)},
      std::move(scenario));

  EXPECT_THAT(outcome.jobs[0].reason, HasSubstr("worker 2 on node b was ended by signal 9"));
  EXPECT_LT(outcome.seconds, 300);
  EXPECT_THAT(outcome.violations, IsEmpty());
}

}  // namespace
}  // namespace tactus::simulator
