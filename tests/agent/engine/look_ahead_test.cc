// Delayed rounds that look ahead by what is known of the step under way.

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Synchronization;

// x^2 / 2, from 1.
GroupRun Bowl(const SgdOptions& sgd, std::uint64_t rounds) {
  return {.options = {.train_samples = 100'000, .optimizer = sgd, .stop = {.rounds = rounds}},
          .plan = {.synchronization = Synchronization::kDelayed, .period = 8, .batch_sizes = {1}},
          .task = Task{.segments = {{.name = "x", .length = 1, .shape = {1}}},
                       .start = {1},
                       .add_gradient = [](int, std::uint64_t, std::span<const float> parameters,
                                          std::span<float> gradients) {
                         gradients[0] += parameters[0];
                         return 1.0;
                       }}};
}

GroupRun LookingAhead(GroupRun run) {
  run.options.look_ahead = true;
  return run;
}

GroupRun Three(std::uint64_t train_samples, StopOptions stop) {
  return LookingAhead({.options = {.train_samples = train_samples,
                                   .micro_batch = 3,
                                   .optimizer = SgdOptions{.learning_rate = 0.01, .momentum = 0.9},
                                   .stop = stop},
                       .plan = {.version = 1,
                                .synchronization = Synchronization::kDelayed,
                                .period = 6,
                                .batch_sizes = {4, 2, 3}}});
}

// x_{k+1} = x_k - eta v_k, v_k = beta v_{k-1} + y_{k-1}, y = x - eta beta v as it was then; from
// the second step on, as the first tells the rate.
std::vector<double> AheadByHand(double momentum, bool nesterov, std::size_t rounds) {
  const double known = nesterov ? momentum * momentum : momentum;
  std::vector<double> trace;
  double x = 1, v = 0, y = 1, y_next = 1;
  for (std::size_t round = 0; round < rounds; ++round) {
    v = momentum * v + y;
    x -= 0.1 * (nesterov ? y + momentum * v : v);
    y = y_next;
    y_next = x - 0.1 * known * v;
    trace.push_back(x);
  }
  return trace;
}

TEST(LookAheadTest, TheGradientIsTakenWhereTheStepUnderWayWillHaveGoneButForItsGradient) {
  for (const bool nesterov : {false, true}) {
    SCOPED_TRACE(nesterov);
    const auto trace = Train(LookingAhead(
        Bowl({.learning_rate = 0.1, .momentum = 0.5, .nesterov = nesterov}, 9)))[0]
                           .trace;

    const std::vector<double> by_hand = AheadByHand(0.5, nesterov, 7);
    ASSERT_GE(trace.size(), by_hand.size());
    for (std::size_t i = 0; i < by_hand.size(); ++i) EXPECT_NEAR(trace[i][0], by_hand[i], 1e-6);
  }
}

TEST(LookAheadTest, WithoutMomentumItIsNothing) {
  const GroupRun run = Bowl({.learning_rate = 0.1}, 9);

  EXPECT_EQ(Train(LookingAhead(run))[0].trace, Train(run)[0].trace);
}

// At a momentum of 0.9 delay is stable up to eta lambda = 0.1, and looking ahead up to 0.253.
TEST(LookAheadTest, LargerRatesAreStable) {
  const auto last = [](double rate, bool look_ahead) {
    GroupRun run = Bowl({.learning_rate = rate, .momentum = 0.9}, 900);
    run.options.look_ahead = look_ahead;
    return std::abs(Train(run)[0].parameters[0]);
  };

  EXPECT_LT(last(0.09, false), 0.1);
  EXPECT_GT(last(0.15, false), 1e3);
  EXPECT_LT(last(0.15, true), 1e-3);
  EXPECT_LT(last(0.24, true), 0.1);
  EXPECT_GT(last(0.29, true), 1e3);
}

// The round that was under way is left out, as is what is known of it.
TEST(LookAheadTest, ALostGroupLeavesTheParametersOfTheLastRound) {
  GroupRun run = Three(100'000, {.rounds = 1000});
  run.vanish = [](int rank, std::uint64_t round) { return rank == 2 && round == 5; };

  const auto group = Train(run);

  for (const int rank : {0, 1}) {
    const MemberRun& member = group[static_cast<std::size_t>(rank)];
    EXPECT_EQ(member.outcome, Outcome::kGroupLost);
    ASSERT_FALSE(member.trace.empty());
    for (std::size_t i = 0; i < kWeights; ++i) {
      EXPECT_NEAR(member.parameters[i], member.trace.back()[i], 1e-6);
    }
  }
}

TEST(LookAheadTest, AllMembersHoldTheSameAndASkippedRoundLeavesItAlone) {
  GroupRun run = Three(157, {.epochs = 3});
  run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
    if (rank == 1 && round == 3) gradients[0] = std::numeric_limits<float>::infinity();
  };

  const auto group = Train(run);

  for (const MemberRun& member : group) EXPECT_EQ(member.trace, group[0].trace);
  ASSERT_GT(group[0].trace.size(), 4u);
  EXPECT_EQ(group[0].reports[3].nonfinite_members, 1u);
  // A round is applied a Step after the one that closed it, the first two in a row.
  for (std::size_t i = 0; i < kWeights; ++i) {
    EXPECT_NEAR(group[0].trace[3][i], group[0].trace[2][i], 1e-6);
  }
}

}  // namespace
}  // namespace tactus::engine
