#include "policies/adascale.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"

namespace tactus::policies {
namespace {

using Gradient = std::vector<double>;

constexpr double kDigits = 5e-9;  // relative: the vectors are given to 9 digits
constexpr double kBaseBatch = 32;

struct MicroBatch {
  double samples = kBaseBatch;
  Gradient gradient{};
};

double Norm2(const Gradient& gradient) {
  double sum = 0;
  for (const double value : gradient) sum += value * value;
  return sum;
}

// What the members of a group would know, from the gradients themselves.
UpdateFacts FactsOf(const std::vector<MicroBatch>& batches) {
  UpdateFacts facts{.contributors = static_cast<std::uint32_t>(batches.size())};
  Gradient mean(batches.front().gradient.size(), 0.0);
  for (const MicroBatch& batch : batches) {
    facts.samples += batch.samples;
    facts.samples_gradient_norm2 += batch.samples * Norm2(batch.gradient);
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += batch.samples * batch.gradient[i];
  }
  for (double& value : mean) value /= facts.samples;
  facts.gradient_norm2 = Norm2(mean);
  return facts;
}

// Gradients t0 to t4 of section 3.h, each of one base batch.
std::vector<MicroBatch> PaperBatches(int t) {
  static const std::array<std::array<Gradient, 4>, 5> gradients = {{
      {{{1, 2, 0}, {0, 1, 1}, {2, 1, -1}, {1, 0, 0}}},
      {{{.5, 1, 0}, {1, 1, 0}, {0, 2, 1}, {1, 0, 1}}},
      {{{.2, .1, 0}, {-.1, .3, .2}, {.4, -.2, .1}, {.1, .2, -.3}}},
      {{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}},
      {{{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}}},
  }};
  std::vector<MicroBatch> batches;
  for (const Gradient& gradient : gradients[t]) batches.push_back({.gradient = gradient});
  return batches;
}

std::vector<double> LaggedGains(const AdascaleOptions& options) {
  Adascale adascale(options);
  std::vector<double> gains;
  for (int t = 0; t < 5; ++t) {
    gains.push_back(adascale.GainFor(4 * kBaseBatch));
    adascale.Fold(FactsOf(PaperBatches(t)));
  }
  return gains;
}

std::vector<double> InclusiveGains(const AdascaleOptions& options) {
  Adascale adascale(options);
  std::vector<double> gains;
  for (int t = 0; t < 5; ++t) {
    adascale.Fold(FactsOf(PaperBatches(t)));
    gains.push_back(adascale.GainFor(4 * kBaseBatch));
  }
  return gains;
}

void ExpectAll(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], kDigits * expected[i]) << "at " << i;
  }
}

std::vector<MicroBatch> RandomBatches(Rng& rng, std::size_t count, bool equal) {
  std::vector<MicroBatch> batches(count);
  const double mean = 2 * rng.Uniform();
  const double samples = 1.0 + static_cast<double>(rng.Below(64));
  for (MicroBatch& batch : batches) {
    batch.samples = equal ? samples : 1.0 + static_cast<double>(rng.Below(64));
    for (int i = 0; i < 5; ++i) batch.gradient.push_back(mean + rng.Normal());
  }
  return batches;
}

// The table and the vectors of section 3.h of the specification.
TEST(AdascalePaperTest, TableOfEstimatesAndInstantaneousGains) {
  const std::array<GradientMoments, 5> unclipped = {{{2, 1.5},
                                                     {1.22916667, 1.33333333},
                                                     {0.136666667, -0.00166666667},
                                                     {0, 3},
                                                     {1.33333333, -0.333333333}}};
  const std::array<double, 5> gains = {1.75, 1.56190476, 4, 1.00000025, 4};

  for (int t = 0; t < 5; ++t) {
    const auto moments = EstimateMoments(FactsOf(PaperBatches(t)), kBaseBatch);
    ASSERT_TRUE(moments.has_value());
    EXPECT_NEAR(moments->sigma2, unclipped[t].sigma2, 1e-8) << "at " << t;
    EXPECT_NEAR(moments->mu2, unclipped[t].mu2, 1e-8) << "at " << t;
    EXPECT_NEAR(Gain(Clipped(*moments), 4), gains[t], kDigits * gains[t]) << "at " << t;
  }
}

TEST(AdascalePaperTest, V1LaggedGains) {
  Adascale adascale({.base_batch = kBaseBatch});
  double progress = 0;
  for (int t = 0; t < 5; ++t) {
    progress += adascale.GainFor(4 * kBaseBatch);
    adascale.Fold(FactsOf(PaperBatches(t)));
  }

  ExpectAll(LaggedGains({.base_batch = kBaseBatch}), {1, 1.75, 1.66523605, 1.6869437, 1.37819542});
  EXPECT_NEAR(progress, 7.48037518, 1e-8);
  EXPECT_NEAR(adascale.moments().sigma2, 0.939833533, 1e-9);
  EXPECT_NEAR(adascale.moments().mu2, 1.16666667, 1e-8);
}

TEST(AdascalePaperTest, V2InclusiveGains) {
  ExpectAll(InclusiveGains({.base_batch = kBaseBatch}),
            {1.75, 1.66523605, 1.6869437, 1.37819542, 1.50289851});
}

TEST(AdascalePaperTest, V3DebiasedGains) {
  ExpectAll(InclusiveGains({.base_batch = kBaseBatch, .averaging = Averaging::kDebiased}),
            {1.75, 1.66504938, 1.68689269, 1.37643993, 1.50237098});
}

TEST(AdascalePaperTest, V4ShortMemories) {
  const AdascaleOptions half{.base_batch = kBaseBatch, .theta = 0.5};

  ExpectAll(LaggedGains(half), {1, 1.75, 1.66523605, 1.70825142, 1.16722164});
  ExpectAll(InclusiveGains(half), {1.75, 1.66523605, 1.70825142, 1.16722164, 1.57831379});
  ExpectAll(
      InclusiveGains({.base_batch = kBaseBatch, .averaging = Averaging::kDebiased, .theta = 0.5}),
      {1.75, 1.63313609, 1.69284011, 1.12760101, 1.56843293});
  ExpectAll(LaggedGains({.base_batch = kBaseBatch, .theta = 0.0}),
            {1, 1.75, 1.56190476, 4, 1.00000025});
}

TEST(AdascalePaperTest, V5MicroBatchesOfOtherSizesThanTheBase) {
  std::vector<MicroBatch> doubled = PaperBatches(0);
  for (MicroBatch& batch : doubled) batch.samples = 2 * kBaseBatch;
  std::vector<MicroBatch> halved = PaperBatches(0);
  for (const MicroBatch& batch : PaperBatches(1)) halved.push_back(batch);
  for (MicroBatch& batch : halved) batch.samples = kBaseBatch / 2;

  const auto of_doubled = EstimateMoments(FactsOf(doubled), kBaseBatch);
  const auto of_halved = EstimateMoments(FactsOf(halved), kBaseBatch);

  ASSERT_TRUE(of_doubled && of_halved);
  EXPECT_NEAR(of_doubled->sigma2, 4, 1e-12);
  EXPECT_NEAR(of_doubled->mu2, 1.5, 1e-12);
  EXPECT_NEAR(Gain(*of_doubled, 8), 2.75, 1e-12);
  EXPECT_NEAR(of_halved->sigma2, 0.747767857, 1e-9);
  EXPECT_NEAR(of_halved->mu2, 1.53571429, 1e-8);
  EXPECT_NEAR(Gain(*of_halved, 4), 1.32555879, 1e-8);
}

TEST(AdascalePaperTest, V6UnequalMicroBatches) {
  std::vector<MicroBatch> batches = PaperBatches(0);
  const std::array<double, 4> sizes = {64, 32, 16, 16};
  for (std::size_t i = 0; i < 4; ++i) batches[i].samples = sizes[i];

  const UpdateFacts facts = FactsOf(batches);
  const auto per_sample = EstimateMoments(facts, 1);
  const auto moments = EstimateMoments(facts, kBaseBatch);

  ASSERT_TRUE(per_sample && moments);
  EXPECT_NEAR(facts.samples_gradient_norm2, 496, 1e-12);
  EXPECT_NEAR(facts.gradient_norm2, 2.671875, 1e-12);
  EXPECT_NEAR(per_sample->sigma2, 51.3333333, 1e-7);
  EXPECT_NEAR(moments->sigma2, 1.60416667, 1e-8);
  EXPECT_NEAR(moments->mu2, 2.27083333, 1e-8);
  EXPECT_NEAR(Gain(*moments, 4), 1.4502924, 1e-7);
}

TEST(AdascaleTest, AWindowOfFourBaseBatchesHolds250Samples) {
  Adascale adascale({.base_batch = kBaseBatch});
  for (int t = 0; t < 250; ++t) adascale.Fold(FactsOf(PaperBatches(0)));
  const GradientMoments before = adascale.moments();

  adascale.Fold(FactsOf(PaperBatches(1)));

  // From sample 251 on the newest counts for S / 1000, not for 1 / 251.
  EXPECT_NEAR(adascale.moments().sigma2, before.sigma2 + 0.004 * (1.22916667 - 2), 1e-9);
}

TEST(AdascaleTest, AThousandBaseBatchesNeedNoMemory) {
  Adascale adascale({.base_batch = 1});
  UpdateFacts facts{
      .samples = 2000, .contributors = 2, .samples_gradient_norm2 = 8000, .gradient_norm2 = 1};
  adascale.Fold(facts);
  facts.gradient_norm2 = 2;

  adascale.Fold(facts);

  EXPECT_DOUBLE_EQ(adascale.moments().sigma2, EstimateMoments(facts, 1)->sigma2);
}

TEST(AdascaleTest, ASingleContributorLeavesTheAverages) {
  Adascale adascale({.base_batch = kBaseBatch});
  adascale.Fold(FactsOf(PaperBatches(0)));
  const GradientMoments before = adascale.moments();

  adascale.Fold(
      {.samples = 128, .contributors = 1, .samples_gradient_norm2 = 640, .gradient_norm2 = 5});

  EXPECT_EQ(adascale.moments(), before);

  adascale.Fold(FactsOf(PaperBatches(1)));

  EXPECT_NEAR(adascale.GainFor(4 * kBaseBatch), 1.66523605, 1e-8);
}

TEST(AdascaleTest, FactsThatAreNotFiniteChangeNothing) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Adascale adascale({.base_batch = kBaseBatch});
  adascale.Fold(FactsOf(PaperBatches(0)));
  const Adascale::State before = adascale.state();

  for (const double bad : {kNan, kInfinity, -kInfinity, -1.0, 1e200}) {
    UpdateFacts facts = FactsOf(PaperBatches(1));
    facts.gradient_norm2 = bad;
    adascale.Fold(facts);
    facts = FactsOf(PaperBatches(1));
    facts.samples_gradient_norm2 = bad;
    adascale.Fold(facts);
    EXPECT_FALSE(Usable(facts)) << bad;
  }
  adascale.Fold({.samples = 0, .contributors = 0});

  EXPECT_EQ(adascale.state(), before);
}

TEST(AdascaleTest, AveragesOutliveAChangeOfScale) {
  Adascale adascale({.base_batch = kBaseBatch});
  adascale.Fold(FactsOf(PaperBatches(0)));

  EXPECT_NEAR(adascale.GainFor(4 * kBaseBatch), 3.5 / 2, 1e-12);
  EXPECT_NEAR(adascale.GainFor(16 * kBaseBatch), 3.5 / (2.0 / 16 + 1.5), 1e-12);
  EXPECT_NEAR(adascale.GainFor(0.5 * kBaseBatch), 3.5 / 5.5, 1e-12);
}

TEST(AdascaleTest, AnotherBaseBatchHasAnotherVariance) {
  Adascale before({.base_batch = kBaseBatch});
  before.Fold(FactsOf(PaperBatches(0)));
  Adascale after({.base_batch = 2 * kBaseBatch});
  Adascale afresh({.base_batch = 2 * kBaseBatch});
  afresh.Fold(FactsOf(PaperBatches(0)));

  after.Restore(before.state());

  EXPECT_NEAR(after.moments().sigma2, afresh.moments().sigma2, 1e-12);
  EXPECT_NEAR(after.moments().mu2, afresh.moments().mu2, 1e-12);
}

TEST(AdascaleTest, GoesOnFromAStateWithTheSameBits) {
  for (const Averaging averaging : {Averaging::kWindow, Averaging::kDebiased}) {
    const AdascaleOptions options{.base_batch = kBaseBatch, .averaging = averaging};
    Adascale whole(options);
    for (int t = 0; t < 3; ++t) whole.Fold(FactsOf(PaperBatches(t)));
    Adascale restored(options);
    restored.Restore(whole.state());

    for (int t = 3; t < 5; ++t) whole.Fold(FactsOf(PaperBatches(t)));
    for (int t = 3; t < 5; ++t) restored.Fold(FactsOf(PaperBatches(t)));

    EXPECT_EQ(restored.state(), whole.state());
  }
}

// The invariants of section 3.g.
TEST(AdascalePropertyTest, GainIsOneForTheBaseBatchAndBetweenOneAndTheScaleElse) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const GradientMoments moments = Clipped(
        {.sigma2 = std::exp(20 * (rng.Uniform() - 0.5)), .mu2 = std::exp(20 * rng.Normal())});
    const double scale = std::exp(10 * (rng.Uniform() - 0.3));
    const double gain = Gain(moments, scale);

    ASSERT_EQ(Gain(moments, 1), 1) << "seed " << seed;
    ASSERT_GE(gain, std::min(1.0, scale)) << "seed " << seed;
    ASSERT_LE(gain, std::max(1.0, scale)) << "seed " << seed;
  }
}

TEST(AdascalePropertyTest, GainGrowsWithTheScaleAndWithTheNoise) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const GradientMoments moments{.sigma2 = 0.01 + rng.Uniform(), .mu2 = 0.01 + rng.Uniform()};
    const GradientMoments noisier{.sigma2 = 1.5 * moments.sigma2, .mu2 = moments.mu2};
    const double scale = 1.01 + 100 * rng.Uniform();

    ASSERT_GT(Gain(moments, 1.1 * scale), Gain(moments, scale)) << "seed " << seed;
    ASSERT_GT(Gain(noisier, scale), Gain(moments, scale)) << "seed " << seed;
  }
}

TEST(AdascalePropertyTest, EqualGradientsGiveOneAndCancellingOnesTheScale) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t pairs = 1 + rng.Below(4);
    const std::vector<MicroBatch> distinct = RandomBatches(rng, pairs, true);
    std::vector<MicroBatch> equal(2 * pairs, distinct.front());
    std::vector<MicroBatch> cancelling = distinct;
    for (MicroBatch batch : distinct) {
      for (double& value : batch.gradient) value = -value;
      cancelling.push_back(batch);
    }
    const double scale = FactsOf(equal).samples;

    ASSERT_NEAR(Gain(Clipped(*EstimateMoments(FactsOf(equal), 1)), scale), 1, 1e-3)
        << "seed " << seed;
    ASSERT_NEAR(Gain(Clipped(*EstimateMoments(FactsOf(cancelling), 1)), scale), scale, 1e-9 * scale)
        << "seed " << seed;
  }
}

TEST(AdascalePropertyTest, GainIgnoresTheUnitOfTheGradients) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    std::vector<MicroBatch> batches = RandomBatches(rng, 2 + rng.Below(6), false);
    const double factor = std::exp(6 * (rng.Uniform() - 0.5));  // no floor becomes active
    const double gain = Gain(Clipped(*EstimateMoments(FactsOf(batches), 1)), 8);

    for (MicroBatch& batch : batches) {
      for (double& value : batch.gradient) value *= factor;
    }

    ASSERT_NEAR(Gain(Clipped(*EstimateMoments(FactsOf(batches), 1)), 8), gain, 1e-9)
        << "seed " << seed;
  }
}

TEST(AdascalePropertyTest, EstimatesAreUnbiasedForUnequalMicroBatches) {
  // Each sample's gradient is (1, 2) plus noise of variance 9 in each of 2 coordinates.
  constexpr int kUpdates = 40'000;
  const std::array<double, 4> sizes = {1, 7, 20, 4};
  Rng rng(1);
  GradientMoments sum;
  for (int update = 0; update < kUpdates; ++update) {
    std::vector<MicroBatch> batches;
    for (const double samples : sizes) {
      const double deviation = 3 / std::sqrt(samples);
      batches.push_back({.samples = samples,
                         .gradient = {1 + deviation * rng.Normal(), 2 + deviation * rng.Normal()}});
    }
    const auto moments = EstimateMoments(FactsOf(batches), 16);
    sum.sigma2 += moments->sigma2;
    sum.mu2 += moments->mu2;
  }

  // sigma2 = 18 / 16, of which one estimate is off by sqrt(2 / 6): 4 standard errors are 0.013.
  EXPECT_NEAR(sum.sigma2 / kUpdates, 18.0 / 16, 0.013);
  // mu2 = 5, of which one estimate is off by about 2 sqrt(5 * 9 / 32) = 2.4: 4 are 0.05.
  EXPECT_NEAR(sum.mu2 / kUpdates, 5, 0.05);
}

// In the paper's own terms, sigma2 = (S / n) (sum_i ||g_i||^2 - n ||g||^2) / (n - 1), mu2 =
// ||g||^2 - sigma2 / S; n = S is its case. Source: [adascale]; [fairscale] adascale.py for other n.
TEST(AdascaleOracleTest, UnequalEstimatesReduceToThoseOfEqualMicroBatches) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::vector<MicroBatch> batches = RandomBatches(rng, 2 + rng.Below(9), true);
    const double base_batch = 1 + static_cast<double>(rng.Below(100));
    const UpdateFacts facts = FactsOf(batches);
    const double scale = facts.samples / base_batch;
    const double count = facts.contributors;
    double norm2_sum = 0;
    for (const MicroBatch& batch : batches) norm2_sum += Norm2(batch.gradient);

    const auto general = EstimateMoments(facts, base_batch);
    const double sigma2 = scale / count * (norm2_sum - count * facts.gradient_norm2) / (count - 1);
    const double mu2 = facts.gradient_norm2 - sigma2 / scale;

    ASSERT_NEAR(general->sigma2, sigma2, 1e-9 * (1 + sigma2)) << "seed " << seed;
    ASSERT_NEAR(general->mu2, mu2, 1e-9 * (1 + facts.gradient_norm2)) << "seed " << seed;
  }
}

TEST(AdascaleOracleTest, DebiasedAverageIsTheWeightedSumOverItsWeights) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    MomentAverage average(Averaging::kDebiased);
    double sum = 0;
    double weights = 0;
    for (int i = 0; i < 20; ++i) {
      const double weight = 0.01 + 0.99 * rng.Uniform();
      const double value = rng.Normal();
      average.Fold({.sigma2 = value}, weight);
      sum = (1 - weight) * sum + weight * value;
      weights = (1 - weight) * weights + weight;
    }

    ASSERT_NEAR(average.state().moments.sigma2, sum / weights, 1e-9) << "seed " << seed;
  }
}

TEST(AdascalePropertyTest, StepTimesExpectedGradientNormIsTheSameAtEveryScale) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const GradientMoments moments{.sigma2 = 0.01 + rng.Uniform(), .mu2 = rng.Uniform()};
    const double scale = 1 + 100 * rng.Uniform();
    const double expected_norm2 = moments.sigma2 / scale + moments.mu2;

    ASSERT_NEAR(Gain(moments, scale) * expected_norm2, moments.sigma2 + moments.mu2, 1e-12)
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::policies
