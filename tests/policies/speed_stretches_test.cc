#include "policies/speed_stretches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tactus::policies {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

// A round of rank `rank` with 10 samples a step.
Report Round(std::uint32_t rank, double compute_seconds, std::uint32_t steps = 1,
             std::uint64_t version = 1) {
  return {.plan_version = version,
          .rank = rank,
          .samples = 10 * steps,
          .steps = steps,
          .compute_seconds = compute_seconds,
          .round_seconds = 0.04};
}

class SpeedStretchesTest : public testing::Test {
 protected:
  SpeedStretchesTest() { stretches_.Start(2); }

  // A round of both ranks.
  std::optional<SpeedStretch> Run(double first, double second, std::uint32_t steps = 1,
                                  std::uint64_t version = 1) {
    EXPECT_FALSE(stretches_.Observe(Round(0, first, steps, version)));
    return stretches_.Observe(Round(1, second, steps, version));
  }

  SpeedStretches stretches_;
};

TEST_F(SpeedStretchesTest, AStretchIsATenthOfASecondOfRounds) {
  EXPECT_FALSE(Run(9, 9));  // left out
  EXPECT_FALSE(Run(0.01, 0.04));
  EXPECT_FALSE(Run(0.02, 0.04));
  const std::optional<SpeedStretch> stretch = Run(0.03, 0.04);

  ASSERT_TRUE(stretch);
  EXPECT_NEAR(stretch->seconds, 0.12, 1e-12);
  EXPECT_EQ(stretch->samples, 60);
  EXPECT_THAT(stretch->speeds, ElementsAre(DoubleNear(500, 1e-9), DoubleNear(250, 1e-9)));
  EXPECT_THAT(stretch->sizes, ElementsAre(10, 10));
  EXPECT_EQ(stretch->plan_version, 1u);
  EXPECT_FALSE(Run(0.01, 0.04)) << "the next begins";
}

TEST_F(SpeedStretchesTest, AFirstRoundOfManyStepsCounts) {
  EXPECT_FALSE(Run(0.2, 0.2, SpeedStretches::kStepsMin - 1));
  EXPECT_FALSE(Run(0.2, 0.2, SpeedStretches::kStepsMin, 2));
  EXPECT_FALSE(Run(0.2, 0.2, 1, 2));
  const std::optional<SpeedStretch> stretch = Run(0.2, 0.2, 1, 2);

  ASSERT_TRUE(stretch);
  EXPECT_EQ(stretch->samples, 2 * 10 * (SpeedStretches::kStepsMin + 2));
}

TEST_F(SpeedStretchesTest, AnotherPlanBeginsAnother) {
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(Run(0.01, 0.01));
  EXPECT_FALSE(Run(0.01, 0.01, 1, 2));  // left out
  EXPECT_FALSE(Run(0.01, 0.01, 1, 2));
  EXPECT_FALSE(Run(5, 5, 1, 1)) << "late";
  EXPECT_FALSE(Run(0.01, 0.01, 1, 2));
  const std::optional<SpeedStretch> stretch = Run(0.01, 0.01, 1, 2);

  ASSERT_TRUE(stretch);
  EXPECT_THAT(stretch->speeds, ElementsAre(DoubleNear(1000, 1e-9), DoubleNear(1000, 1e-9)));
}

TEST_F(SpeedStretchesTest, ReportsThatSayNothingAreLeftOut) {
  Run(1, 1);
  for (const double seconds :
       {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    EXPECT_FALSE(stretches_.Observe(Round(0, seconds)));
  }
  EXPECT_FALSE(stretches_.Observe(Round(2, 1)));
  EXPECT_FALSE(stretches_.Observe(Round(std::numeric_limits<std::uint32_t>::max(), 1)));
  EXPECT_FALSE(stretches_.Observe({.plan_version = 1, .rank = 0, .compute_seconds = 1}));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(Run(0.01, 0.01));
  const std::optional<SpeedStretch> stretch = Run(0.01, 0.01);

  ASSERT_TRUE(stretch);
  EXPECT_THAT(stretch->speeds, ElementsAre(DoubleNear(1000, 1e-9), DoubleNear(1000, 1e-9)));
}

}  // namespace
}  // namespace tactus::policies
