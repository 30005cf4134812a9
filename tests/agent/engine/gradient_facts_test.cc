// What rounds tell of their gradients' noise: the same of gradients and of what momentum makes of
// them over windows of local steps.

#include <cmath>
#include <cstdint>
#include <string>

#include "agent/engine/round_engine.h"
#include "base/rng.h"
#include "gtest/gtest.h"
#include "policies/gradient_noise.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Synchronization;

constexpr std::size_t kDimension = 64;
constexpr double kMean = 0.5;  // of each coordinate; the variance of a sample's is 1
constexpr double kNoiseScale = 1 / (kMean * kMean);

// Gradients that depend on the sample alone.
Task Slope() {
  return {.segments = {{.name = "x", .length = kDimension, .shape = {kDimension}}},
          .start = std::vector<float>(kDimension, 0),
          .add_gradient = [](int, std::uint64_t index, std::span<const float>,
                             std::span<float> gradients) {
            Rng rng(index);
            for (std::size_t i = 0; i < kDimension; ++i) {
              gradients[i] += static_cast<float>(kMean + rng.Normal());
            }
            return 1.0;
          }};
}

struct Setting {
  std::string name;
  std::uint32_t period = 1;
  SgdOptions sgd{};
  bool keep = true;
};

class NoiseOfRoundsTest : public testing::TestWithParam<Setting> {};

TEST_P(NoiseOfRoundsTest, TheNoiseScaleIsFound) {
  const Setting& setting = GetParam();
  GroupRun run = {.options = {.train_samples = 1'000'000,
                              .optimizer = setting.sgd,
                              .keep_local_momentum = setting.keep,
                              .stop = {.rounds = 400}},
                  .plan = {.synchronization = setting.period > 1 ? Synchronization::kPeriodic
                                                                 : Synchronization::kEveryStep,
                           .period = setting.period,
                           .batch_sizes = {2, 4}},
                  .task = Slope()};

  const auto group = Train(run);

  policies::RoundNoise noise;
  double norm2 = 0;
  for (const policies::Report& report : group[0].reports) {
    noise.Observe(report);
    norm2 += report.gradient_norm2_global / static_cast<double>(group[0].reports.size());
  }
  // Averages over 50 rounds, of 64 coordinates each.
  EXPECT_NEAR(noise.Samples().value_or(0), kNoiseScale, 0.2 * kNoiseScale);
  // That of the mean, and its noise over the samples that it tells of.
  const double samples = group[0].reports.back().gradient_samples;
  const double expected = kDimension * (kMean * kMean + 1 / samples);
  EXPECT_NEAR(norm2, expected, 0.1 * expected);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, NoiseOfRoundsTest,
    testing::Values(Setting{"every_step", 1, {.learning_rate = 0.01, .momentum = 0.9}},
                    Setting{"plain", 8, {.learning_rate = 0.01}},
                    Setting{"kept", 4, {.learning_rate = 0.01, .momentum = 0.9}},
                    Setting{"reset", 16, {.learning_rate = 0.01, .momentum = 0.9}, false},
                    Setting{
                        "nesterov", 4, {.learning_rate = 0.01, .momentum = 0.9, .nesterov = true}}),
    [](const auto& setting) { return setting.param.name; });

GroupRun WindowsOf(const OptimizerOptions& optimizer, std::uint64_t rounds) {
  return {
      .options = {.train_samples = 1'000'000, .optimizer = optimizer, .stop = {.rounds = rounds}},
      .plan = {.synchronization = Synchronization::kPeriodic, .period = 16, .batch_sizes = {4, 4}},
      .task = Slope()};
}

// What Adam divides by is equal for all coordinates, but for chance: its windows tell of the noise
// as those of sgd with the same momentum do.
TEST(GradientFactsTest, WindowsOfAdamTellTheNoiseScale) {
  const auto group = Train(WindowsOf(AdamOptions{.learning_rate = 0.001}, 400));

  policies::RoundNoise noise;
  for (const policies::Report& report : group[0].reports) noise.Observe(report);
  EXPECT_NEAR(noise.Samples().value_or(0), kNoiseScale, 0.2 * kNoiseScale);
}

TEST(GradientFactsTest, SignsOfGradientsTellNothingOfTheirNoise) {
  const auto group = Train(WindowsOf(LionOptions{}, 3));

  EXPECT_EQ(group[0].reports[0].gradient_samples, 0);
  EXPECT_GT(group[0].reports[0].gradient_norm2_global, 0);
}

TEST(GradientFactsTest, SumsOfAnEncodingThatIsNotExactTellNothingOfTheirNoise) {
  for (const policies::Encoding encoding :
       {policies::Encoding::kDq, policies::Encoding::kAdacomp}) {
    GroupRun run = {.options = {.train_samples = 1'000'000, .stop = {.rounds = 3}},
                    .plan = {.encoding = encoding, .batch_sizes = {4, 4}},
                    .task = Slope()};
    for (const auto& [synchronization, period] :
         {std::pair(Synchronization::kEveryStep, 1u), std::pair(Synchronization::kPeriodic, 4u)}) {
      run.plan.synchronization = synchronization;
      run.plan.period = period;

      const auto group = Train(run);

      for (const policies::Report& report : group[0].reports) {
        EXPECT_EQ(report.gradient_samples, 0) << NameOf(encoding);
        EXPECT_EQ(report.orthogonality, 0) << NameOf(encoding);
        EXPECT_GT(report.gradient_norm2_global, 0) << NameOf(encoding);
        EXPECT_GT(report.progress, 0) << NameOf(encoding);
      }
    }
  }
}

// ---- AdaScale of a single member

GroupRun Adascaling(std::vector<std::uint32_t> sizes, std::uint32_t micro_batch) {
  return {.options = {.seed = 3,
                      .train_samples = 1'000'000,
                      .micro_batch = micro_batch,
                      .optimizer = SgdOptions{.learning_rate = 0.01},
                      .learning_rate = {.base_batch = 4},
                      .stop = {.rounds = 200}},
          .plan = {.learning_rate_rule = policies::LearningRateRule::kAdascale,
                   .batch_sizes = std::move(sizes)},
          .task = Slope()};
}

// Invariant 6 of section 3.g of the specification, of two: the samples are the same, as a round's
// are divided in the order of ranks.
TEST(AdascalePaperTest, TwoMembersOfOnePassAreOneMemberOfTwo) {
  for (const std::vector<std::uint32_t>& sizes : {std::vector<std::uint32_t>{8, 8}, {8, 5}}) {
    const auto two = Train(Adascaling(sizes, 8));
    const auto one = Train(Adascaling({sizes[0] + sizes[1]}, 8));

    ASSERT_EQ(one[0].reports.size(), two[0].reports.size());
    for (std::size_t round = 0; round < one[0].reports.size(); ++round) {
      const policies::Report& report = one[0].reports[round];
      const policies::Report& peer = two[0].reports[round];
      EXPECT_EQ(report.contributors, 2u);
      EXPECT_NEAR(report.samples_gradient_norm2, peer.samples_gradient_norm2,
                  1e-5 * peer.samples_gradient_norm2);
      EXPECT_NEAR(report.gain, peer.gain, 1e-4 * peer.gain);
      EXPECT_NEAR(report.progress, peer.progress, 1e-4 * peer.progress);
    }
    EXPECT_GT(one[0].reports.back().gain, 1.2);
    EXPECT_NEAR(one[0].parameters[0], two[0].parameters[0], 1e-4);
  }
}

TEST(AdascalePaperTest, OfMorePassesTheHalvesTellTheSameNoise) {
  GroupRun run = Adascaling({40}, 4);
  run.options.stop.rounds = 1000;

  const policies::Report last = Train(run)[0].reports.back();

  // phi: the trace of a sample's covariance over the squared length of the mean.
  const double gain = (kNoiseScale / 4 + 1) / (kNoiseScale / 40 + 1);
  EXPECT_NEAR(last.gain, gain, 0.1 * gain);
}

TEST(AdascalePaperTest, ASinglePassOfASingleMemberTellsNothing) {
  const auto one = Train(Adascaling({16}, 16));

  EXPECT_EQ(one[0].reports.back().contributors, 1u);
  EXPECT_EQ(one[0].reports.back().gain, 1);
}

}  // namespace
}  // namespace tactus::engine
