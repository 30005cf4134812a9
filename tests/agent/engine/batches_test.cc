// What the engine tells of its batches besides their samples: which comes next, where a sum of
// gradients begins, and what is to be waited for.

#include <algorithm>
#include <chrono>
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

// Of rank 0 and the others: how many batches are awaited, and how many are not.
struct Awaited {
  int first = 0;
  int others = 0;
  int not_first = 0;
  int not_others = 0;
};

Awaited AwaitedOf(GroupRun run) {
  std::vector<std::pair<int, int>> counts(run.plan.batch_sizes.size());
  run.options.stop.epochs = 1;
  run.on_batch = [&](int rank, const RoundEngine&, const Batch& batch, std::span<const float>) {
    auto& [awaited, not_awaited] = counts[static_cast<std::size_t>(rank)];
    ++(batch.awaited ? awaited : not_awaited);
  };
  Train(run);
  return {.first = counts[0].first,
          .others = counts[1].first,
          .not_first = counts[0].second,
          .not_others = counts[1].second};
}

TEST(AwaitedTest, NobodyWaitsForABatchWhereNothingGoesByItsEnd) {
  for (const std::uint32_t period : {1u, 4u}) {
    GroupRun run = RunOf({.period = period, .batch_sizes = {7, 4}});
    if (period > 1) run.plan.synchronization = Synchronization::kPeriodic;

    const Awaited awaited = AwaitedOf(run);

    EXPECT_EQ(awaited.first + awaited.others, 0);
    EXPECT_GT(awaited.not_first, 100);
  }
}

TEST(AwaitedTest, WhoseClockEndsTrainingWaitsForTheLastBatchOfARound) {
  GroupRun run = RunOf({.batch_sizes = {7, 4}});  // in three and two micro-batches
  run.options.stop.time = std::chrono::hours(1);

  const Awaited awaited = AwaitedOf(run);

  EXPECT_GT(awaited.first, 100);
  EXPECT_NEAR(awaited.not_first, 2 * awaited.first, 2);
  EXPECT_EQ(awaited.others, 0);
}

TEST(AwaitedTest, WhenADelayedRoundEndsIsFoundOutBatchByBatch) {
  const Awaited awaited = AwaitedOf(
      RunOf({.synchronization = Synchronization::kDelayed, .period = 6, .batch_sizes = {7, 4}}));

  EXPECT_GT(awaited.first, 0);
  EXPECT_GT(awaited.others, 0);
  EXPECT_EQ(awaited.not_first + awaited.not_others, 0);
}

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
