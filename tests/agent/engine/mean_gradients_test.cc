// Callers whose gradients are means over their batches: the same training, and of a batch that is a
// whole step the very bits of its mean.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::Plan;
using policies::Synchronization;

GroupRun Of(const Plan& plan, const OptimizerOptions& optimizer) {
  return {.options = {.train_samples = 203,
                      .micro_batch = 3,
                      .optimizer = optimizer,
                      .clip_norm = 1.5,
                      .stop = {.epochs = 2}},
          .plan = plan};
}

struct Way {
  std::string name;
  Plan plan;
};

// Who has how many samples of delayed rounds is a matter of time: alone it is known.
std::vector<Way> Ways() {
  return {
      {"every_step", {.batch_sizes = {7, 5, 3, 1}}},
      {"alone", {.batch_sizes = {7}}},
      {"adasum", {.aggregation = Aggregation::kAdasum, .batch_sizes = {7, 5, 3, 1}}},
      {"periodic",
       {.synchronization = Synchronization::kPeriodic, .period = 3, .batch_sizes = {7, 5, 3, 1}}},
      {"delayed", {.synchronization = Synchronization::kDelayed, .period = 4, .batch_sizes = {7}}},
      {"float16", {.encoding = policies::Encoding::kFloat16, .batch_sizes = {7, 5, 3, 1}}}};
}

// A gradient's weight, its sum and its mean are each rounded to 2^-24 of themselves, in each of
// some 30 steps, and so are norms that clip; 16 bits on the wire round to 2^-11.
double ToleranceOf(const Plan& plan) {
  return policies::Encoding::kFloat16 == plan.encoding ? 2e-3 : 2e-5;
}

void ExpectAlike(const MemberRun& means, const MemberRun& sums, double tolerance) {
  ASSERT_EQ(means.parameters.size(), sums.parameters.size());
  for (std::size_t i = 0; i < means.parameters.size(); ++i) {
    EXPECT_NEAR(means.parameters[i], sums.parameters[i], tolerance) << i;
  }
  ASSERT_EQ(means.reports.size(), sums.reports.size());
  for (std::size_t i = 0; i < means.reports.size(); ++i) {
    const policies::Report& mean = means.reports[i];
    const policies::Report& sum = sums.reports[i];
    EXPECT_EQ(mean.samples, sum.samples);
    EXPECT_NEAR(mean.gradient_norm2_global, sum.gradient_norm2_global,
                tolerance * (1 + sum.gradient_norm2_global));
    EXPECT_NEAR(mean.orthogonality, sum.orthogonality, 10 * tolerance);
    EXPECT_NEAR(mean.gradient_norm2_local, sum.gradient_norm2_local,
                tolerance * (1 + sum.gradient_norm2_local));
    EXPECT_NEAR(mean.samples_gradient_norm2, sum.samples_gradient_norm2,
                tolerance * (1 + sum.samples_gradient_norm2));
  }
}

TEST(MeanGradientsTest, TheyTrainAsSumsDo) {
  for (const Way& way : Ways()) {
    for (const OptimizerOptions& optimizer :
         {OptimizerOptions(SgdOptions{.learning_rate = 0.01, .momentum = 0.5}),
          OptimizerOptions(AdamOptions{.learning_rate = 0.01})}) {
      SCOPED_TRACE(way.name + " " + std::string(NameOf(optimizer)));
      GroupRun run = Of(way.plan, optimizer);
      const std::vector<MemberRun> sums = Train(run);
      run.options.mean_gradients = true;

      const std::vector<MemberRun> means = Train(run);

      ASSERT_EQ(means.size(), sums.size());
      for (std::size_t rank = 0; rank < means.size(); ++rank) {
        EXPECT_EQ(means[rank].parameters, means[0].parameters);
        ExpectAlike(means[rank], sums[rank], ToleranceOf(way.plan));
      }
      ExpectEverySampleOncePerEpoch(means, 203, 2);
    }
  }
}

TEST(MeanGradientsTest, MembersOfDelayedRoundsHoldTheSame) {
  GroupRun run =
      Of({.synchronization = Synchronization::kDelayed, .period = 4, .batch_sizes = {7, 5, 3, 1}},
         AdamOptions{.learning_rate = 0.01});
  run.options.mean_gradients = true;

  const std::vector<MemberRun> means = Train(run);

  for (const MemberRun& member : means) EXPECT_EQ(member.parameters, means[0].parameters);
  ExpectEverySampleOncePerEpoch(means, 203, 2);
  // How far they come depends on times: rounds may be few, and the last one's samples as well.
  for (const policies::Report& report : means[0].reports) EXPECT_EQ(report.nonfinite_members, 0u);
}

// AdaScale of a single member cuts a round's passes into two sums, whose noise it compares.
TEST(MeanGradientsTest, TheNoiseOfTwoHalvesIsTheSame) {
  GroupRun run =
      Of({.learning_rate_rule = policies::LearningRateRule::kAdascale, .batch_sizes = {6}},
         SgdOptions{.learning_rate = 0.01});
  const MemberRun sums = Train(run)[0];
  run.options.mean_gradients = true;

  const MemberRun means = Train(run)[0];

  ExpectAlike(means, sums, 2e-5);
  EXPECT_GT(means.reports.back().samples_gradient_norm2, 0);
}

// x <- x - rate * mean, in float32 and in this order, as any framework takes it.
TEST(MeanGradientsTest, ABatchThatIsAStepIsAppliedBitForBit) {
  const auto slope = [](std::uint64_t index, float x) {
    return static_cast<float>(index) * 0.37f * (x - 0.1f);
  };
  Task task = Scalar(3, [](int, double x) { return x; });
  task.add_gradient = [&](int, std::uint64_t index, std::span<const float> x,
                          std::span<float> gradients) {
    gradients[0] += slope(index, x[0]);
    return 0.5;
  };
  std::vector<std::vector<std::uint64_t>> batches;
  const GroupRun run = {
      .options = {.train_samples = 17,
                  .micro_batch = 7,
                  .optimizer = SgdOptions{.learning_rate = 0.03},
                  .mean_gradients = true,
                  .stop = {.epochs = 3}},
      .plan = {.batch_sizes = {7}},
      .task = task,
      .on_batch = [&](int, const RoundEngine&, const Batch& batch, std::span<const float>) {
        batches.push_back(batch.indices);
      }};

  const MemberRun done = Train(run)[0];

  ASSERT_EQ(batches.size(), 9u) << "three an epoch, the last of three samples";
  float x = 3;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    float sum = 0;
    for (const std::uint64_t index : batches[i]) sum += slope(index, x);
    x = x - 0.03f * (sum / static_cast<float>(batches[i].size()));
    EXPECT_EQ(done.trace[i][0], x) << i;
  }
}

}  // namespace
}  // namespace tactus::engine
