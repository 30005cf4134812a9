// An optimizer whose state is cut up among the members trains as one that everybody has all of: bit
// for bit, whatever the parts' sizes, and from and to what any other group has kept.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

constexpr std::size_t kParameters = 1003;

// Each parameter is drawn towards what the sample and its place ask for; three tensors.
Task ManyParameters() {
  return {.segments = {{.name = "a", .length = 600, .shape = {600}},
                       {.name = "b", .length = 3, .shape = {3}},
                       {.name = "c", .length = 400, .shape = {400}}},
          .start = std::vector<float>(kParameters, 0.5f),
          .add_gradient = [](int, std::uint64_t index, std::span<const float> parameters,
                             std::span<float> gradients) {
            double loss = 0;
            for (std::size_t i = 0; i < parameters.size(); ++i) {
              const double phase = static_cast<double>(i) * static_cast<double>(index % 31 + 1);
              const auto error = parameters[i] - static_cast<float>(std::sin(phase));
              gradients[i] += error;
              loss += 0.5 * error * error;
            }
            return loss;
          }};
}

struct Way {
  std::string name{};
  OptimizerOptions optimizer{};
  double clip_norm = 0;  // 0: none
};

std::vector<Way> Ways() {
  const double rate = 0.01;
  return {
      {.name = "Sgd", .optimizer = SgdOptions{.learning_rate = rate}},
      {.name = "Momentum", .optimizer = SgdOptions{.learning_rate = rate, .momentum = 0.9}},
      {.name = "NesterovWithDecay",
       .optimizer =
           SgdOptions{
               .learning_rate = rate, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}},
      {.name = "Adam", .optimizer = AdamOptions{.learning_rate = rate}},
      {.name = "AdamWithDecay",
       .optimizer = AdamOptions{.learning_rate = rate, .weight_decay = 0.01}},
      {.name = "Adamw",
       .optimizer = AdamOptions{.learning_rate = rate, .weight_decay = 0.01, .decoupled = true}},
      {.name = "Lion", .optimizer = LionOptions{.learning_rate = 0.001}},
      {.name = "ClippedAdam", .optimizer = AdamOptions{.learning_rate = rate}, .clip_norm = 0.5}};
}

GroupRun RunOf(const Way& way, std::vector<std::uint32_t> batches, std::uint64_t rounds = 20) {
  GroupRun run{.options = {.train_samples = 97,
                           .micro_batch = 4,
                           .optimizer = way.optimizer,
                           .stop = {.rounds = rounds}},
               .plan = {.batch_sizes = std::move(batches)},
               .task = ManyParameters()};
  if (way.clip_norm > 0) run.options.clip_norm = way.clip_norm;
  return run;
}

GroupRun Cut(GroupRun run, std::vector<std::uint64_t> weights, std::uint32_t copies = 1) {
  run.options.shards = {.by = ShardBy::kMemory, .copies = copies};
  run.shard_weights = std::move(weights);
  return run;
}

class ShardedOptimizerTest : public testing::TestWithParam<Way> {};

TEST_P(ShardedOptimizerTest, TrainsAsOneThatEverybodyHasAllOf) {
  const GroupRun whole = RunOf(GetParam(), {5, 3, 2, 2});
  const std::vector<MemberRun> expected = Train(whole);
  for (const std::uint32_t copies : {1u, 2u}) {
    for (const std::vector<std::uint64_t>& weights : std::vector<std::vector<std::uint64_t>>{
             {1, 1, 1, 1}, {80, 24, 8, 1}, {1, 1000000, 1, 1}, {0, 1, 1, 1}}) {
      const std::vector<MemberRun> cut = Train(Cut(whole, weights, copies));

      for (std::size_t rank = 0; rank < cut.size(); ++rank) {
        EXPECT_EQ(cut[rank].outcome, Outcome::kFinished) << cut[rank].reason;
        EXPECT_EQ(cut[rank].trace, expected[rank].trace) << "rank " << rank;
      }
      EXPECT_EQ(cut[0].state->optimizer, expected[0].state->optimizer);
      EXPECT_EQ(cut[0].state->steps, expected[0].state->steps);
    }
  }
}

// What one group has kept another one goes on from, however either has cut it up, or not.
TEST_P(ShardedOptimizerTest, GoesOnFromWhatAnyOtherCutHasKept) {
  const GroupRun start = RunOf(GetParam(), {4, 2}, 10);
  const GroupRun end = RunOf(GetParam(), {2, 3, 1}, 20);
  const auto kept = [](const std::vector<MemberRun>& group) {
    return Continued{.state = *group[0].state, .parameters = group[0].parameters};
  };
  const Continued middle = kept(Train(start));
  GroupRun reference = end;
  reference.from = middle;
  const std::vector<float> expected = Train(reference)[0].parameters;

  const std::vector<GroupRun> starts = {start, Cut(start, {3, 1}), Cut(start, {1, 1}, 2)};
  const std::vector<GroupRun> ends = {end, Cut(end, {1, 1, 1}), Cut(end, {5, 1, 9}),
                                      Cut(end, {1, 2, 3}, 2)};
  for (const GroupRun& from : starts) {
    const Continued kept_there = kept(Train(from));
    EXPECT_EQ(kept_there.state.optimizer, middle.state.optimizer);
    EXPECT_EQ(kept_there.parameters, middle.parameters);
    for (GroupRun to : ends) {
      to.from = kept_there;
      EXPECT_EQ(Train(to)[0].parameters, expected);
    }
  }
}

TEST_P(ShardedOptimizerTest, OfOneMemberIsWhole) {
  const GroupRun whole = RunOf(GetParam(), {6});

  const std::vector<MemberRun> cut = Train(Cut(whole, {7}));

  const std::vector<MemberRun> expected = Train(whole);
  EXPECT_EQ(cut[0].trace, expected[0].trace);
  EXPECT_EQ(cut[0].state->optimizer, expected[0].state->optimizer);
}

INSTANTIATE_TEST_SUITE_P(AllOptimizers, ShardedOptimizerTest, testing::ValuesIn(Ways()),
                         [](const auto& info) { return info.param.name; });

// Adam has two buffers; the flat vector of these tensors has 608 + 16 + 400 elements.
TEST(ShardedOptimizerMemoryTest, EachMemberHoldsItsShare) {
  const std::size_t all = 2 * 1024 * sizeof(float);
  const GroupRun whole = RunOf({.optimizer = AdamOptions{.learning_rate = 0.01}}, {2, 2, 2, 2}, 3);

  const std::vector<MemberRun> once = Train(Cut(whole, {4, 2, 1, 1}));
  const std::vector<MemberRun> twice = Train(Cut(whole, {4, 2, 1, 1}, 2));

  const std::vector<std::size_t> eighths = {4, 2, 1, 1};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const std::size_t before = eighths[(rank + 3) % 4];
    EXPECT_EQ(once[rank].shard_bytes, all * eighths[rank] / 8);
    EXPECT_EQ(twice[rank].shard_bytes, all * (eighths[rank] + before) / 8);
  }
}

TEST(ShardedOptimizerMemoryTest, WhereOneDoesNotKnowItsMemoryAllHoldAsMuch) {
  const GroupRun whole = RunOf({.optimizer = AdamOptions{.learning_rate = 0.01}}, {2, 2}, 3);

  const std::vector<MemberRun> cut = Train(Cut(whole, {0, 9}));

  EXPECT_EQ(cut[0].shard_bytes, cut[1].shard_bytes);
}

// A round whose gradient is not finite changes nothing.
TEST(ShardedOptimizerTest, ARoundOfNoUseChangesNothing) {
  GroupRun whole = RunOf({.optimizer = AdamOptions{.learning_rate = 0.01}}, {3, 3}, 8);
  whole.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
    if (rank == 1 && round == 4) gradients[700] = std::nanf("");
  };

  const std::vector<MemberRun> cut = Train(Cut(whole, {1, 3}));

  const std::vector<MemberRun> expected = Train(whole);
  EXPECT_EQ(cut[0].trace, expected[0].trace);
  EXPECT_EQ(cut[0].state->optimizer, expected[0].state->optimizer);
  EXPECT_EQ(cut[0].trace[4], cut[0].trace[3]);
  EXPECT_GT(cut[0].reports[4].learning_rate, 0);
  EXPECT_EQ(cut[0].reports[4].learning_rate, expected[0].reports[4].learning_rate);
}

// Rank 0 asks for all of the state at the edge at which a validation then ends training.
TEST(ShardedOptimizerTest, WhatWasGatheredWhereTrainingEndsIsNotGatheredAgain) {
  GroupRun whole = RunOf({.optimizer = AdamOptions{.learning_rate = 0.01}}, {3, 3, 2}, 100);
  whole.options.stop = {.validation_loss = 0.5};
  whole.options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 1, .samples = 10};
  whole.validate = [](int, const RoundEngine& engine, std::span<const float>) {
    return engine.rounds() == 4 ? 0.4 : 1.0;
  };
  whole.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 0 && engine.rounds() == 3) engine.RequestResiduals();
  };

  const std::vector<MemberRun> cut = Train(Cut(whole, {1, 3, 2}));

  const std::vector<MemberRun> expected = Train(whole);
  EXPECT_EQ(cut[0].reports.size(), 4u);
  EXPECT_EQ(cut[0].state->optimizer, expected[0].state->optimizer);
}

// What was gathered there is of a trial that the validation's end puts back.
TEST(ShardedOptimizerTest, WhatATrialsEndPutsBackIsGatheredAnew) {
  GroupRun whole = RunOf({.optimizer = AdamOptions{.learning_rate = 0.01}}, {3, 3, 2}, 100);
  whole.options.stop = {.patience = 1};
  whole.options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 1, .samples = 10};
  whole.validate = [](int, const RoundEngine& engine, std::span<const float>) {
    return engine.rounds() == 6 ? 5.0 : 1.0 / static_cast<double>(engine.rounds());
  };
  whole.on_loss = [](int, const RoundEngine& engine, double& loss) {
    if (engine.plan().version > 0) loss += 1e6;
  };
  whole.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (engine.rounds() == 2) {
      engine.OfferPlan({.version = 1, .batch_sizes = {3, 3, 2}, .trial = policies::Trial::kBegins});
    }
    if (rank == 0 && engine.rounds() == 5) engine.RequestResiduals();
  };

  const std::vector<MemberRun> cut = Train(Cut(whole, {1, 3, 2}));

  const std::vector<MemberRun> expected = Train(whole);
  EXPECT_EQ(expected[0].reports.size(), 6u);
  EXPECT_EQ(cut[0].reports.size(), 6u);
  EXPECT_EQ(cut[0].parameters, expected[0].parameters);
  EXPECT_EQ(cut[0].state->optimizer, expected[0].state->optimizer);
}

TEST(ShardedOptimizerTest, TakesNoPlanOfLocalSteps) {
  GroupRun whole = RunOf({.optimizer = AdamOptions{.learning_rate = 0.01}}, {3, 3}, 3);
  whole.before_step = [](int, RoundEngine& engine, StepResult&) {
    EXPECT_FALSE(engine.OfferPlan({.version = engine.plan().version + 1,
                                   .synchronization = policies::Synchronization::kPeriodic,
                                   .period = 4,
                                   .batch_sizes = {3, 3}}));
  };

  EXPECT_EQ(Train(Cut(whole, {1, 1}))[0].outcome, Outcome::kFinished);
}

}  // namespace
}  // namespace tactus::engine
