#include "policies/delayed_sgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"

namespace tactus::policies {
namespace {

// Delayed updates of x^2 / 2 from x = 1 with the rate c; the first round has nothing to apply.
std::vector<double> DelayedTrace(const QuadraticStep& step, int updates) {
  std::vector<double> x = {1, 1};
  double velocity = 0;
  for (int k = 1; k < updates; ++k) {
    velocity = step.momentum * velocity + x[x.size() - 2];
    x.push_back(x.back() - step.rate_times_curvature * velocity);
  }
  return x;
}

void ExpectTrace(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-12) << "at " << i;
  }
}

DelayedGroup PaperGroup() {
  DelayedGroup group{.transfer_seconds = 6};
  for (const double seconds : {1.0, 1.5, 2.0, 4.0}) {
    group.members.push_back({.batch_seconds = seconds, .batch_samples = 16});
  }
  return group;
}

DelayedGroup RandomGroup(Rng& rng) {
  DelayedGroup group{.transfer_seconds = 3 * rng.Uniform(),
                     .batches_min = static_cast<std::uint32_t>(1 + rng.Below(3)),
                     .batches_max = static_cast<std::uint32_t>(3 + rng.Below(20))};
  const std::uint64_t members = 1 + rng.Below(5);
  for (std::uint64_t i = 0; i < members; ++i) {
    group.members.push_back({.batch_seconds = 0.05 + rng.Uniform(),
                             .batch_samples = static_cast<std::uint32_t>(1 + rng.Below(64))});
  }
  return group;
}

// Vectors of section 2.h of the specification.
TEST(DelayedSgdPaperTest, V1MeanGradientWeighsSamplesNotMembers) {
  const std::vector<double> mean = MeanGradient({{.sum = {3, 0}, .samples = 3},
                                                 {.sum = {1, 2}, .samples = 1},
                                                 {.sum = {4, -2}, .samples = 2}});

  ASSERT_EQ(mean.size(), 2u);
  EXPECT_NEAR(mean[0], 4.0 / 3, 1e-15);
  EXPECT_NEAR(mean[1], 0, 1e-15);
}

TEST(DelayedSgdPaperTest, V2TraceOnAQuadratic) {
  ExpectTrace(DelayedTrace({.rate_times_curvature = .1}, 8),
              {1, 1, 0.9, 0.8, 0.71, 0.63, 0.559, 0.496, 0.4401});
  ExpectTrace(DelayedTrace({.rate_times_curvature = .1, .momentum = .5}, 8),
              {1, 1, 0.9, 0.75, 0.585, 0.4275, 0.29025, 0.178875, 0.0941625});
}

TEST(DelayedSgdPaperTest, V3SpectralRadius) {
  const auto radius = [](double rate_times_curvature, double momentum) {
    return DelayedRadius({.rate_times_curvature = rate_times_curvature, .momentum = momentum});
  };

  EXPECT_NEAR(radius(.1, 0), 0.887298335, 1e-9);
  EXPECT_NEAR(radius(.25, 0), 0.5, 1e-9);
  EXPECT_NEAR(radius(.5, 0), 0.707106781, 1e-9);
  EXPECT_NEAR(radius(.99, 0), 0.994987437, 1e-9);
  EXPECT_NEAR(radius(1, 0), 1, 1e-9);
  EXPECT_NEAR(radius(1.01, 0), 1.00498756, 1e-8);
  EXPECT_NEAR(radius(.09, .9), 0.994987437, 1e-9);
  EXPECT_NEAR(radius(.1, .9), 1, 1e-9);
  EXPECT_NEAR(radius(.11, .9), 1.00498756, 1e-8);
}

TEST(DelayedSgdPaperTest, V4Timeline) {
  const std::vector<std::vector<std::uint32_t>> batches = {
      {4, 3, 2, 1}, {7, 4, 4, 2}, {7, 5, 3, 2}, {8, 6, 4, 2}};
  const std::vector<double> starts = {4, 10.5, 18, 26};
  const std::vector<double> begins = {4.5, 12, 20, 28};
  const std::vector<double> ends = {10.5, 18, 26, 34};

  const std::vector<DelayedRound> timeline = DelayedTimeline(PaperGroup(), 4);

  ASSERT_EQ(timeline.size(), 4u);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_EQ(timeline[k].batches, batches[k]) << "round " << k;
    EXPECT_NEAR(timeline[k].start_seconds, starts[k], 1e-12) << "round " << k;
    EXPECT_NEAR(timeline[k].transfer_begin_seconds, begins[k], 1e-12) << "round " << k;
    EXPECT_NEAR(timeline[k].transfer_end_seconds, ends[k], 1e-12) << "round " << k;
  }
}

TEST(DelayedSgdPaperTest, V4PaceOf200Rounds) {
  const DelayedPace pace = PredictDelayedPace(PaperGroup(), 200);

  EXPECT_NEAR(pace.samples_per_second, 38.4818976, 1e-7);
  EXPECT_NEAR(pace.samples_per_round, 308.24, 1e-9);
}

TEST(DelayedSgdTest, MomentumCostsMostOfTheStableRange) {
  EXPECT_DOUBLE_EQ(DelayedStabilityLimit(0), 1);
  EXPECT_DOUBLE_EQ(SynchronousStabilityLimit(0), 2);
  EXPECT_DOUBLE_EQ(DelayedSmoothLimit(0), 0.25);
  EXPECT_NEAR(DelayedStabilityLimit(0.9), 0.1, 1e-15);
  EXPECT_DOUBLE_EQ(SynchronousStabilityLimit(0.9), 3.8);
  EXPECT_NEAR(kDelayedConvergenceLimit * (1 + kDelayedConvergenceLimit), 1, 1e-15);
}

TEST(DelayedSgdTest, WithoutTransferEqualMembersMakeTheLeastEachRound) {
  const DelayedGroup group{.members = {3, DelayedMember{.batch_seconds = 0.7, .batch_samples = 8}},
                           .batches_min = 2};

  for (const DelayedRound& round : DelayedTimeline(group, 50)) {
    ASSERT_EQ(round.batches, (std::vector<std::uint32_t>{2, 2, 2}));
  }
}

TEST(DelayedSgdTest, AMemberWithoutSamplesKeepsNobodyWaiting) {
  DelayedGroup group = PaperGroup();
  group.members.push_back({.batch_seconds = 1000, .batch_samples = 0});

  const DelayedPace pace = PredictDelayedPace(group, 200);

  EXPECT_NEAR(pace.samples_per_second, 38.4818976, 1e-7);
}

TEST(DelayedSgdTest, AMemberThatHasAllItMayWaits) {
  const DelayedGroup group{.members = {{.batch_seconds = 1}, {.batch_seconds = 10}},
                           .batches_max = 3};

  const std::vector<DelayedRound> timeline = DelayedTimeline(group, 2);

  EXPECT_EQ(timeline[0].batches, (std::vector<std::uint32_t>{3, 1}));
  EXPECT_EQ(timeline[1].batches, (std::vector<std::uint32_t>{3, 1}));
  EXPECT_DOUBLE_EQ(timeline[1].start_seconds, 20);
}

// The invariants of section 2.g that are mathematics.
TEST(DelayedSgdPropertyTest, MeanGradientIgnoresHowSamplesAreSplit) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    std::vector<GradientSum> members(1 + rng.Below(5));
    GradientSum whole{.sum = {0, 0}};
    for (GradientSum& member : members) member.sum = {0, 0};
    for (int sample = 0; sample < 50; ++sample) {
      GradientSum& member = members[rng.Below(members.size())];
      for (std::size_t i = 0; i < 2; ++i) {
        const double value = rng.Normal();
        member.sum[i] += value;
        whole.sum[i] += value;
      }
      ++member.samples;
      ++whole.samples;
    }

    const std::vector<double> split = MeanGradient(members);
    const std::vector<double> together = MeanGradient({whole});

    ASSERT_NEAR(split[0], together[0], 1e-12) << "seed " << seed;
    ASSERT_NEAR(split[1], together[1], 1e-12) << "seed " << seed;
  }
}

TEST(DelayedSgdPropertyTest, RadiusIsBelowOneExactlyWithinTheLimit) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const double momentum = 0.99 * rng.Uniform();
    const double limit = DelayedStabilityLimit(momentum);
    const double part = 0.001 + 0.998 * rng.Uniform();

    ASSERT_LT(DelayedRadius({.rate_times_curvature = limit * part, .momentum = momentum}), 1)
        << "seed " << seed;
    ASSERT_GT(DelayedRadius({.rate_times_curvature = limit * (1 + part), .momentum = momentum}), 1)
        << "seed " << seed;
  }
}

TEST(DelayedSgdOracleTest, ErrorShrinksAsTheRadiusSays) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    QuadraticStep step{.momentum = 0.9 * rng.Uniform()};
    step.rate_times_curvature = DelayedStabilityLimit(step.momentum) * (0.01 + 1.2 * rng.Uniform());
    // The updates are linear: divided by the radius each time, the error neither grows nor shrinks.
    const double radius = DelayedRadius(step);
    double before = 1;
    double x = 1;
    double velocity = 0;
    double early = 0;
    double late = 0;
    for (int k = 0; k < 2000; ++k) {
      velocity = step.momentum * velocity + before;
      before = x / radius;
      x = (x - step.rate_times_curvature * velocity) / radius;
      velocity /= radius;
      if (k >= 500 && k < 700) early = std::max(early, std::abs(x));
      if (k >= 1800) late = std::max(late, std::abs(x));
    }

    // Two nearly equal roots give k radius^k: at most ln(2000 / 700) more, a thousandth an update.
    ASSERT_NEAR(std::log(late / early), 0, 1.1) << "seed " << seed;
  }
}

TEST(DelayedSgdPropertyTest, NothingOscillatesUpToTheSmoothLimit) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const double momentum = 0.9 * rng.Uniform();
    const std::vector<double> x =
        DelayedTrace({.rate_times_curvature = DelayedSmoothLimit(momentum) * rng.Uniform(),
                      .momentum = momentum},
                     200);

    for (const double value : x) ASSERT_GT(value, 0) << "seed " << seed;
  }
}

TEST(DelayedSgdPropertyTest, TimelineKeepsItsOrder) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const DelayedGroup group = RandomGroup(rng);
    const std::vector<DelayedRound> timeline = DelayedTimeline(group, 30);
    double transfer_end = 0;
    double start = 0;
    for (const DelayedRound& round : timeline) {
      ASSERT_GE(round.start_seconds, transfer_end) << "seed " << seed;
      ASSERT_GE(round.transfer_begin_seconds, round.start_seconds) << "seed " << seed;
      transfer_end = round.transfer_end_seconds;
      for (std::size_t i = 0; i < round.batches.size(); ++i) {
        ASSERT_GE(round.batches[i], group.batches_min) << "seed " << seed;
        ASSERT_LE(round.batches[i], group.batches_max) << "seed " << seed;
        // No member begins a round before the former one was closed.
        const double most =
            std::ceil((round.start_seconds - start) / group.members[i].batch_seconds + 1e-6);
        ASSERT_LE(round.batches[i], std::max<double>(group.batches_min, most)) << "seed " << seed;
      }
      start = round.start_seconds;
    }
  }
}

TEST(DelayedSgdPropertyTest, PaceNeverExceedsWhatTheDevicesCompute) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const DelayedGroup group = RandomGroup(rng);
    double limit = 0;
    for (const DelayedMember& member : group.members) {
      limit += member.batch_samples / member.batch_seconds;
    }

    ASSERT_LE(PredictDelayedPace(group, 50).samples_per_second, limit * (1 + 1e-9))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::policies
