#include "agent/engine/one_bit_phase.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "agent/engine/member.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Section 7h, TV3, and invariant 4.
TEST(MomentumScalesTest, TestVectorThree) {
  cuda::SegmentTable segments = {{.name = "a", .length = 2},
                                 {.name = "b", .length = 4},
                                 {.name = "c", .length = 4},
                                 {.name = "silent", .length = 3},
                                 {.name = "none", .length = 0}};
  cuda::AssignOffsets(segments);
  std::vector<float> momentum(cuda::FlatLength(segments));
  const std::vector<float> values = {.3f, -.4f, 3, 4, 0, 0, .02f, .02f, .02f, .02f};
  std::copy_n(values.begin(), 2, momentum.begin());
  std::copy_n(values.begin() + 2, 4, momentum.begin() + 16);
  std::copy_n(values.begin() + 6, 4, momentum.begin() + 32);

  const std::vector<double> scales = MomentumScales(momentum, segments);

  ASSERT_EQ(scales.size(), 5u);
  EXPECT_NEAR(scales[0], 2.7092121, 1e-6);
  EXPECT_NEAR(scales[1], .3831405, 1e-6);
  EXPECT_NEAR(scales[2], 47.8925565, 1e-5);
  EXPECT_EQ(scales[3], 0);
  EXPECT_EQ(scales[4], 0);
  EXPECT_NEAR(scales[0] * .3535534, scales[1] * 2.5, 1e-6);
  EXPECT_NEAR(scales[0] * .3535534, scales[2] * .02, 1e-6);
}

TEST(MomentumScalesTest, WhatIsNotFiniteHasNone) {
  const cuda::SegmentTable segments = {{.name = "a", .length = 1},
                                       {.name = "b", .offset = 16, .length = 1}};
  std::vector<float> momentum(32);
  momentum[0] = std::numeric_limits<float>::infinity();
  momentum[16] = 3;

  EXPECT_THAT(MomentumScales(momentum, segments), ::testing::ElementsAre(0, 1));
}

// ---- The phases of one member whose moments are what a test says

const cuda::SegmentTable kTwo = {{.name = "a", .length = 16, .shape = {16}},
                                 {.name = "b", .offset = 16, .length = 16, .shape = {16}}};

policies::Plan OneBitPlan(std::vector<std::uint32_t> batch_sizes = {1, 1}) {
  return {
      .version = 1, .encoding = policies::Encoding::kOneBit, .batch_sizes = std::move(batch_sizes)};
}

// With a memory of ten steps, so that there is a look at each.
struct Phases {
  explicit Phases(EngineOptions engine_options = {.optimizer = AdamOptions{.beta2 = 0.9}})
      : member(engine_options, *device, kTwo, parameters.span()) {
    std::ranges::fill(member.optimizer.State()[0], 1.0f);
  }

  // After so many more steps, of which the last left such a second moment, but for its bias.
  SharedMomentum After(std::uint64_t steps, double second, const policies::Plan& plan) {
    Optimizer& optimizer = member.optimizer;
    optimizer.GoOnFrom(optimizer.steps() + steps);
    const double weight = 1 - std::pow(0.9, static_cast<double>(optimizer.second_steps()));
    std::ranges::fill(optimizer.State()[1], static_cast<float>(second * weight));
    return FollowOneBit(member, plan);
  }
  bool FrozenAfter(std::uint64_t steps, double second) {
    return !After(steps, second, OneBitPlan()).first.empty();
  }

  std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  cuda::Buffer parameters = device->Allocate(32);
  Member member;
};

TEST(OneBitPhaseTest, FreezesWhenTheSecondMomentWasSteadyAtTenLooks) {
  Phases phases;

  for (int look = 0; look <= 9; ++look) EXPECT_FALSE(phases.FrozenAfter(1, 2)) << look;
  EXPECT_TRUE(phases.FrozenAfter(1, 2));
  EXPECT_EQ(phases.member.optimizer.one_bit().since, 11u);
  EXPECT_THAT(phases.member.optimizer.one_bit().scales, Each(1));
}

TEST(OneBitPhaseTest, ASecondMomentThatFallsOrGrowsIsNotSteady) {
  for (const double change : {0.9, 1.1}) {
    Phases phases;
    double second = 1;
    for (int look = 0; look < 100; ++look) EXPECT_FALSE(phases.FrozenAfter(1, second *= change));
  }
  Phases jumps;
  for (int look = 0; look < 10; ++look) EXPECT_FALSE(jumps.FrozenAfter(1, 2));
  EXPECT_FALSE(jumps.FrozenAfter(1, 3));
  for (int look = 0; look < 9; ++look) EXPECT_FALSE(jumps.FrozenAfter(1, 3));
  EXPECT_TRUE(jumps.FrozenAfter(1, 3));
}

TEST(OneBitPhaseTest, ASkippedRoundIsNoLook) {
  Phases phases;
  for (int look = 0; look < 10; ++look) phases.FrozenAfter(1, 2);

  EXPECT_FALSE(phases.FrozenAfter(0, 2));
  EXPECT_TRUE(phases.FrozenAfter(1, 2));
}

TEST(OneBitPhaseTest, WaitsForAShareOfTheTrainingWhereItsEndIsInSight) {
  Phases phases({.optimizer = AdamOptions{.beta2 = 0.9}, .stop = {.rounds = 100}});
  phases.member.rounds = 14;
  for (int look = 0; look < 20; ++look) EXPECT_FALSE(phases.FrozenAfter(1, 2));

  phases.member.rounds = 15;
  EXPECT_TRUE(phases.FrozenAfter(1, 2));
}

TEST(OneBitPhaseTest, AStatedWarmUpIsInBaseSteps) {
  EngineOptions options{.optimizer = AdamOptions{}};
  options.encoding.one_bit.warm_up = 3;
  Phases phases(options);
  const auto progress = [&](double steps) {
    phases.member.learning_rate.Restore({.progress = steps});
  };

  progress(2.9);
  EXPECT_FALSE(phases.FrozenAfter(100, 2));
  progress(3);
  EXPECT_TRUE(phases.FrozenAfter(1, 5));
}

TEST(OneBitPhaseTest, AloneOrWithoutMomentumItGoesOnAsItIs) {
  EngineOptions options{.optimizer = AdamOptions{}};
  options.encoding.one_bit.warm_up = 1;
  Phases phases(options);
  phases.member.learning_rate.Restore({.progress = 5});

  EXPECT_TRUE(phases.After(5, 1, OneBitPlan({2})).first.empty());
  std::ranges::fill(phases.member.optimizer.State()[0], 0.0f);
  EXPECT_FALSE(phases.FrozenAfter(1, 1));
  std::ranges::fill(phases.member.optimizer.State()[0].subspan(16, 16), 4.0f);
  EXPECT_TRUE(phases.FrozenAfter(1, 1));
  EXPECT_THAT(phases.member.optimizer.one_bit().scales, ::testing::ElementsAre(0, 1));
}

TEST(OneBitPhaseTest, AnotherEncodingEndsIt) {
  Phases phases;
  for (int look = 0; look <= 10; ++look) phases.FrozenAfter(1, 2);
  ASSERT_TRUE(phases.member.optimizer.one_bit().frozen);

  EXPECT_TRUE(phases.After(1, 2, {.version = 2, .batch_sizes = {1, 1}}).first.empty());

  EXPECT_EQ(phases.member.optimizer.one_bit(), OneBitState());
  for (int look = 0; look <= 9; ++look) EXPECT_FALSE(phases.FrozenAfter(1, 2)) << look;
  EXPECT_TRUE(phases.FrozenAfter(1, 2));
}

// Most of two layers: both.
TEST(OneBitPhaseTest, LayersThatStayAtABoundBringTheWarmUpBack) {
  EngineOptions options{.optimizer = LambOptions{.beta2 = 0.9}};
  options.encoding.one_bit.warm_up = 7;
  Phases phases(options);
  Member& member = phases.member;
  member.learning_rate.Restore({.progress = 7});
  ASSERT_TRUE(phases.FrozenAfter(20, 2));
  std::vector<LayerRatio>& layers = member.optimizer.one_bit().layers;
  ASSERT_EQ(layers.size(), 2u);
  const auto follow = [&] {
    member.optimizer.GoOnFrom(member.optimizer.steps() + 1);
    return !FollowOneBit(member, OneBitPlan()).first.empty();
  };

  layers[0].factor = 0.5;
  for (int look = 0; look < 30; ++look) EXPECT_TRUE(follow());
  layers[1].factor = 4;
  for (int look = 0; look < 9; ++look) EXPECT_TRUE(follow());
  std::ranges::fill(member.optimizer.FreshMoment(), 8.0f);
  EXPECT_FALSE(follow());

  EXPECT_THAT(member.optimizer.State()[1], Each(8));
  EXPECT_EQ(member.optimizer.FreshMoment().size(), 0u);
  EXPECT_FALSE(follow());  // base steps count from here
  member.learning_rate.Restore({.progress = 14});
  EXPECT_TRUE(follow());
  EXPECT_EQ(layers[0].factor, 1);
}

TEST(OneBitPhaseDeathTest, WhatItNeedsIsRequired) {
  Phases sgd({.optimizer = SgdOptions{.momentum = 0.9}});
  Phases clipped({.optimizer = AdamOptions{}, .clip_norm = 1});
  Phases fits;
  policies::Plan adasum = OneBitPlan();
  adasum.aggregation = policies::Aggregation::kAdasum;

  EXPECT_DEATH(FollowOneBit(sgd.member, OneBitPlan()), "check failed");
  EXPECT_DEATH(FollowOneBit(clipped.member, OneBitPlan()), "check failed");
  EXPECT_DEATH(FollowOneBit(fits.member, adasum), "check failed");
}

// ---- Groups

GroupRun OneBitRun(OptimizerOptions optimizer, std::uint64_t warm_up, std::uint64_t rounds) {
  GroupRun run{.options = {.train_samples = 500,
                           .optimizer = optimizer,
                           .learning_rate = {.base_batch = 8},
                           .stop = {.rounds = rounds},
                           .bucket_bytes = 4},
               .plan = OneBitPlan({5, 2, 1})};
  run.options.encoding.one_bit.warm_up = warm_up;
  return run;
}

const std::vector<OptimizerOptions>& Both() {
  static const std::vector<OptimizerOptions> both = {
      AdamOptions{.learning_rate = 0.01}, LambOptions{.learning_rate = 0.01},
      AdamOptions{.learning_rate = 0.01, .weight_decay = 0.01}};
  return both;
}

TEST(OneBitTrainingTest, WarmUpIsTheOrdinaryTrainingAndThenSignsTravel) {
  for (const OptimizerOptions& optimizer : Both()) {
    GroupRun run = OneBitRun(optimizer, 6, 14);
    const std::vector<MemberRun> signs = Train(run);
    run.plan.encoding = policies::Encoding::kDense;
    const std::vector<MemberRun> dense = Train(run);

    for (std::size_t round = 0; round < 14; ++round) {
      for (const MemberRun& member : signs) EXPECT_EQ(member.trace[round], signs[0].trace[round]);
      EXPECT_EQ(signs[0].trace[round] == dense[0].trace[round], round < 6) << round;
      EXPECT_EQ(signs[0].reports[round].bytes_sent < dense[0].reports[round].bytes_sent,
                round >= 6);
    }
    const EngineState& state = *signs[0].state;
    EXPECT_EQ(state.one_bit.since, 6u);
    EXPECT_EQ(state.one_bit.frozen_steps, 8u);
    EXPECT_EQ(state.steps, 14u);
  }
}

TEST(OneBitTrainingTest, TheSecondMomentIsFrozen) {
  for (const OptimizerOptions& optimizer : Both()) {
    const EngineState at_freeze = *Train(OneBitRun(optimizer, 6, 6))[0].state;
    const EngineState later = *Train(OneBitRun(optimizer, 6, 20))[0].state;

    EXPECT_EQ(later.optimizer[1], at_freeze.optimizer[1]);
    EXPECT_NE(later.optimizer[0], at_freeze.optimizer[0]);
    const bool lamb = std::holds_alternative<LambOptions>(optimizer);
    EXPECT_EQ(later.fresh_moment.empty(), !lamb);
    EXPECT_NE(later.fresh_moment, later.optimizer[1]);
  }
}

TEST(OneBitTrainingTest, ARoundThatIsNotFiniteIsSkippedByAll) {
  for (const OptimizerOptions& optimizer : Both()) {
    GroupRun run = OneBitRun(optimizer, 4, 9);
    run.keep_edges = true;
    run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
      if (rank == 1 && round == 6) gradients[2] = std::numeric_limits<float>::infinity();
    };

    const std::vector<MemberRun> members = Train(run);

    for (const MemberRun& member : members) {
      EXPECT_EQ(member.trace[6], member.trace[5]);
      EXPECT_NE(member.trace[7], member.trace[6]);
      EXPECT_EQ(member.trace, members[0].trace);
    }
    const EngineState& before = members[0].edges[5].state;
    const EngineState& after = members[0].edges[6].state;
    EXPECT_EQ(after.nonfinite_rounds, 1u);
    EXPECT_EQ(after.optimizer, before.optimizer);
    EXPECT_EQ(after.fresh_moment, before.fresh_moment);
    EXPECT_EQ(after.residuals, before.residuals);
    EXPECT_EQ(after.one_bit, before.one_bit);
    EXPECT_EQ(members[0].state->one_bit.frozen_steps, 4u);
  }
}

// What the optimizer is given brings its momentum to what came out: of one size in each slice.
TEST(OneBitTrainingTest, TheMomentumIsWhatTheSignsSay) {
  GroupRun run = OneBitRun(AdamOptions{.learning_rate = 0.01}, 4, 9);
  run.options.bucket_bytes = 1u << 20;

  const EngineState state = *Train(run)[0].state;

  std::vector<double> sizes;
  for (std::size_t i = 0; i < 20; ++i) {
    sizes.push_back(std::abs(static_cast<double>(state.optimizer[0][i])));
  }
  std::ranges::sort(sizes);
  std::size_t different = 1;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    // Six roundings of both, and the momentum before is no larger than some times this one.
    if (sizes[i] > sizes[i - 1] * (1 + 100 * 0x1p-24)) ++different;
  }
  EXPECT_LE(different, 3u);  // members
}

TEST(OneBitTrainingTest, AnotherPlanBringsDenseGradientsAndMovingMomentsBack) {
  for (const OptimizerOptions& optimizer : Both()) {
    GroupRun run = OneBitRun(optimizer, 4, 16);
    run.before_step = [&](int, RoundEngine& engine, StepResult&) {
      if (engine.rounds() != 8) return;
      policies::Plan plan = run.plan;
      plan.version = 2;
      plan.encoding = policies::Encoding::kDense;
      engine.OfferPlan(plan);
    };

    const std::vector<MemberRun> members = Train(run);

    for (const MemberRun& member : members) EXPECT_EQ(member.trace, members[0].trace);
    const EngineState& state = *members[0].state;
    EXPECT_FALSE(state.one_bit.frozen);
    EXPECT_TRUE(state.fresh_moment.empty());
    const bool lamb = std::holds_alternative<LambOptions>(optimizer);
    EXPECT_EQ(state.one_bit.frozen_steps, lamb ? 0u : 5u);
    EXPECT_NE(state.optimizer[1], Train(OneBitRun(optimizer, 4, 8))[0].state->optimizer[1]);
  }
}

TEST(OneBitTrainingTest, AStateIsTakenUpAsItWas) {
  for (const OptimizerOptions& optimizer : Both()) {
    const GroupRun run = OneBitRun(optimizer, 4, 9);
    const MemberRun trained = Train(run)[0];
    const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
    const cuda::SegmentTable segments = {
        {.name = "weight", .length = kWeights, .shape = {kWeights}},
        {.name = "bias", .offset = 32, .length = 1, .shape = {1}}};
    cuda::Buffer parameters = device->Allocate(trained.parameters.size());
    Member member(run.options, *device, segments, parameters.span());
    member.encodings.For(policies::Encoding::kOneBit);

    member.Restore(*trained.state);

    EngineState again;
    member.CopyState(again);
    EXPECT_EQ(again, *trained.state);
    EXPECT_FALSE(again.residuals.empty());
    EXPECT_EQ(FollowOneBit(member, run.plan).since, 4u);
  }
}

TEST(OneBitTrainingTest, AStateThatDoesNotFitIsRefused) {
  const EngineState state = *Train(OneBitRun(LambOptions{}, 4, 9))[0].state;
  const StateFit fit{.length = state.optimizer[0].size(),
                     .optimizer_buffers = 2,
                     .segments = 2,
                     .lamb = true,
                     .train_samples = 500};
  ASSERT_EQ(ReasonAgainst(state, fit), "");
  const auto reason = [&](const auto& spoil) {
    EngineState spoilt = state;
    spoil(spoilt);
    return ReasonAgainst(spoilt, fit);
  };

  EXPECT_EQ(reason([](EngineState& s) { s.one_bit.scales = {1}; }),
            "its signs are of 1 scales and 2 layers, the model has 2 tensors");
  EXPECT_EQ(reason([](EngineState& s) { s.one_bit.layers.clear(); }),
            "its second moment is frozen, without what that takes");
  EXPECT_EQ(reason([](EngineState& s) { s.one_bit.scales.clear(); }),
            "its second moment is frozen, without what that takes");
  EXPECT_EQ(reason([](EngineState& s) { s.fresh_moment.clear(); }),
            "its second moment is frozen, without what that takes");
  EXPECT_EQ(reason([](EngineState& s) { s.one_bit.frozen = false; }),
            "it has a fresh second moment beside none that is frozen");
  EXPECT_EQ(reason([](EngineState& s) { s.fresh_moment.pop_back(); }),
            "its fresh second moment has 47 elements, the model 48");
  EXPECT_EQ(reason([](EngineState& s) { s.one_bit.frozen_steps = 9; }),
            "its second moment was frozen for 9 of 9 steps");
  EXPECT_THAT(reason([](EngineState& s) { s.one_bit.layers[0].factor = 0; }),
              HasSubstr("not finite, or below zero"));
  EXPECT_THAT(reason([](EngineState& s) { s.one_bit.scales[0] = -1; }),
              HasSubstr("not finite, or below zero"));
}

// ---- What it is for

// Noisy linear regression in 100 unknowns, in two layers; its loss cannot fall below half.
constexpr std::size_t kUnknowns = 100;
constexpr std::uint64_t kSamples = 2000;

struct Regression {
  explicit Regression(std::uint64_t seed) {
    for (std::uint64_t index = 0; index < kSamples; ++index) {
      Rng rng = Rng(seed).Fork(std::to_string(index));
      std::vector<float>& row = rows.emplace_back();
      float y = static_cast<float>(rng.Normal());
      for (std::size_t i = 0; i < kUnknowns; ++i) {
        row.push_back(static_cast<float>(rng.Normal()));
        y += row.back() * (i % 2 == 0 ? 0.5f : -0.3f);
      }
      ys.push_back(y);
    }
  }

  float Error(std::uint64_t index, std::span<const float> flat) const {
    float error = -ys[index];
    for (std::size_t i = 0; i < kUnknowns; ++i) error += rows[index][i] * flat[PlaceOf(i)];
    return error;
  }
  double Loss(std::span<const float> flat) const {
    double loss = 0;
    for (std::uint64_t index = 0; index < kSamples; ++index) {
      loss += 0.5 * std::pow(static_cast<double>(Error(index, flat)), 2) / kSamples;
    }
    return loss;
  }
  // As long as they end, nearly: ratios of LAMB that are frozen while layers grow stay too small.
  static std::vector<float> Start() {
    std::vector<float> start;
    for (std::size_t i = 0; i < kUnknowns; ++i) start.push_back(i % 2 == 0 ? 0.4f : -0.2f);
    return start;
  }
  // Layers of 40 and 60.
  static std::size_t PlaceOf(std::size_t i) { return i < 40 ? i : i + 8; }
  Task AsTask() const {
    return {.segments = {{.name = "a", .length = 40, .shape = {40}},
                         {.name = "b", .length = 60, .shape = {60}}},
            .start = Start(),
            .add_gradient = [this](int, std::uint64_t index, std::span<const float> flat,
                                   std::span<float> gradients) {
              const float error = Error(index, flat);
              for (std::size_t i = 0; i < kUnknowns; ++i) {
                gradients[PlaceOf(i)] += error * rows[index][i];
              }
              return 0.5 * static_cast<double>(error) * static_cast<double>(error);
            }};
  }

  std::vector<std::vector<float>> rows;
  std::vector<float> ys;
};

TEST(OneBitTrainingTest, LossesAreThoseOfDenseGradients) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Regression regression(seed);
    for (const OptimizerOptions& optimizer :
         {OptimizerOptions(AdamOptions{.learning_rate = 0.01}),
          OptimizerOptions(LambOptions{.learning_rate = 0.01, .weight_decay = 0})}) {
      GroupRun run{.options = {.seed = seed,
                               .train_samples = kSamples,
                               .optimizer = optimizer,
                               .learning_rate = {.base_batch = 64},
                               .stop = {.rounds = 600}},
                   .plan = OneBitPlan({30, 20, 14}),
                   .task = regression.AsTask()};
      run.options.encoding.one_bit.warm_up = 120;
      run.options.learning_rate.schedule.shape = policies::Schedule::Shape::kCosine;
      run.options.learning_rate.schedule.steps = 600;
      const double signs = regression.Loss(Train(run)[0].parameters);
      run.plan.encoding = policies::Encoding::kDense;
      const double dense = regression.Loss(Train(run)[0].parameters);

      EXPECT_LT(dense, 0.55);
      EXPECT_NEAR(signs, dense, 0.01 * dense) << seed << " " << NameOf(optimizer);
    }
  }
}

}  // namespace
}  // namespace tactus::engine
