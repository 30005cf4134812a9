// How rounds close: periodic with block momentum, delayed, Adasum of gradients and of deltas, and
// the changes between them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "agent/engine/round_engine.h"
#include "base/rng.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::Synchronization;

std::vector<double> FirstOf(const std::vector<std::vector<float>>& trace) {
  std::vector<double> values;
  for (const auto& parameters : trace) values.push_back(parameters[0]);
  return values;
}

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected,
                double tolerance) {
  ASSERT_GE(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], tolerance) << "at " << i;
  }
}

// ---- Periodic

GroupRun Windows(double momentum, double block_momentum, std::uint32_t period) {
  return {.options = {.train_samples = 1000,
                      .optimizer = SgdOptions{.learning_rate = 0.1, .momentum = momentum},
                      .block_momentum = block_momentum,
                      .keep_local_momentum = false,
                      .stop = {.rounds = 3}},
          .plan = {.synchronization = Synchronization::kPeriodic,
                   .period = period,
                   .batch_sizes = {1, 1}},
          .task = TwoQuadratics()};
}

// Seven decimals of parameters near 3 are what float32 holds.
TEST(AdacommPaperTest, V5AveragesWithoutMomentum) {
  ExpectNear(FirstOf(Train(Windows(0, 0, 2))[0].trace), {2.09, 1.43025, 0.95193125}, 1e-6);
}

TEST(AdacommPaperTest, V5BlockMomentumOverLocalMomentumThatIsReset) {
  ExpectNear(FirstOf(Train(Windows(0.9, 0.3, 2))[0].trace), {1.64, 0.4296, -0.239656}, 2e-6);
}

TEST(AdacommPaperTest, V5APeriodOfOneIsSynchronousDescent) {
  const auto periodic = Train(Windows(0, 0, 1));
  GroupRun every_step = Windows(0, 0, 1);
  every_step.plan.synchronization = Synchronization::kEveryStep;

  ExpectNear(FirstOf(periodic[0].trace), {2.5, 2.075, 1.71375}, 1e-6);
  ExpectNear(FirstOf(periodic[0].trace), FirstOf(Train(every_step)[0].trace), 1e-6);
}

// A window of descent on quadratics changes parameters by an affine map, which plain windows tell.
TEST(PeriodicTest, BlockMomentumGrowsOverTheFirstSteps) {
  const std::vector<double> plain = FirstOf(Train(Windows(0, 0, 2))[0].trace);
  const double slope = (plain[2] - plain[1]) / (plain[1] - plain[0]);
  const double offset = plain[1] - slope * plain[0];
  GroupRun run = Windows(0, 0.3, 2);
  run.options.block_momentum_steps = 4;

  double x = (plain[0] - offset) / slope;
  double change = 0;
  std::vector<double> expected;
  for (const double momentum : {0.0, 0.225, 0.3}) {  // of nothing; of step 3 of 4, and of step 5
    change = momentum * change + (slope * x + offset - x);
    x += change;
    expected.push_back(x);
  }

  ExpectNear(FirstOf(Train(run)[0].trace), expected, 1e-5);
}

TEST(PeriodicTest, BlockMomentumOutlivesARateOfZero) {
  GroupRun run = Windows(0, 0.3, 2);
  run.options.learning_rate = {
      .schedule = {.shape = policies::Schedule::Shape::kCosine, .steps = 2}, .base_batch = 2};

  const auto group = Train(run);

  EXPECT_EQ(group[0].outcome, Outcome::kFinished);
  EXPECT_EQ(group[0].trace[2], group[0].trace[1]);  // the rate has come down to 0
}

// u <- beta u - delta;  x <- start - u: what a window changed goes on by a third in the next one.
TEST(PeriodicTest, BlockMomentumOfAnAdaptiveOptimizerIsThatOfParameters) {
  GroupRun run = Windows(0, 0, 2);
  run.options.optimizer = AdamOptions{.learning_rate = 0.01};
  run.options.stop.rounds = 2;
  const std::vector<double> plain = FirstOf(Train(run)[0].trace);
  run.options.block_momentum = 0.3;
  const std::vector<double> moved = FirstOf(Train(run)[0].trace);

  EXPECT_NEAR(moved[0], plain[0], 1e-6) << "the first window has no momentum to go on with";
  const double first_change = plain[0] - 3;
  // Adam's steps are of the rate's length wherever the gradient has one sign.
  EXPECT_NEAR(moved[1] - moved[0], plain[1] - plain[0] + 0.3 * first_change, 1e-4);
  EXPECT_LT(first_change, -0.015);
}

TEST(PeriodicTest, DeltasAreWeightedBySamples) {
  GroupRun run = Windows(0, 0, 1);
  run.plan.batch_sizes = {3, 1};
  run.options.stop.rounds = 1;

  // Locals 3 - 0.1 * 2 = 2.8 and 3 - 0.1 * 8 = 2.2.
  ExpectNear(FirstOf(Train(run)[0].trace), {(3 * 2.8 + 2.2) / 4}, 1e-6);
}

TEST(PeriodicTest, ARoundHasThePlansStepsAndReportsThem) {
  GroupRun run = Windows(0, 0, 5);
  run.plan.batch_sizes = {7, 4};
  run.options.micro_batch = 3;

  const auto group = Train(run);

  EXPECT_EQ(group[0].reports[0].steps, 5u);
  EXPECT_EQ(group[0].reports[0].samples, 35u);
  EXPECT_EQ(group[1].reports[0].samples, 20u);
  EXPECT_EQ(group[1].reports[0].samples_global, 55u);
  EXPECT_EQ(group[1].reports[2].epoch_consumed, 165u);
}

// At 3 the members lose 2 and 16; after a step of their own, at 2.8 and 2.2, they lose 1.62 and
// 10.24; at their mean after the window, 2.09, 0.59405 and 9.5481.
TEST(PeriodicTest, TheLossIsThatAtCommonParametersAndTheLocalOneIsToldApart) {
  GroupRun run = Windows(0, 0, 2);
  run.task->add_gradient = [](int rank, std::uint64_t, std::span<const float> parameters,
                              std::span<float> gradients) {
    const double x = parameters[0];
    gradients[0] += static_cast<float>(rank == 0 ? x - 1 : 2 * (x + 1));
    return rank == 0 ? (x - 1) * (x - 1) / 2 : (x + 1) * (x + 1);
  };
  run.plan.batch_sizes = {2, 2};
  run.options.micro_batch = 1;

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    const policies::Report& first = member.reports[0];
    EXPECT_NEAR(first.loss_mean_global, 9, 1e-5);
    EXPECT_EQ(first.local_samples_global, 4u);
    EXPECT_NEAR(first.local_loss_mean_global, 5.93, 1e-5);
    EXPECT_NEAR(member.reports[1].loss_mean_global, (0.59405 + 9.5481) / 2, 1e-5);
  }
}

TEST(PeriodicTest, OneStepARoundHasNoLocalLoss) {
  const auto group = Train(Windows(0, 0, 1));

  EXPECT_EQ(group[0].reports[0].local_samples_global, 0u);
  EXPECT_EQ(group[0].reports[0].local_loss_mean_global, 0);
  EXPECT_EQ(group[0].reports[0].loss_mean_global, 1);
}

TEST(PeriodicTest, TheLastRoundOfAnEpochIsShort) {
  GroupRun run = Windows(0, 0, 4);
  run.options.train_samples = 21;
  run.options.stop = {.epochs = 1};
  run.plan.batch_sizes = {2, 1};

  const auto group = Train(run);

  ASSERT_EQ(group[0].reports.size(), 2u);
  EXPECT_EQ(group[0].reports[1].samples, 6u);  // 9 of 12 left, two thirds of them
  EXPECT_EQ(group[0].reports[1].steps, 3u);
  EXPECT_EQ(group[1].reports[1].samples, 3u);
  EXPECT_EQ(group[0].reports[1].epoch_consumed, 21u);
  ASSERT_TRUE(group[0].state);
  EXPECT_EQ(group[0].state->steps, 7u);
  EXPECT_EQ(group[0].state->losses.back().steps, 3u);
}

TEST(PeriodicTest, AWindowThatIsNotFiniteIsUndoneEverywhere) {
  GroupRun run = Windows(0.9, 0, 3);
  run.options.stop.rounds = 2;
  run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
    if (rank == 1 && round == 0) gradients[0] = std::numeric_limits<float>::quiet_NaN();
  };

  const auto group = Train(run);

  EXPECT_EQ(group[0].trace[0][0], 3.0f);
  EXPECT_EQ(group[0].reports[0].nonfinite_members, 1u);
  EXPECT_EQ(group[0].reports[1].nonfinite_members, 0u);
  EXPECT_LT(group[0].trace[1][0], 3.0f);
  EXPECT_EQ(group[1].trace[1], group[0].trace[1]);
}

TEST(PeriodicTest, AGroupThatIsLostWithinAWindowGoesBackToTheLastRound) {
  GroupRun run = Windows(0, 0, 4);
  run.options.stop.rounds = 100;
  run.vanish = [](int rank, std::uint64_t round) { return rank == 1 && round == 2; };

  const auto group = Train(run);

  EXPECT_EQ(group[0].outcome, Outcome::kGroupLost);
  EXPECT_EQ(group[0].parameters[0], group[0].trace[1][0]);
}

// ---- Delayed

GroupRun DelayedQuadratic(double momentum) {
  return {.options = {.train_samples = 1000,
                      .optimizer = SgdOptions{.learning_rate = 0.1, .momentum = momentum},
                      .stop = {.rounds = 9}},  // the last two are applied in one Step
          .plan = {.synchronization = Synchronization::kDelayed, .period = 8, .batch_sizes = {1}},
          .task = Scalar(1, [](int, double x) { return x; })};
}

// x_0 = x_1 = 1: the first round only fills the pipe.
TEST(AbsSgdPaperTest, V2TheGradientIsOneRoundOld) {
  ExpectNear(FirstOf(Train(DelayedQuadratic(0))[0].trace),
             {0.9, 0.8, 0.71, 0.63, 0.559, 0.496, 0.4401}, 1e-6);
}

TEST(AbsSgdPaperTest, V2WithMomentum) {
  ExpectNear(FirstOf(Train(DelayedQuadratic(0.5))[0].trace),
             {0.9, 0.75, 0.585, 0.4275, 0.29025, 0.178875, 0.0941625}, 1e-6);
}

// Sums (3, 0), (1, 2), (4, -2) over 3, 1 and 2 samples.
TEST(AbsSgdPaperTest, V1TheMeanIsOverSamplesNotOverMembers) {
  const std::vector<std::vector<double>> sums = {{3, 0}, {1, 2}, {4, -2}};
  const std::vector<double> samples = {3, 1, 2};
  GroupRun run{
      .options = {.train_samples = 6,
                  .optimizer = SgdOptions{.learning_rate = 1},
                  .stop = {.epochs = 1}},
      .plan = {.synchronization = Synchronization::kDelayed, .period = 1, .batch_sizes = {3, 1, 2}},
      .task = Task{.segments = {{.name = "x", .length = 2, .shape = {2}}}, .start = {0, 0}}};
  run.task->add_gradient = [&](int rank, std::uint64_t, std::span<const float>,
                               std::span<float> gradients) {
    const auto index = static_cast<std::size_t>(rank);
    for (std::size_t i = 0; i < 2; ++i) {
      gradients[i] += static_cast<float>(sums[index][i] / samples[index]);
    }
    return 0.0;
  };

  const auto group = Train(run);

  EXPECT_NEAR(group[0].parameters[0], -1.33333333, 1e-6);
  EXPECT_NEAR(group[0].parameters[1], 0, 1e-6);
}

GroupRun DelayedGroup(std::uint64_t train_samples, StopOptions stop) {
  return {.options = {.train_samples = train_samples,
                      .micro_batch = 3,
                      .optimizer = SgdOptions{.learning_rate = 0.01},
                      .stop = stop},
          .plan = {.version = 1,
                   .synchronization = Synchronization::kDelayed,
                   .period = 6,
                   .batch_sizes = {4, 2, 3}}};
}

TEST(DelayedTest, EverySampleIsUsedOncePerEpochAndAllHoldTheSameParameters) {
  const auto group = Train(DelayedGroup(157, {.epochs = 3}));

  ExpectEverySampleOncePerEpoch(group, 157, 3);
  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_EQ(member.trace, group[0].trace);
    EXPECT_EQ(member.reports.size(), group[0].reports.size());
  }
  std::uint64_t samples = 0;
  for (const policies::Report& report : group[0].reports) samples += report.samples_global;
  EXPECT_EQ(samples, 3u * 157u);
}

TEST(DelayedTest, ExactlySoManyRoundsAreApplied) {
  const auto group = Train(DelayedGroup(100000, {.rounds = 25}));

  EXPECT_EQ(group[0].reports.size(), 25u);
  EXPECT_EQ(group[0].reports.back().round, 24u);
  EXPECT_EQ(group[0].reason, "25 rounds completed");
}

TEST(DelayedTest, AMemberWithoutSamplesTakesPartAllTheSame) {
  GroupRun run = DelayedGroup(100000, {.rounds = 12});
  run.plan.batch_sizes = {4, 0, 3};

  const auto group = Train(run);

  EXPECT_EQ(group[1].reports.size(), 12u);
  EXPECT_EQ(group[1].reports[5].samples, 0u);
  EXPECT_EQ(group[1].parameters, group[0].parameters);
}

TEST(DelayedTest, OneVoteStopsAllAndNothingIsLost) {
  GroupRun run = DelayedGroup(100000, {.rounds = 1000});
  run.before_step = [](int rank, RoundEngine& engine, StepResult&) {
    if (rank == 1 && engine.rounds() == 4) engine.RequestStop("cancelled", StopKind::kFinish);
  };

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_EQ(member.parameters, group[0].parameters);
    EXPECT_EQ(member.reports.size(), group[0].reports.size());
  }
  EXPECT_LE(group[0].reports.size(), 8u);
}

// The update that would consume the spoilt gradient is left out; the round that was already being
// computed stays valid.
TEST(DelayedTest, ANonFiniteGradientIsSkippedByAll) {
  GroupRun run = DelayedQuadratic(0);
  run.after_gradient = [](int, std::uint64_t round, std::span<float> gradients) {
    if (round == 1) gradients[0] = std::numeric_limits<float>::infinity();
  };

  const auto one = Train(run)[0];

  // x_2 = 0.9, x_3 = x_2, x_4 = x_3 - 0.1 x_2, x_5 = x_4 - 0.1 x_3.
  ExpectNear(FirstOf(one.trace), {0.9, 0.9, 0.81, 0.72}, 1e-6);
  EXPECT_EQ(one.reports[1].nonfinite_members, 1u);
  EXPECT_EQ(one.reports[2].nonfinite_members, 0u);
}

TEST(DelayedTest, AMemberThatVanishesEndsTheOthers) {
  GroupRun run = DelayedGroup(100000, {.rounds = 1000});
  run.vanish = [](int rank, std::uint64_t round) { return rank == 2 && round == 5; };

  const auto group = Train(run);

  EXPECT_EQ(group[0].outcome, Outcome::kGroupLost);
  EXPECT_EQ(group[1].outcome, Outcome::kGroupLost);
  EXPECT_FALSE(group[0].reason.empty());
}

// Any number of samples may be left at the end of a round; the mean is the same however a round's
// samples are split among the members.
TEST(AbsSgdPropertyTest, TheMeanDoesNotDependOnWhoComputedASample) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    GroupRun run{.options = {.seed = 7,
                             .train_samples = 24,
                             .optimizer = SgdOptions{.learning_rate = 0.1},
                             .stop = {.rounds = 1}},
                 .plan = {.synchronization = Synchronization::kDelayed, .period = 1}};
    run.options.micro_batch = 1 + static_cast<std::uint32_t>(rng.Below(30));
    std::uint32_t left = 24;
    while (left > 0) {
      const auto size = 1 + static_cast<std::uint32_t>(rng.Below(left));
      run.plan.batch_sizes.push_back(size);
      left -= size;
    }
    GroupRun alone = run;
    alone.plan.batch_sizes = {24};
    alone.options.micro_batch = 24;
    const auto many = Train(run);
    const auto one = Train(alone);
    for (std::size_t i = 0; i < one[0].parameters.size(); ++i) {
      ASSERT_NEAR(many[0].parameters[i], one[0].parameters[i], 1e-5) << "seed " << seed;
    }
  }
}

// ---- Adasum

// g, then the parameters lose 1 times the combined one.
Task FixedGradients(const std::vector<std::vector<float>>& gradients,
                    std::vector<std::size_t> segments) {
  Task task;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    task.segments.push_back({.name = "s" + std::to_string(i),
                             .length = segments[i],
                             .shape = {static_cast<std::int64_t>(segments[i])}});
    task.start.resize(task.start.size() + segments[i], 0);
  }
  task.add_gradient = [gradients, segments](int rank, std::uint64_t, std::span<const float>,
                                            std::span<float> sum) {
    std::size_t at = 0;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const std::size_t offset = s * cuda::kSegmentAlignment;
      for (std::size_t i = 0; i < segments[s]; ++i) {
        sum[offset + i] += gradients[static_cast<std::size_t>(rank)][at++];
      }
    }
    return 0.0;
  };
  return task;
}

TEST(AdasumPaperTest, V2GradientsOfFourMembersUnderTheEngine) {
  GroupRun run{
      .options = {.optimizer = SgdOptions{.learning_rate = 1}, .stop = {.rounds = 1}},
      .plan = {.aggregation = Aggregation::kAdasum, .batch_sizes = {1, 2, 1, 3}},
      .task = FixedGradients(
          {{1, 2, 3, 4, 5}, {2, 0, -1, 1, 1}, {-1, 1, 0, 2, -2}, {.5, .5, 1, -1, 3}}, {3, 2})};
  run.options.train_samples = 100;

  const auto group = Train(run);

  const std::vector<double> expected = {2.68439814, 2.62946164, 2.32090217, 1.84434221, 2.49626302};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(-group[2].trace[0][i], expected[i], 1e-6);
  }
  EXPECT_EQ(group[3].trace, group[0].trace);
}

// Momentum makes the step no longer linear in the gradient: what the optimizers did is combined.
TEST(AdasumPaperTest, V6DeltasOfMomentum) {
  const std::vector<std::vector<std::vector<float>>> gradients = {{{1, 2}, {2, -1}},
                                                                  {{.5, 0}, {1, 1}}};
  std::vector<std::uint64_t> calls(2, 0);
  GroupRun run{
      .options = {.train_samples = 100,
                  .optimizer = SgdOptions{.learning_rate = 0.1, .momentum = 0.9},
                  .stop = {.rounds = 2}},
      .plan = {.aggregation = Aggregation::kAdasum, .batch_sizes = {1, 1}},
      .task = Task{.segments = {{.name = "w", .length = 2, .shape = {2}}}, .start = {1, -1}}};
  run.task->add_gradient = [&](int rank, std::uint64_t, std::span<const float>,
                               std::span<float> sum) {
    const auto index = static_cast<std::size_t>(rank);
    const std::vector<float>& gradient = gradients[calls[index]++][index];
    for (std::size_t i = 0; i < 2; ++i) sum[i] += gradient[i];
    return 0.0;
  };

  const auto group = Train(run);

  ExpectNear({group[0].trace[0][0], group[0].trace[0][1]}, {0.7, -1.1}, 1e-6);
  ExpectNear({group[0].trace[1][0], group[0].trace[1][1]}, {0.408313327, -1.216427}, 1e-6);
  EXPECT_EQ(group[1].trace, group[0].trace);
}

// {g0, g1} and {g2, g3} on a node each: means over samples within, Adasum between.
TEST(AdasumEngineTest, WithinANodeTheMeanIsOverSamples) {
  GroupRun run{.options = {.train_samples = 100,
                           .optimizer = SgdOptions{.learning_rate = 1},
                           .stop = {.rounds = 1},
                           .nodes = {0, 0, 1, 1}},
               .plan = {.aggregation = Aggregation::kAdasum, .batch_sizes = {3, 1, 2, 2}},
               .task = FixedGradients({{4, 0}, {0, 4}, {-1, 3}, {-1, 3}}, {2})};

  const auto group = Train(run);

  // (3, 1) and (-1, 3) are orthogonal, so they are summed.
  ExpectNear({-group[1].trace[0][0], -group[1].trace[0][1]}, {2, 4}, 1e-6);
  EXPECT_NEAR(group[0].reports[0].orthogonality, 1, 1e-6);
}

TEST(AdasumEngineTest, MembersOfOneNodeAloneAreCombinedByAdasumToo) {
  GroupRun run{.options = {.train_samples = 100,
                           .optimizer = SgdOptions{.learning_rate = 1},
                           .stop = {.rounds = 1},
                           .nodes = {5, 5}},
               .plan = {.aggregation = Aggregation::kAdasum, .batch_sizes = {1, 1}},
               .task = FixedGradients({{1, 0}, {0, 1}}, {2})};

  ExpectNear({-Train(run)[0].trace[0][0]}, {1}, 1e-6);
}

TEST(AdasumEngineTest, ReportsHowOrthogonalTheGradientsWere) {
  for (const Aggregation aggregation : {Aggregation::kAverage, Aggregation::kAdasum}) {
    GroupRun run{.options = {.train_samples = 100, .stop = {.rounds = 1}},
                 .plan = {.aggregation = aggregation, .batch_sizes = {2, 2}},
                 .task = FixedGradients({{1, 0}, {0, 1}}, {2})};
    EXPECT_NEAR(Train(run)[0].reports[0].orthogonality, 1, 1e-6);
    run.task = FixedGradients({{1, 1}, {1, 1}}, {2});
    EXPECT_NEAR(Train(run)[0].reports[0].orthogonality, 0.5, 1e-6);
  }
}

// ---- Learning rate

TEST(LearningRateEngineTest, RulesScaleTheStep) {
  const auto rate = [](policies::LearningRateRule rule) {
    GroupRun run{.options = {.train_samples = 1000,
                             .optimizer = SgdOptions{.learning_rate = 0.5},
                             .learning_rate = {.base_batch = 4},
                             .stop = {.rounds = 1}},
                 .plan = {.learning_rate_rule = rule, .batch_sizes = {12, 4}}};
    return Train(run)[1].reports[0].learning_rate;
  };

  EXPECT_DOUBLE_EQ(rate(policies::LearningRateRule::kConstant), 0.5);
  EXPECT_DOUBLE_EQ(rate(policies::LearningRateRule::kLinear), 2.0);
  EXPECT_DOUBLE_EQ(rate(policies::LearningRateRule::kSqrt), 1.0);
  EXPECT_DOUBLE_EQ(rate(policies::LearningRateRule::kAdascale), 0.5);  // the first gain is 1
}

// Opposite gradients: all noise, so the gain is the whole scale from the second round on.
TEST(LearningRateEngineTest, AdascaleGainsAllOfTheScaleWhenGradientsAreNoise) {
  GroupRun run{.options = {.train_samples = 1000,
                           .learning_rate = {.base_batch = 2},
                           .stop = {.steps = 9.0}},
               .plan = {.learning_rate_rule = policies::LearningRateRule::kAdascale,
                        .batch_sizes = {2, 2, 2, 2}},
               .task = FixedGradients({{1, 0}, {-1, 0}, {0, 1}, {0, -1}}, {2})};

  const auto group = Train(run);

  EXPECT_EQ(group[0].reports[0].gain, 1);
  EXPECT_NEAR(group[0].reports[1].gain, 4, 1e-9);
  EXPECT_NEAR(group[0].reports[2].progress, 9, 1e-9);
  EXPECT_EQ(group[0].reason, "9 steps completed");
}

// ---- Changes

// A plan of every kind after every other, decided at a round's edge by all.
TEST(SynchronizationChangeTest, EverySampleIsUsedOnceAndMembersStayEqual) {
  for (const OptimizerOptions& optimizer :
       {OptimizerOptions(SgdOptions{.learning_rate = 0.01}),
        OptimizerOptions(SgdOptions{.learning_rate = 0.005, .momentum = 0.9}),
        OptimizerOptions(AdamOptions{.learning_rate = 0.01}),
        OptimizerOptions(LambOptions{.learning_rate = 0.01})}) {
    GroupRun run{.options = {.train_samples = 331,
                             .micro_batch = 4,
                             .optimizer = optimizer,
                             .block_momentum = 0.3,
                             .stop = {.epochs = 4}},
                 .plan = {.version = 1, .batch_sizes = {5, 3, 4}}};
    run.before_step = [](int, RoundEngine& engine, StepResult&) {
      const std::uint64_t version = engine.plan().version + 1;
      Rng rng(version);
      policies::Plan plan{.version = version, .batch_sizes = {0, 1, 2}};
      plan.synchronization = static_cast<Synchronization>(rng.Below(3));
      if (plan.synchronization != Synchronization::kEveryStep) {
        plan.period = 1 + static_cast<std::uint32_t>(rng.Below(6));
      }
      plan.aggregation = static_cast<Aggregation>(rng.Below(2));
      for (std::uint32_t& size : plan.batch_sizes) {
        size += static_cast<std::uint32_t>(rng.Below(7));
      }
      EXPECT_TRUE(engine.OfferPlan(plan));
    };

    const auto group = Train(run);

    ExpectEverySampleOncePerEpoch(group, 331, 4);
    EXPECT_GT(group[0].reports.back().plan_version, 10u);
    for (const MemberRun& member : group) {
      EXPECT_EQ(member.outcome, Outcome::kFinished);
      EXPECT_EQ(member.parameters, group[0].parameters);
      for (const float value : member.parameters) EXPECT_TRUE(std::isfinite(value));
    }
  }
}

}  // namespace
}  // namespace tactus::engine
