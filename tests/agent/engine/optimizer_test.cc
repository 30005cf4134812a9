#include "agent/engine/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "base/rng.h"
#include "cuda/ops/lamb_parts.h"
#include "policies/optimizers.h"

namespace tactus::engine {
namespace {

using Vector = std::vector<float>;

const cuda::SegmentTable kSegments = {{.name = "a", .offset = 0, .length = 10},
                                      {.name = "b", .offset = 16, .length = 16}};
constexpr std::size_t kLength = 32;

const OptimizerOptions kAll[] = {SgdOptions{}, SgdOptions{.momentum = 0.9}, AdamOptions{},
                                 AdamOptions{.decoupled = true}, LambOptions{}};

Vector RandomVector(std::uint64_t seed) {
  Rng rng(seed);
  Vector values(kLength);
  for (float& value : values) value = static_cast<float>(rng.Normal());
  return values;
}

// An optimizer with its device and the parameters that it moves.
struct Trainee {
  explicit Trainee(const OptimizerOptions& options) : optimizer(options, *device, kSegments) {}

  void Step(Vector gradients, StepScale scale = {.learning_rate = 0.125}) {
    optimizer.Step(gradients, scale, parameters);
  }

  std::unique_ptr<cuda::Device> device = cuda::OpenDevice("cpu:0").device;
  Optimizer optimizer;
  Vector parameters = RandomVector(1);
};

TEST(OptimizerTest, SgdStepsWithTheGivenRateAndScaleWhateverTheOptionsRate) {
  Trainee trainee(SgdOptions{.learning_rate = 77, .weight_decay = 0.5});
  Vector twin = trainee.parameters;
  const Vector gradients = RandomVector(2);

  trainee.Step(gradients, {.gradient = 0.25, .learning_rate = 0.125});

  cuda::host::Sgd({.learning_rate = 0.125f, .weight_decay = 0.5f, .gradient_scale = 0.25f},
                  gradients, twin, {});
  EXPECT_EQ(trainee.parameters, twin);
}

TEST(OptimizerTest, SgdKeepsItsMomentumFromStepToStep) {
  Trainee trainee(SgdOptions{.momentum = 0.9, .nesterov = true});
  Vector twin = trainee.parameters;
  Vector momentum(kLength);

  for (std::uint64_t seed = 2; seed < 5; ++seed) {
    trainee.Step(RandomVector(seed));
    cuda::host::Sgd({.learning_rate = 0.125f, .momentum = 0.9f, .nesterov = true},
                    RandomVector(seed), twin, momentum);
  }

  EXPECT_EQ(trainee.parameters, twin);
}

TEST(OptimizerTest, AdamCountsItsStepsAndKeepsItsMoments) {
  Trainee trainee(AdamOptions{.learning_rate = 77, .weight_decay = 0.1, .decoupled = true});
  Vector twin = trainee.parameters;
  Vector first(kLength);
  Vector second(kLength);

  for (std::uint64_t step = 1; step < 4; ++step) {
    const double rate = 0.5 / static_cast<double>(step);
    trainee.Step(RandomVector(step), {.gradient = 0.25, .learning_rate = rate});
    cuda::host::Adam({.learning_rate = rate,
                      .weight_decay = 0.1,
                      .decoupled = true,
                      .gradient_scale = 0.25f,
                      .step = step},
                     RandomVector(step), twin, first, second);
  }

  EXPECT_EQ(trainee.parameters, twin);
}

TEST(OptimizerTest, LambCountsItsStepsAndKnowsTheSegments) {
  Trainee trainee(LambOptions{.learning_rate = 77, .ratio_min = 0.5, .ratio_max = 1.5});
  Vector twin = trainee.parameters;
  Vector first(kLength);
  Vector second(kLength);

  for (std::uint64_t step = 1; step < 4; ++step) {
    const Vector gradients = RandomVector(step);
    trainee.Step(gradients, {.gradient = 0.25, .learning_rate = 0.125});
    cuda::host::Lamb({.learning_rate = 0.125,
                      .weight_decay = 0.01,
                      .ratio_min = 0.5,
                      .ratio_max = 1.5,
                      .gradient_scale = 0.25f,
                      .step = step},
                     kSegments, {gradients, twin, first, second});
  }

  EXPECT_EQ(trainee.parameters, twin);
}

// Of the second segment another member counts what both have.
TEST(OptimizerTest, LambOfPartsGoesByTheSumsOfItsReplica) {
  Trainee trainee(LambOptions{.weight_decay = 0.125});
  Vector twin = trainee.parameters;
  Vector first(kLength);
  Vector second(kLength);
  Vector gradients = RandomVector(2);
  std::vector<double> told;
  const std::vector<double> of_all = {16, 4, 9, 81};
  const collective::ReplicaSums replica{.counts = {true, false},
                                        .add = [&](std::span<double> sums) {
                                          told.assign(sums.begin(), sums.end());
                                          std::ranges::copy(of_all, sums.begin());
                                          return collective::Completion();
                                        }};

  const cuda::LambStep step{.learning_rate = 0.125,
                            .weight_decay = 0.125,
                            .ratio_min = LambOptions().ratio_min,
                            .ratio_max = LambOptions().ratio_max,
                            .gradient_scale = 0.25f};
  std::vector<double> own(4);
  cuda::host::LambSums(step, kSegments, {gradients, twin, first, second}, own);
  trainee.optimizer.Step(gradients, {.gradient = 0.25, .learning_rate = 0.125}, trainee.parameters,
                         replica);

  EXPECT_EQ(told, std::vector<double>({own[0], own[1], 0, 0}));
  cuda::host::LambOfParts(step, kSegments, {gradients, twin, first, second}, of_all);
  EXPECT_EQ(trainee.parameters, twin);
}

TEST(OptimizerTest, AStepWhoseSumsAreLostWasNone) {
  Trainee trainee(LambOptions{});
  trainee.Step(RandomVector(2));
  const Vector parameters = trainee.parameters;
  std::vector<Vector> state;
  for (const auto& buffer : trainee.optimizer.State()) {
    state.emplace_back(buffer.begin(), buffer.end());
  }
  Vector gradients = RandomVector(3);
  const collective::ReplicaSums replica{.counts = {true, true}, .add = [](std::span<double>) {
                                          return collective::Completion{
                                              .progress = collective::Progress::kFailed,
                                              .reason = "the test"};
                                        }};

  const collective::Completion stepped =
      trainee.optimizer.Step(gradients, {.learning_rate = 0.125}, trainee.parameters, replica);

  EXPECT_EQ(stepped.progress, collective::Progress::kFailed);
  EXPECT_EQ(stepped.reason, "the test");
  EXPECT_EQ(trainee.optimizer.steps(), 1u);
  EXPECT_EQ(trainee.parameters, parameters);
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(trainee.optimizer.State()[i], state[i])) << i;
  }
}

// Who goes by each element alone asks nobody, and nobody asks where no step is taken.
TEST(OptimizerTest, SumsAreAskedForWhereAStepNeedsThem) {
  int asked = 0;
  const collective::ReplicaSums replica{.counts = {true, true}, .add = [&](std::span<double>) {
                                          ++asked;
                                          return collective::Completion();
                                        }};
  const std::vector<double> shut(cuda::kGateLength);
  for (const OptimizerOptions& options : kAll) {
    Trainee trainee(options);
    Vector gradients = RandomVector(2);
    const bool lamb = std::holds_alternative<LambOptions>(options);

    trainee.optimizer.Step(gradients, {.gate = shut}, trainee.parameters, replica);
    EXPECT_EQ(asked, 0) << options.index();
    trainee.optimizer.Step(gradients, {.learning_rate = 0.125}, trainee.parameters, replica);

    EXPECT_EQ(asked, lamb ? 1 : 0) << options.index();
  }
}

TEST(OptimizerTest, EveryStepIsCountedAndTheMembersOfAGroupStayEqual) {
  for (const OptimizerOptions& options : kAll) {
    Trainee one(options);
    Trainee other(options);
    for (std::uint64_t seed = 2; seed < 6; ++seed) {
      one.Step(RandomVector(seed));
      other.Step(RandomVector(seed));
    }

    EXPECT_EQ(one.optimizer.steps(), 4u) << options.index();
    EXPECT_EQ(one.parameters, other.parameters) << options.index();
    EXPECT_NE(one.parameters, RandomVector(1)) << options.index();
  }
}

TEST(OptimizerTest, ARateOfZeroMovesNothing) {
  for (const OptimizerOptions& options : kAll) {
    Trainee trainee(options);

    trainee.Step(RandomVector(2), {.learning_rate = 0});

    EXPECT_EQ(trainee.parameters, RandomVector(1)) << options.index();
  }
}

TEST(OptimizerTest, ResettingForgetsSgdsMomentum) {
  Trainee reset(SgdOptions{.momentum = 0.9});
  Trainee fresh(SgdOptions{.momentum = 0.9});
  reset.Step(RandomVector(2));
  fresh.parameters = reset.parameters;

  reset.optimizer.ResetMomentum();
  reset.Step(RandomVector(3));
  fresh.Step(RandomVector(3));

  EXPECT_EQ(reset.parameters, fresh.parameters);
  EXPECT_EQ(reset.optimizer.steps(), 2u);
}

TEST(OptimizerTest, ResettingLeavesTheMomentsOfAdamAndLambAlone) {
  for (const OptimizerOptions& options :
       {OptimizerOptions(AdamOptions{}), OptimizerOptions(LambOptions{}),
        OptimizerOptions(SgdOptions{})}) {
    Trainee reset(options);
    Trainee kept(options);
    for (Trainee* trainee : {&reset, &kept}) trainee->Step(RandomVector(2));

    reset.optimizer.ResetMomentum();
    for (Trainee* trainee : {&reset, &kept}) trainee->Step(RandomVector(3));

    EXPECT_EQ(reset.parameters, kept.parameters) << options.index();
  }
}

TEST(OptimizerTest, ACopyOfStateStepsAndParametersGoesOnAlike) {
  for (const OptimizerOptions& options : kAll) {
    Trainee donor(options);
    Trainee joiner(options);
    donor.Step(RandomVector(2));
    donor.Step(RandomVector(3));
    joiner.parameters = donor.parameters;
    joiner.optimizer.GoOnFrom(donor.optimizer.steps());
    const std::vector<std::span<float>> from = donor.optimizer.State();
    const std::vector<std::span<float>> to = joiner.optimizer.State();
    ASSERT_EQ(from.size(), to.size()) << options.index();
    for (std::size_t i = 0; i < from.size(); ++i) joiner.device->Copy(from[i], to[i]);

    donor.Step(RandomVector(4));
    joiner.Step(RandomVector(4));

    EXPECT_EQ(joiner.parameters, donor.parameters) << options.index();
  }
}

TEST(OptimizerTest, AFrozenSecondMomentStaysAndIsCorrectedAsThatOfItsSteps) {
  Trainee trainee(AdamOptions{});
  for (std::uint64_t step = 1; step < 4; ++step) trainee.Step(RandomVector(step));
  Vector twin = trainee.parameters;
  const auto copy = [](std::span<const float> values) {
    return Vector(values.begin(), values.end());
  };
  Vector first = copy(trainee.optimizer.State()[0]);
  const Vector second = copy(trainee.optimizer.State()[1]);

  trainee.optimizer.Freeze();
  for (std::uint64_t step = 4; step < 6; ++step) trainee.Step(RandomVector(step));

  EXPECT_EQ(copy(trainee.optimizer.State()[1]), second);
  for (std::uint64_t step = 4; step < 6; ++step) {
    const Vector gradients = RandomVector(step);
    for (std::size_t i = 0; i < 10; ++i) {
      first[i] = 0.9f * first[i] + static_cast<float>(1 - 0.9) * gradients[i];
      const double root = std::sqrt(second[i] / (1 - std::pow(0.999, 3))) + 1e-8;
      twin[i] -= static_cast<float>(0.125 / (1 - std::pow(0.9, step)) * first[i] / root);
    }
  }
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(trainee.parameters[i], twin[i], 1e-5);
  EXPECT_EQ(trainee.optimizer.second_steps(), 3u);
  trainee.optimizer.Uncount();
  EXPECT_EQ(trainee.optimizer.steps(), 4u);
  EXPECT_EQ(trainee.optimizer.second_steps(), 3u);
}

TEST(OptimizerTest, AdamGoesOnWithTheMomentThatWasFrozenAndLambWithTheFreshOne) {
  for (const OptimizerOptions& options :
       {OptimizerOptions(AdamOptions{}), OptimizerOptions(LambOptions{})}) {
    Trainee trainee(options);
    Trainee moving(options);
    for (Trainee* each : {&trainee, &moving}) {
      each->optimizer.FollowRatios();
      each->Step(RandomVector(2));
    }
    trainee.optimizer.Freeze();
    const bool lamb = trainee.optimizer.FreshMoment().size() > 0;
    for (Trainee* each : {&trainee, &moving}) each->Step(RandomVector(3));

    trainee.optimizer.Thaw();

    EXPECT_EQ(lamb, std::holds_alternative<LambOptions>(options));
    EXPECT_EQ(trainee.optimizer.second_steps(), lamb ? 2u : 1u);
    // Invariant 7: of gradients that were not encoded the fresh one is LAMB's own.
    EXPECT_EQ(std::ranges::equal(trainee.optimizer.State()[1], moving.optimizer.State()[1]), lamb);
  }
}

TEST(OptimizerTest, LambsRatiosAreAveragedWithoutTheBiasOfTheirBeginning) {
  Trainee trainee(LambOptions{.ratio_min = 2, .ratio_max = 2});
  trainee.optimizer.FollowRatios();
  EXPECT_EQ(trainee.optimizer.one_bit().layers.at(0).Mean(), 1);
  const double shut[] = {0, 0, 0, 0};

  trainee.Step(RandomVector(2));
  trainee.Step(RandomVector(3), {.learning_rate = 0.125, .gate = shut});
  trainee.Step(RandomVector(4));

  ASSERT_EQ(trainee.optimizer.one_bit().layers.size(), 2u);
  for (const LayerRatio& layer : trainee.optimizer.one_bit().layers) {
    EXPECT_NEAR(layer.Mean(), 2, 1e-15);
    EXPECT_NEAR(layer.weight, 1 - 0.9 * 0.9, 1e-15);  // of two steps
  }
}

TEST(OptimizerTest, SgdWithoutMomentumAloneIsLinear) {
  for (const OptimizerOptions& options : kAll) {
    Trainee trainee(options);
    Trainee doubled(options);
    // The second step, at which a momentum shows.
    trainee.Step(RandomVector(2));
    doubled.Step(RandomVector(2));
    const Vector before = trainee.parameters;
    trainee.Step(RandomVector(3), {.gradient = 1, .learning_rate = 0.125});
    doubled.Step(RandomVector(3), {.gradient = 2, .learning_rate = 0.125});

    bool linear = true;
    for (std::size_t i = 0; i < 10; ++i) {
      const float once = trainee.parameters[i] - before[i];
      const float twice = doubled.parameters[i] - before[i];
      linear = linear && std::abs(twice - 2 * once) <= 1e-5f;
    }
    EXPECT_EQ(trainee.optimizer.linear(), linear) << options.index();
  }
}

TEST(OptimizerTest, WhoBendsGradientsIsTheSameForTheEngineAndThePolicies) {
  for (const OptimizerOptions& options : EveryOptimizer()) {
    EXPECT_EQ(BendingDecay(options).has_value(), policies::IsPreconditioned(NameOf(options)))
        << NameOf(options);
  }
  EXPECT_EQ(BendingDecay(AdamOptions{.beta2 = 0.95}), 0.95);
}

TEST(OptimizerTest, TheBaseLearningRateIsTheOptions) {
  EXPECT_EQ(Trainee(SgdOptions{.learning_rate = 0.3}).optimizer.base_learning_rate(), 0.3);
  EXPECT_EQ(Trainee(AdamOptions{.learning_rate = 0.4}).optimizer.base_learning_rate(), 0.4);
  EXPECT_EQ(Trainee(LambOptions{.learning_rate = 0.5}).optimizer.base_learning_rate(), 0.5);
}

}  // namespace
}  // namespace tactus::engine
