#include "policies/delayed_sgd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/rng.h"

namespace tactus::policies {
namespace {

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

// By how much a step of sgd on c x^2 / 2 stretches what is there, in the long run: the slow twin of
// the limits, by going so many steps. eta is 1, so that c is eta lambda.
enum class Gradient { kCommon, kLate, kAhead };

double SpectralRadius(double c, double momentum, Gradient gradient) {
  constexpr int kSteps = 4000;
  double x = 1, x_before = 0.7, v = 0.3, v_before = -0.2;
  double growth = 0;
  for (int step = 0; step < 2 * kSteps; ++step) {
    const double at = gradient == Gradient::kCommon ? x
                      : gradient == Gradient::kLate ? x_before
                                                    : x_before - momentum * v_before;
    v_before = v;
    v = momentum * v + c * at;
    x_before = x;
    x -= v;
    const double length = std::hypot(std::hypot(x, x_before), std::hypot(v, v_before));
    x /= length, x_before /= length, v /= length, v_before /= length;
    if (step >= kSteps) growth += std::log(length);
  }
  return std::exp(growth / kSteps);
}

TEST(StabilityLimitTest, IsWhereTheSpectralRadiusLeavesTheUnitCircle) {
  for (const double momentum : {0.0, 0.3, 0.5, 0.9, 0.95}) {
    SCOPED_TRACE(momentum);
    for (const auto& [gradient, limit] :
         {std::pair(Gradient::kCommon, StabilityLimit(momentum)),
          std::pair(Gradient::kLate, DelayedStabilityLimit(momentum, false)),
          std::pair(Gradient::kAhead, DelayedStabilityLimit(momentum, true))}) {
      EXPECT_LT(SpectralRadius(0.98 * limit, momentum, gradient), 1);
      EXPECT_GT(SpectralRadius(1.02 * limit, momentum, gradient), 1);
    }
  }
}

// V3 of section 2.h of the specification, and what looking ahead makes of it.
TEST(StabilityLimitTest, LookingAheadLeavesTwoAndAHalfTimesAsMuchAtAMomentumOfNineTenths) {
  EXPECT_NEAR(DelayedStabilityLimit(0.9, false), 0.1, 1e-12);
  EXPECT_NEAR(DelayedStabilityLimit(0.9, true), 0.253136, 1e-5);
  EXPECT_NEAR(StabilityLimit(0.9), 3.8, 1e-12);
}

}  // namespace
}  // namespace tactus::policies
