// States that are taken at rounds' edges while training goes on, as checkpoints are.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::LearningRateRule;
using policies::Synchronization;

constexpr std::uint64_t kSamples = 157;
constexpr std::uint64_t kRounds = 30;

EngineOptions Options(OptimizerOptions optimizer) {
  return {.train_samples = kSamples,
          .micro_batch = 3,
          .optimizer = optimizer,
          .stop = {.rounds = kRounds}};
}

struct Method {
  std::string name;
  EngineOptions options{};
  policies::Plan plan{};
};

GroupRun WithEdges(const Method& method) {
  return {.options = method.options, .plan = method.plan, .keep_edges = true};
}

GroupRun From(const Continued& edge, GroupRun run) {
  run.from = edge;
  return run;
}

class EdgeStateTest : public testing::TestWithParam<Method> {};

// Also that to take it changes nothing: the run beside it takes none.
TEST_P(EdgeStateTest, AGroupGoesOnFromEveryEdgeBitForBit) {
  const GroupRun run = WithEdges(GetParam());
  const std::vector<MemberRun> whole = Train(run);
  GroupRun alone = run;
  alone.keep_edges = false;
  const std::vector<MemberRun> untouched = Train(alone);
  ASSERT_EQ(whole[0].edges.size(), kRounds);
  EXPECT_EQ(whole[0].parameters, untouched[0].parameters);

  for (const std::uint64_t rounds : {1, 2, 13, 29}) {
    SCOPED_TRACE(rounds);
    const Continued& edge = whole[0].edges[rounds - 1];
    EXPECT_EQ(edge.state.rounds, rounds);
    const std::vector<MemberRun> on = Train(From(edge, alone));

    for (std::size_t rank = 0; rank < on.size(); ++rank) {
      EXPECT_EQ(on[rank].parameters, untouched[rank].parameters);
      ASSERT_EQ(on[rank].reports.size() + rounds, kRounds);
      for (std::size_t i = 0; i < on[rank].reports.size(); ++i) {
        const policies::Report& is = on[rank].reports[i];
        const policies::Report& was = untouched[rank].reports[i + rounds];
        EXPECT_EQ(is.round, was.round);
        EXPECT_EQ(is.loss_mean_global, was.loss_mean_global);
        EXPECT_EQ(is.learning_rate, was.learning_rate);
        EXPECT_EQ(is.epoch_consumed, was.epoch_consumed);
      }
      EngineState state = *on[rank].state;
      state.train_time = untouched[rank].state->train_time;
      EXPECT_TRUE(state == *untouched[rank].state);
    }
  }
}

EngineOptions WithBlockMomentum(EngineOptions options) {
  options.block_momentum = 0.3;
  options.keep_local_momentum = false;
  return options;
}

INSTANTIATE_TEST_SUITE_P(
    Methods, EdgeStateTest,
    testing::Values(
        Method{"Momentum",
               Options(SgdOptions{.learning_rate = 0.02, .momentum = 0.9}),
               {.batch_sizes = {5, 3, 4}}},
        Method{"Adam", Options(AdamOptions{.learning_rate = 0.01}), {.batch_sizes = {5, 3, 4}}},
        Method{"Lamb", Options(LambOptions{.learning_rate = 0.01}), {.batch_sizes = {5, 8}}},
        Method{"Adascale",
               Options(SgdOptions{.learning_rate = 0.02, .momentum = 0.9}),
               {.learning_rate_rule = LearningRateRule::kAdascale, .batch_sizes = {5, 3, 4}}},
        Method{"AdasumOfOneStep",
               Options(SgdOptions{.learning_rate = 0.02}),
               {.aggregation = Aggregation::kAdasum, .batch_sizes = {4, 4}}},
        Method{
            "PeriodicWithBlockMomentum",
            WithBlockMomentum(Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.9})),
            {.synchronization = Synchronization::kPeriodic, .period = 3, .batch_sizes = {2, 3, 1}}},
        // Momentum that local steps keep is the member's own.
        Method{"PeriodicOfOneMember",
               Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.9}),
               {.synchronization = Synchronization::kPeriodic, .period = 3, .batch_sizes = {4}}}),
    [](const auto& method) { return method.param.name; });

// How often each sample of each epoch was used.
using Uses = std::map<std::pair<std::uint64_t, std::uint64_t>, int>;

void Count(const MemberRun& member, Uses& uses) {
  for (const auto& [epoch, samples] : member.used) {
    for (const std::uint64_t sample : samples) ++uses[{epoch, sample}];
  }
}

TEST(EdgeStateTest, OfRoundsThatOverlapTheOneUnderWayIsDoneAnew) {
  GroupRun run{
      .options = Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.9}),
      .plan = {.synchronization = Synchronization::kDelayed, .period = 4, .batch_sizes = {3, 2}},
      .keep_edges = true};
  run.options.stop = {.epochs = 2};
  const MemberRun whole = Train(run)[0];
  ASSERT_GT(whole.edges.size(), 10u);
  std::uint64_t under_way = 0;

  for (std::size_t at = 0; at + 1 < whole.edges.size(); at += 5) {
    SCOPED_TRACE(at);
    const EngineState& state = whole.edges[at].state;
    under_way += state.rounds < at + 1 ? 1 : 0;
    const std::uint64_t free = 2 * kSamples - state.samples_global;
    const std::vector<MemberRun> on = Train(From(whole.edges[at], run));

    Uses uses;
    for (const MemberRun& member : on) Count(member, uses);
    EXPECT_EQ(on[0].outcome, Outcome::kFinished);
    EXPECT_EQ(on[0].parameters, on[1].parameters);
    EXPECT_EQ(on[0].state->samples_global, 2 * kSamples);
    EXPECT_EQ(uses.size(), free);
    EXPECT_TRUE(std::ranges::all_of(uses, [](const auto& use) { return use.second == 1; }));
  }
  EXPECT_GT(under_way, 0u);  // or the case is not here
}

TEST(EdgeStateTest, WithinAWindowOfLocalStepsIsNoEdge) {
  GroupRun run{
      .options = Options(SgdOptions{.learning_rate = 0.01}),
      .plan = {.synchronization = Synchronization::kPeriodic, .period = 3, .batch_sizes = {3, 3}}};
  std::uint64_t within = 0;
  run.before_step = [&within](int rank, RoundEngine& engine, StepResult&) {
    if (rank != 0) return;
    EXPECT_FALSE(engine.at_edge());
    ++within;
  };

  EXPECT_EQ(Train(run)[0].reports.size(), kRounds);

  EXPECT_GT(within, 2 * kRounds);  // most windows are whole, some end with their epoch
}

TEST(EdgeStateTest, AfterLocalStepsWithMomentumTheGroupGoesOnWithThatOfOneMember) {
  const GroupRun run{
      .options = Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.9}),
      .plan = {.synchronization = Synchronization::kPeriodic, .period = 3, .batch_sizes = {3, 2}},
      .keep_edges = true};
  const std::vector<MemberRun> whole = Train(run);

  const std::vector<MemberRun> on = Train(From(whole[0].edges[9], run));

  EXPECT_EQ(on[0].reports.size(), kRounds - 10);
  EXPECT_EQ(on[0].parameters, on[1].parameters);
  EXPECT_NE(on[0].parameters, whole[0].parameters);  // the other member's momentum is gone
}

}  // namespace
}  // namespace tactus::engine
