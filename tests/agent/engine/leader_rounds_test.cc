// Members that keep parameters of their own and follow those of the least loss.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"
#include "tests/agent/engine/own_parameters.h"
#include "tests/agent/engine/survivor.h"
#include "tests/agent/engine/survivors.h"

namespace tactus::engine {
namespace {

using policies::Synchronization;

constexpr double kStart = 3;
constexpr double kRate = 0.1;
// So much higher is the loss of each member than that of the one before it, wherever they are: who
// leads does not depend on how many steps each has taken.
constexpr double kHigher = 64;

LeaderOptions NoPulls() {
  return {.pull = 0, .node_pull = 0, .step_pull = 0, .node_step_pull = 0, .loss_window = 2};
}

// f_i = (x - c_i)^2 / 2 + kHigher i.
Task Valleys(std::vector<double> bottoms) {
  return {.segments = {{.name = "x", .length = 1, .shape = {1}}},
          .start = {static_cast<float>(kStart)},
          .add_gradient = [bottoms](int rank, std::uint64_t, std::span<const float> parameters,
                                    std::span<float> gradients) {
            const double distance = parameters[0] - bottoms[static_cast<std::size_t>(rank)];
            gradients[0] += static_cast<float>(distance);
            return 0.5 * distance * distance + kHigher * rank;
          }};
}

GroupRun Led(std::vector<std::uint32_t> sizes, std::uint32_t period, Task task) {
  return {.options = {.train_samples = 100'000,
                      .optimizer = SgdOptions{.learning_rate = kRate},
                      .leader = NoPulls(),
                      .stop = {.rounds = 6}},
          .plan = {.synchronization = Synchronization::kLsgd,
                   .period = period,
                   .batch_sizes = std::move(sizes)},
          .task = std::move(task)};
}

// What each member's parameters are after so many steps of its own from the start.
double Descended(double bottom, std::uint64_t steps) {
  return bottom + (kStart - bottom) * std::pow(1 - kRate, static_cast<double>(steps));
}

TEST(LeaderRoundsTest, WithoutPullsEachMemberTrainsByItself) {
  const std::vector<double> bottoms = {0, 1, -2};
  const auto group = Train(Led({2, 1, 3}, 3, Valleys(bottoms)));

  double mean = 0;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    std::uint64_t steps = 0;
    for (std::size_t round = 0; round + 1 < group[rank].trace.size(); ++round) {
      steps += group[rank].reports[round].steps;
      EXPECT_NEAR(group[rank].trace[round][0], Descended(bottoms[rank], steps), 1e-5);
    }
    mean += Descended(bottoms[rank], steps + group[rank].reports.back().steps) / 3;
  }
  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_NEAR(member.parameters[0], mean, 1e-5) << "what training ends with is the mean of all";
    EXPECT_EQ(member.parameters, group[0].parameters);
  }
}

TEST(LeaderRoundsTest, AllArePulledTowardsWhomLeads) {
  for (const bool with_steps : {false, true}) {
    GroupRun run = Led({1, 1, 1}, 2, Valleys({0, 0.5, 0.5}));
    run.options.leader.pull = with_steps ? 0 : 0.6;
    run.options.leader.step_pull = with_steps ? 0.9 : 0;
    run.options.stop.rounds = 60;

    const auto group = Train(run);

    for (std::size_t rank = 1; rank < 3; ++rank) {
      const double at = group[rank].trace[58][0];
      EXPECT_LT(at, 0.4) << "by itself it would be at 0.5";
      EXPECT_GT(at, 0.0);
    }
    // The leader goes its way; each step's pull is towards where it itself was as it was chosen.
    double at = kStart;
    double chosen = kStart;
    for (std::size_t round = 0; round <= 58; ++round) {
      for (std::uint64_t step = 0; step < group[0].reports[round].steps; ++step) {
        at *= 1 - kRate;
        if (round > 0) at += run.options.leader.step_pull / run.plan.period * (chosen - at);
      }
      chosen = at;
    }
    EXPECT_NEAR(group[0].trace[58][0], at, 1e-5);
  }
}

// Of four members on two nodes, 0 leads all and 2 leads the second node.
TEST(LeaderRoundsTest, WithinANodeThePullIsTowardsTheNodesLeaderAndMoreOften) {
  GroupRun run = Led({1, 1, 1, 1}, 8, Valleys({0, 2, 10, 12}));
  run.options.nodes = {0, 0, 1, 1};
  run.options.leader.node_pull = 0.9;
  run.options.stop.rounds = 80;

  const auto group = Train(run);

  EXPECT_NEAR(group[0].trace[78][0], 0, 0.05);
  EXPECT_NEAR(group[2].trace[78][0], 10, 0.05);
  EXPECT_LT(group[1].trace[78][0], 1) << "pulled to 0";
  EXPECT_LT(group[3].trace[78][0], 11) << "pulled to 10, not to 0";
  EXPECT_GT(group[3].trace[78][0], 10);
  double steps = 0;
  for (const MemberRun& member : group) steps += member.reports[40].steps;
  EXPECT_LT(steps, 4 * 8) << "a round within nodes has a quarter of the period's steps";
}

// Rank 1 does not begin the last step of its share before rank 0 has begun one more than its own:
// who is ready goes on meanwhile.
TEST(LeaderRoundsTest, WhoIsReadyGoesOnUntilAllAre) {
  GroupRun run = Led({1, 1}, 3, Valleys({0, 1}));
  run.options.stop.rounds = 1;
  std::atomic<int> begun = 0;
  int own = 0;  // of rank 1's thread
  run.on_batch = [&](int rank, const RoundEngine&, const Batch&, std::span<const float>) {
    if (rank == 0) {
      if (++begun >= 4) begun.notify_all();
    } else if (++own == 3) {
      for (int seen = begun; seen < 4; seen = begun) begun.wait(seen);
    }
  };

  const auto group = Train(run);

  EXPECT_GE(group[0].reports[0].steps, 4u);
  EXPECT_EQ(group[1].reports[0].steps, 3u);
}

// After a loss those who live keep what is theirs, and who joins them begins as the first of them.
TEST(LeaderRoundsTest, AGroupThatIsLostLeavesEachMemberItsOwn) {
  ExpectALossToLeaveEachItsOwn(
      {.train_samples = 400,
       .optimizer = SgdOptions{.learning_rate = 0.003, .momentum = 0.5},
       .leader = NoPulls(),
       .stop = {.rounds = 8}},
      {.synchronization = Synchronization::kLsgd, .period = 3, .batch_sizes = {2, 3, 1}});
}

// What is not finite is one member's own affair: it takes no such step, and after some it goes on
// from the leader's parameters.
TEST(LeaderRoundsTest, AMemberWhoseNumbersAreNotFiniteIsRepairedByTheLeader) {
  GroupRun run = Led({1, 1}, 2, Valleys({0, 1}));
  run.options.stop.rounds = 30;
  SpoilGradients(run, {.to = 4, .rank = 1});

  const auto group = Train(run);

  EXPECT_EQ(group[1].outcome, Outcome::kFinished);
  // After how many rounds depends on who came to how many steps.
  bool repaired = false;
  for (std::size_t round = 0; round < 10; ++round) {
    repaired = repaired || group[1].trace[round] == group[0].trace[round];
  }
  EXPECT_TRUE(repaired) << "no part of it is its own";
  EXPECT_EQ(group[1].reports[3].nonfinite_members, 1u);
  EXPECT_EQ(group[1].reports[10].nonfinite_members, 0u);
  EXPECT_NEAR(group[1].trace[28][0], 1, 0.1) << "it trains again, by itself";
}

// Of whom nothing is finite for all of the run, the others' rounds count all the same.
TEST(LeaderRoundsTest, AMemberThatIsNeverFiniteHoldsUpNobody) {
  GroupRun run = Led({1, 1, 1}, 2, Valleys({0, 1, 2}));
  run.options.stop.rounds = 30;
  run.options.nonfinite_rounds_max = 5;
  SpoilGradients(run, {.rank = 1});

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kFinished) << member.reason;
    ASSERT_EQ(member.reports.size(), 30u);
    EXPECT_GT(member.state->steps, 0u);
    EXPECT_GT(member.reports.back().progress, member.reports[10].progress);
    EXPECT_FALSE(member.state->losses.empty());
  }
}

// It has used its samples, and tells no loss of them: the mean is of the others'.
TEST(LeaderRoundsTest, ALossThatIsNoNumberIsNotOneOfZero) {
  GroupRun run = Led({1, 1, 1}, 4, Valleys({0, 1, 2}));
  run.options.optimizer = SgdOptions{.learning_rate = 0};
  SpoilGradients(run, {.rank = 1});
  const auto loss = [](double rank) {
    return 0.5 * (kStart - rank) * (kStart - rank) + kHigher * rank;
  };

  const auto group = Train(run);

  const policies::Report& report = group[0].reports[0];
  const std::uint64_t told = report.samples + group[2].reports[0].samples;
  EXPECT_EQ(report.nonfinite_members, 1u);
  EXPECT_EQ(report.samples_global, told + group[1].reports[0].samples);
  EXPECT_EQ(report.local_samples_global, told - 2);
  EXPECT_NEAR(report.loss_mean_global, (loss(0) + loss(2)) / 2, 1e-6);
  EXPECT_GE(report.local_loss_mean_global, std::min(loss(0), loss(2)) - 1e-6);
  for (const policies::RoundLosses& round : group[0].state->losses) {
    EXPECT_GE(round.local.Mean(), std::min(loss(0), loss(2)) - 1e-6);
  }
}

TEST(LeaderRoundsTest, WhereNobodysNumbersAreFiniteItDiverges) {
  GroupRun run = Led({1, 1}, 2, Valleys({0, 1}));
  run.options.stop.rounds = 30;
  run.options.nonfinite_rounds_max = 5;
  SpoilGradients(run, {});

  for (const MemberRun& member : Train(run)) {
    EXPECT_EQ(member.outcome, Outcome::kDiverged);
    EXPECT_EQ(member.reports.size(), 5u);
  }
}

TEST(LeaderRoundsTest, EverySampleIsUsedOncePerEpoch) {
  GroupRun run = Led({1, 1, 1, 1}, 3, Valleys({0, 1, 2, 3}));
  run.options.leader = {};
  run.options.nodes = {7, 7, 9, 9};
  ExpectEpochsThatEndWithTheMean(run);
}

// Whoever looks at them at a validation finds the mean; afterwards each goes on from its own.
TEST(LeaderRoundsTest, ValidationsAreOfTheMeanAndChangeNothing) {
  const auto [group, seen] = TrainAndLook(Led({1, 1, 1}, 2, Valleys({0, 4, 8})));

  std::uint64_t steps = 0;
  for (std::size_t round = 0; round < 5; ++round) {
    steps += group[2].reports[round].steps;
    // A trace is taken before the validation, with the mean in place where one is due.
    if (seen.contains(round + 1)) continue;
    EXPECT_NEAR(group[2].trace[round][0], Descended(8, steps), 1e-5);
  }
}

// A checkpoint is of the mean, of which all have the same bits.
TEST(LeaderRoundsTest, WhatIsSuspendedGoesOnFromTheMean) {
  GroupRun run = Led({1, 1}, 2, Valleys({0, 4}));
  run.options.optimizer = SgdOptions{.learning_rate = kRate, .momentum = 0.9};
  GroupRun next = run;
  next.options.stop.rounds = 10;
  EXPECT_EQ(GoOnFromTheMean(run, next).size(), 2u);
}

TEST(LeaderRoundsTest, ACheckpointWhileTrainingIsOfTheMean) {
  GroupRun run = Led({1, 1}, 2, Valleys({0, 4}));
  run.keep_edges = true;
  run.before_step = [&](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 0 && engine.rounds() == 2) engine.RequestResiduals();
  };

  const auto group = Train(run);

  // Rank 0's edges have what is in place there: after its third round the mean of both traces.
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  for (std::size_t round = 0; round < 3; ++round) {
    first += group[0].reports[round].steps;
    second += group[1].reports[round].steps;
  }
  const double mean = (Descended(0, first) + Descended(4, second)) / 2;
  const auto edge = std::ranges::find_if(
      group[0].edges, [](const Continued& each) { return each.state.rounds == 3; });
  ASSERT_NE(edge, group[0].edges.end());
  EXPECT_NEAR(edge->parameters[0], mean, 1e-5);
  EXPECT_NEAR(group[0].trace[3][0], Descended(0, first + group[0].reports[3].steps), 1e-5)
      << "it goes on from its own";
}

// A plan under which all members are alike follows: they become so.
TEST(LeaderRoundsTest, MembersBecomeAlikeWithAPlanUnderWhichTheyAre) {
  GroupRun run = Led({1, 1, 1}, 2, Valleys({0, 4, 8}));
  run.options.optimizer = SgdOptions{.learning_rate = kRate, .momentum = 0.5};
  ExpectToBecomeAlike(run);
}

// At the very edge at which the plan changes: what is looked at there is the mean already.
TEST(LeaderRoundsTest, WhereThePlanChangesMembersValidateAndStopAtTheirMean) {
  GroupRun run = Led({1, 1, 1}, 2, Valleys({0, 4, 8}));
  run.options.stop.rounds = 3;
  run.before_step = [](int, RoundEngine& engine, StepResult&) {
    if (engine.rounds() == 2) engine.OfferPlan({.version = 1, .batch_sizes = {1, 1, 1}});
  };
  const auto stopped = Train(run);
  ASSERT_EQ(stopped[0].reports.size(), 3u);
  EXPECT_EQ(stopped[1].parameters, stopped[0].parameters);
  EXPECT_EQ(stopped[2].parameters, stopped[0].parameters);

  run.options.stop.rounds = 5;
  run.options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 3, .samples = 10};
  std::mutex mutex;
  std::vector<float> seen;
  run.validate = [&](int, const RoundEngine& engine, std::span<const float> parameters) {
    const std::scoped_lock lock(mutex);
    EXPECT_EQ(engine.plan().version, 1u);
    seen.push_back(parameters[0]);
    return 1.0;
  };
  Train(run);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[1], seen[0]);
  EXPECT_EQ(seen[2], seen[0]);
}

}  // namespace
}  // namespace tactus::engine
