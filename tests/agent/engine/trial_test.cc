// Trials that a plan begins and another one undoes: members go back to what they held.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::LearningRateRule;
using policies::Plan;
using policies::Synchronization;
using policies::Trial;

constexpr std::uint64_t kRounds = 24;
constexpr std::uint64_t kSamples = 157;

struct Method {
  std::string name;
  EngineOptions options{};
  Plan plan{};
};

EngineOptions Options(OptimizerOptions optimizer) {
  return {.train_samples = kSamples,
          .micro_batch = 3,
          .optimizer = optimizer,
          .stop = {.rounds = kRounds}};
}

// The trial begins after 5 rounds, has other shares after 8, and ends after 12 as `last` says.
GroupRun WithTrial(const Method& method, Trial last) {
  GroupRun run = {.options = method.options, .plan = method.plan, .keep_edges = true};
  run.plan.version = 1;
  std::vector<Plan> plans(3, run.plan);
  for (std::size_t i = 0; i < plans.size(); ++i) plans[i].version = i + 2;
  plans[0].trial = Trial::kBegins;
  plans[0].learning_rate_rule = LearningRateRule::kLinear;
  plans[1] = plans[0];
  plans[1].version = 3;
  plans[1].trial = Trial::kRuns;
  std::ranges::reverse(plans[1].batch_sizes);
  plans[2].trial = last;
  run.before_step = [plans](int, RoundEngine& engine, StepResult&) {
    const std::vector<std::uint64_t> after = {5, 8, 12};
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (engine.rounds() >= after[i]) engine.OfferPlan(plans[i]);
    }
  };
  return run;
}

std::size_t FirstRoundOf(std::uint64_t version, const MemberRun& member) {
  const auto found = std::ranges::find(member.plan_versions, version);
  return static_cast<std::size_t>(found - member.plan_versions.begin());
}

// At the end they are flat, on the way without padding.
std::vector<float> WeightsOf(const std::vector<float>& parameters) {
  return {parameters.begin(), parameters.begin() + kWeights};
}

class TrialTest : public testing::TestWithParam<Method> {};

TEST_P(TrialTest, UndoneMembersHoldWhatTheyHeldWhenItBegan) {
  const std::vector<MemberRun> group = Train(WithTrial(GetParam(), Trial::kUndone));

  for (const MemberRun& member : group) {
    ASSERT_EQ(member.outcome, Outcome::kFinished) << member.reason;
    EXPECT_EQ(member.parameters, group[0].parameters);
    const std::size_t begins = FirstRoundOf(2, member);
    const std::size_t undone = FirstRoundOf(4, member);
    ASSERT_LT(undone, member.trace.size());
    EXPECT_EQ(member.trace[undone - 1], member.trace[begins - 1]);
    EXPECT_NE(member.trace[undone - 2], member.trace[begins - 1]);
    EXPECT_NE(member.trace.back(), member.trace[begins - 1]) << "it goes on";
  }
  const EngineState& held = group[0].edges[FirstRoundOf(2, group[0]) - 1].state;
  const EngineState& holds = group[0].edges[FirstRoundOf(4, group[0]) - 1].state;
  EXPECT_EQ(holds.optimizer, held.optimizer);
  EXPECT_EQ(holds.learning_rate.progress, held.learning_rate.progress);
  EXPECT_TRUE(holds.learning_rate == held.learning_rate);
  EXPECT_EQ(holds.steps, held.steps);
  std::vector<float> momentum = held.block_momentum;
  momentum.resize(holds.block_momentum.size());
  EXPECT_EQ(holds.block_momentum, momentum);
  EXPECT_GT(holds.rounds, held.rounds);
  EXPECT_GT(holds.samples_global, held.samples_global);
}

// Nobody is put back by a trial that paid, nor by an undoing after it.
TEST_P(TrialTest, OneThatPaidIsAsIfThereHadBeenNone) {
  GroupRun plain = WithTrial(GetParam(), Trial::kNone);
  const std::vector<MemberRun> with = Train(plain);
  plain.before_step = [offers = plain.before_step](int rank, RoundEngine& engine,
                                                   StepResult& result) {
    offers(rank, engine, result);
    if (engine.rounds() < 16) return;
    Plan undo = engine.plan();
    undo.version = 5;
    undo.trial = Trial::kUndone;
    engine.OfferPlan(undo);
  };
  const std::vector<MemberRun> undone = Train(plain);

  const std::size_t end = FirstRoundOf(4, with[0]);
  for (std::size_t rank = 0; rank < with.size(); ++rank) {
    EXPECT_NE(with[rank].trace[end - 1], with[rank].trace[FirstRoundOf(2, with[0]) - 1]);
    if (GetParam().options.elastic) continue;  // no two runs are alike
    EXPECT_EQ(undone[rank].parameters, with[rank].parameters);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Methods, TrialTest,
    testing::Values(
        Method{"Momentum",
               Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.9}),
               {.batch_sizes = {5, 3, 4}}},
        Method{"Adam", Options(AdamOptions{.learning_rate = 0.01}), {.batch_sizes = {5, 3, 4}}},
        Method{
            "Windows",
            [] {
              EngineOptions options = Options(SgdOptions{.learning_rate = 0.01, .momentum = 0.5});
              options.block_momentum = 0.3;
              return options;
            }(),
            {.synchronization = Synchronization::kPeriodic, .period = 3, .batch_sizes = {2, 3, 1}}},
        Method{"ElasticWindowsOfAdam",
               [] {
                 EngineOptions options = Options(AdamOptions{.learning_rate = 0.01});
                 options.elastic = true;
                 return options;
               }(),
               {.synchronization = Synchronization::kPeriodic,
                .period = 3,
                .batch_sizes = {2, 3, 1}}}),
    [](const auto& method) { return method.param.name; });

// The result of a job that ends in the midst of a trial is not what that has made worse.
TEST_P(TrialTest, OneThatLedUpIsUndoneAtTheEnd) {
  GroupRun run = WithTrial(GetParam(), Trial::kRuns);
  run.options.stop.rounds = 16;
  run.on_loss = [](int, const RoundEngine& engine, double& loss) {
    if (engine.plan().version > 1) loss += 1000;
  };
  const std::vector<MemberRun> up = Train(run);
  run.on_loss = [](int, const RoundEngine& engine, double& loss) {
    if (engine.plan().version > 1) loss = 0;
  };
  const std::vector<MemberRun> down = Train(run);

  for (std::size_t rank = 0; rank < up.size(); ++rank) {
    const std::vector<float>& held = up[rank].trace[FirstRoundOf(2, up[rank]) - 1];
    EXPECT_EQ(up[rank].trace.back(), held);
    EXPECT_NE(down[rank].trace.back(), down[rank].trace[FirstRoundOf(2, down[rank]) - 1]);
  }
}

// As what a former job found is: on trial from the first round on, before which no loss is known.
TEST_P(TrialTest, OneThatIsAllOfTheTrainingIsKeptAsItsLossesFall) {
  GroupRun run = {.options = GetParam().options, .plan = GetParam().plan};
  run.plan.trial = Trial::kBegins;
  run.on_loss = [](int, const RoundEngine& engine, double& loss) {
    loss = engine.rounds() == 0 ? 1e6 : 1;
  };

  for (const MemberRun& member : Train(run)) {
    ASSERT_EQ(member.outcome, Outcome::kFinished) << member.reason;
    EXPECT_THAT(WeightsOf(member.parameters), testing::Not(testing::Each(0.0f))) << "as it began";
  }
}

TEST_P(TrialTest, OneThatLedUpFirstAndThenDownIsKept) {
  GroupRun run = WithTrial(GetParam(), Trial::kRuns);
  run.options.stop.rounds = 100;
  run.on_loss = [](int, const RoundEngine& engine, double& loss) {
    if (engine.plan().version == 2) loss += 1e6;
    if (engine.plan().version > 2) loss = 0;
  };

  for (const MemberRun& member : Train(run)) {
    EXPECT_NE(member.trace.back(), member.trace[FirstRoundOf(2, member) - 1]);
  }
}

// As patience mostly fires: within a trial that does not pay.
TEST_P(TrialTest, OneThatLedUpIsUndoneWhereAValidationEndsTheJob) {
  GroupRun run = WithTrial(GetParam(), Trial::kRuns);
  run.options.stop = {.patience = 1};
  run.options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 1, .samples = 10};
  run.on_loss = [](int, const RoundEngine& engine, double& loss) {
    if (engine.plan().version > 1) loss += 1000;
  };
  run.validate = [](int, const RoundEngine& engine, std::span<const float>) {
    const bool tried = engine.plan().version > 2;
    return tried ? 5.0 : 1.0 / static_cast<double>(engine.rounds());
  };

  for (const MemberRun& member : Train(run)) {
    ASSERT_THAT(member.reason, testing::StartsWith("patience: 1 validation"));
    EXPECT_EQ(WeightsOf(member.parameters), WeightsOf(member.trace[FirstRoundOf(2, member) - 1]));
    EXPECT_FALSE(member.ends_validated) << "they are others than those that were evaluated";
  }
}

// The job was to go on until that loss, and no training loss says that it is not reached.
TEST_P(TrialTest, WhatReachesTheValidationLossIsKeptThoughTheTrainingLossRose) {
  GroupRun run = WithTrial(GetParam(), Trial::kRuns);
  run.options.stop = {.validation_loss = 0.5};
  run.options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 1, .samples = 10};
  run.on_loss = [](int, const RoundEngine& engine, double& loss) {
    if (engine.plan().version > 1) loss += 1000;
  };
  run.validate = [](int, const RoundEngine& engine, std::span<const float>) {
    return engine.plan().version > 2 ? 0.4 : 1.0;
  };

  for (const MemberRun& member : Train(run)) {
    ASSERT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_NE(WeightsOf(member.parameters), WeightsOf(member.trace[FirstRoundOf(2, member) - 1]));
    EXPECT_TRUE(member.ends_validated);
  }
}

// Of rounds that overlap one has been computed at parameters that are taken back: it is let go.
TEST(TrialOfDelayedRoundsTest, WhatBeganAtParametersTakenBackIsLetGo) {
  const Method method{
      "Delayed",
      Options(SgdOptions{.learning_rate = 0.01}),
      {.synchronization = Synchronization::kDelayed, .period = 4, .batch_sizes = {2, 3}}};

  const std::vector<MemberRun> group = Train(WithTrial(method, Trial::kUndone));

  const std::size_t begins = FirstRoundOf(2, group[0]);
  ASSERT_EQ(group[0].outcome, Outcome::kFinished) << group[0].reason;
  EXPECT_EQ(group[0].parameters, group[1].parameters);
  std::size_t held = 0;
  for (const std::vector<float>& trace : group[0].trace)
    held += trace == group[0].trace[begins - 1];
  EXPECT_GE(held, 3u) << "when it began, when it was undone, and after the round let go";
}

}  // namespace
}  // namespace tactus::engine
