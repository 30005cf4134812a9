#include "policies/fixed_cost.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "policies/observations.h"
#include "policies/plan.h"

namespace tactus::policies {
namespace {

// One member that takes (batch + fixed) / speed seconds a step.
class FixedCostTest : public testing::Test {
 protected:
  FixedCostTest() { seen_.Start({.members = 1}); }

  void Run(std::uint32_t batch, double fixed, double speed, int rounds) {
    if (plan_.batch_sizes != std::vector{batch}) {
      ++plan_.version;
      plan_.batch_sizes = {batch};
      seen_.Expect(plan_);
    }
    const double seconds = (batch + fixed) / speed;
    for (int i = 0; i < rounds; ++i) {
      seen_.Observe({.round = round_++,
                     .plan_version = plan_.version,
                     .samples = batch,
                     .loss_sum = batch * 1.0,
                     .steps = 1,
                     .compute_seconds = seconds,
                     .round_seconds = seconds,
                     .samples_global = batch,
                     .loss_mean_global = 1,
                     .contributors = 1});
      cost_.Look(batch, seen_);
    }
  }

  Observations seen_;
  FixedCost cost_;
  Plan plan_;
  std::uint64_t round_ = 0;
};

TEST_F(FixedCostTest, NothingIsKnownOfASingleTotal) {
  Run(64, 20, 100, 100);

  EXPECT_EQ(cost_.samples(), 0);
  EXPECT_DOUBLE_EQ(cost_.SpeedUp(64, 128), 1);
}

TEST_F(FixedCostTest, TwoTotalsTellIt) {
  Run(64, 20, 100, 100);
  Run(32, 20, 100, 100);

  EXPECT_NEAR(cost_.samples(), 20, 1e-6);
  EXPECT_NEAR(cost_.SpeedUp(32, 64), 2 * 52.0 / 84, 1e-6);
  EXPECT_DOUBLE_EQ(cost_.SpeedUp(32, 64) * cost_.SpeedUp(64, 32), 1);
}

TEST_F(FixedCostTest, IsNothingWhereThereIsNone) {
  Run(64, 0, 100, 100);
  Run(32, 0, 100, 100);

  EXPECT_EQ(cost_.samples(), 0);
}

// One of 100 such rounds.
TEST_F(FixedCostTest, ARoundThatTookLongCountsForLittle) {
  Run(64, 20, 100, 50);
  Run(64, 8000, 100, 1);
  Run(64, 20, 100, 49);
  Run(32, 20, 100, 100);

  EXPECT_NEAR(cost_.samples(), 20, 4);
}

TEST_F(FixedCostTest, IsNotLearnedFromTotalsThatAreNear) {
  Run(64, 20, 100, 100);
  Run(60, 20, 100, 100);

  EXPECT_EQ(cost_.samples(), 0);
}

TEST_F(FixedCostTest, IsNotLearnedBeforeTheNewTotalIsKnown) {
  Run(64, 20, 100, 100);
  Run(32, 20, 100, FixedCost::kRounds - 1);

  EXPECT_EQ(cost_.samples(), 0);
}

// Steps that do not grow with their samples, or shrink.
TEST_F(FixedCostTest, IsNoMoreThanIsBelieved) {
  Run(64, 20, 100, 100);
  Run(32, 100, 100, 100);

  EXPECT_DOUBLE_EQ(cost_.samples(), FixedCost::kShareMost * 32);
}

TEST_F(FixedCostTest, LaterChangesCountAsMuchAsAllBefore) {
  Run(64, 20, 100, 100);
  Run(32, 20, 100, 100);
  Run(64, 20, 100, 100);
  Run(32, 40, 100,
      100);  // as if 0.84 s and 0.72 s were steps of 64 and 32: F is 160, more than 128

  EXPECT_NEAR(cost_.samples(), (20 + FixedCost::kShareMost * 32) / 2, 1e-6);
}

}  // namespace
}  // namespace tactus::policies
