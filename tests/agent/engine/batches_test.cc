// What the engine tells of its batches besides their samples: which comes next, where a sum of
// gradients begins, and when losses are due.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::Plan;
using policies::Synchronization;

struct Case {
  std::string name{};
  Plan plan{};
};

// Epochs of 1,570 samples end in the middle of a step, of a micro-batch and of a round.
GroupRun RunOf(const Plan& plan) {
  return {.options = {.train_samples = 1570,
                      .micro_batch = 3,
                      .optimizer = SgdOptions{.learning_rate = 0.001},
                      .stop = {.epochs = 2}},
          .plan = plan};
}

// One member's guesses, against what then came.
struct Guesses {
  std::vector<std::uint64_t> last{};
  int right = 0;
  int batches = 0;

  void Add(const RoundEngine& engine, const Batch& batch) {
    ++batches;
    if (batch.indices == last) ++right;
    last = engine.LikelyNext();
  }
};

std::vector<Guesses> GuessesOf(GroupRun run) {
  std::vector<Guesses> guesses(run.plan.batch_sizes.size());
  run.on_batch = [&](int rank, const RoundEngine& engine, const Batch& batch,
                     std::span<const float>) {
    guesses[static_cast<std::size_t>(rank)].Add(engine, batch);
  };
  Train(run);
  return guesses;
}

class LikelyNextTest : public testing::TestWithParam<Case> {};

TEST_P(LikelyNextTest, IsWhatComesWhileThePlanStays) {
  for (const Guesses& member : GuessesOf(RunOf(GetParam().plan))) {
    EXPECT_GT(member.batches, 200);
    EXPECT_EQ(member.right, member.batches - 1);  // nobody guessed the first
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, LikelyNextTest,
    testing::Values(
        Case{"OneMember", {.batch_sizes = {7}}}, Case{"UnequalShares", {.batch_sizes = {7, 4, 3}}},
        Case{"Adasum", {.aggregation = Aggregation::kAdasum, .batch_sizes = {4, 5}}},
        Case{"LocalSteps",
             {.synchronization = Synchronization::kPeriodic, .period = 4, .batch_sizes = {4, 5}}}),
    [](const auto& param) { return param.param.name; });

TEST(LikelyNextTest, OnlyARoundUnderANewPlanComesUnforeseen) {
  GroupRun run = RunOf({.version = 1, .batch_sizes = {7, 7}});
  run.before_step = [](int, RoundEngine& engine, StepResult&) {
    if (engine.rounds() == 20) engine.OfferPlan({.version = 2, .batch_sizes = {2, 9}});
  };

  const std::vector<Guesses> guesses = GuessesOf(run);

  EXPECT_EQ(guesses[0].right, guesses[0].batches - 2);
  EXPECT_EQ(guesses[1].right, guesses[1].batches - 2);
}

TEST(LikelyNextTest, WithinADelayedRoundTheRoundGoesOn) {
  GroupRun run =
      RunOf({.synchronization = Synchronization::kDelayed, .period = 6, .batch_sizes = {7, 4}});
  std::vector<std::uint64_t> guess;
  std::uint64_t round = 0;
  int within = 0;
  run.on_batch = [&](int rank, const RoundEngine& engine, const Batch& batch,
                     std::span<const float>) {
    if (rank != 0) return;
    if (batch.round == round && !guess.empty() && !batch.indices.empty()) {
      EXPECT_EQ(batch.indices, guess);
      ++within;
    }
    round = batch.round;
    guess = engine.LikelyNext();
  };

  Train(run);

  EXPECT_GT(within, 100);
}

TEST(LikelyNextTest, IsEmptyBehindTheLastEpochAndForAMemberWithoutAShare) {
  GroupRun run = RunOf({.batch_sizes = {16, 0}});
  std::vector<std::uint64_t> last;
  run.on_batch = [&](int rank, const RoundEngine& engine, const Batch&, std::span<const float>) {
    if (rank == 0) {
      last = engine.LikelyNext();
    } else {
      EXPECT_TRUE(engine.LikelyNext().empty());
    }
  };

  Train(run);

  EXPECT_TRUE(last.empty());
}

// What a worker reports does not depend on whether losses come with their batches or when they are
// due.
class LossesDueTest : public testing::TestWithParam<Case> {};

TEST_P(LossesDueTest, LossesMayComeThen) {
  GroupRun run = RunOf(GetParam().plan);
  const std::vector<MemberRun> at_once = Train(run);
  std::vector<double> kept(run.plan.batch_sizes.size());
  std::vector<char> due(kept.size());  // no bits: members are threads
  run.on_batch = [&](int rank, const RoundEngine&, const Batch& batch, std::span<const float>) {
    due[static_cast<std::size_t>(rank)] = batch.losses_due;
  };
  run.before_step = [&](int rank, RoundEngine&, StepResult& result) {
    double& sum = kept[static_cast<std::size_t>(rank)];
    sum += result.loss_sum;
    result.loss_sum = due[static_cast<std::size_t>(rank)] ? std::exchange(sum, 0) : 0;
  };

  const std::vector<MemberRun> late = Train(run);

  ASSERT_EQ(late[0].reports.size(), at_once[0].reports.size());
  for (std::size_t i = 0; i < late[0].reports.size(); ++i) {
    EXPECT_NEAR(late[0].reports[i].loss_sum, at_once[0].reports[i].loss_sum, 1e-9);
  }
  EXPECT_EQ(late[0].parameters, at_once[0].parameters);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, LossesDueTest,
    testing::Values(
        Case{"EveryStep", {.batch_sizes = {7, 4}}},
        Case{"LocalSteps",
             {.synchronization = Synchronization::kPeriodic, .period = 4, .batch_sizes = {4, 5}}},
        Case{"DelayedAlone",
             {.synchronization = Synchronization::kDelayed, .period = 6, .batch_sizes = {7}}}),
    [](const auto& param) { return param.param.name; });

class FirstOfSumTest : public testing::TestWithParam<Case> {};

TEST_P(FirstOfSumTest, IsWhereTheGradientsAreZero) {
  GroupRun run = RunOf(GetParam().plan);
  run.options.micro_batch = 2;
  std::vector<int> first(run.plan.batch_sizes.size());
  std::vector<int> others(run.plan.batch_sizes.size());
  run.on_batch = [&](int rank, const RoundEngine&, const Batch& batch,
                     std::span<const float> gradients) {
    const bool zero = std::ranges::all_of(gradients, [](float g) { return g == 0; });
    EXPECT_TRUE(batch.indices.empty() || batch.first_of_sum == zero);
    ++(batch.first_of_sum ? first : others)[static_cast<std::size_t>(rank)];
  };

  Train(run);

  for (std::size_t rank = 0; rank < first.size(); ++rank) {
    EXPECT_GT(first[rank], 20);
    EXPECT_GT(others[rank], 20);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, FirstOfSumTest,
    testing::Values(
        Case{"EveryStep", {.batch_sizes = {7, 4}}},
        Case{"Adasum", {.aggregation = Aggregation::kAdasum, .batch_sizes = {4, 5}}},
        Case{"LocalSteps",
             {.synchronization = Synchronization::kPeriodic, .period = 4, .batch_sizes = {4, 5}}},
        Case{"Delayed",
             {.synchronization = Synchronization::kDelayed, .period = 6, .batch_sizes = {7, 4}}}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace tactus::engine
