#include "policies/slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "policies/plan.h"

namespace tactus::policies {
namespace {

using Rates = std::vector<double>;
using Slices = std::vector<std::uint32_t>;

TEST(SlicesTest, AMemberWhoseLinkIsATenthMakesNone) {
  const Rates rates = {10, 10, 10, 1};

  EXPECT_EQ(SlicesFor(rates), (Slices{334, 333, 333, 0}));
  EXPECT_DOUBLE_EQ(SlicedSeconds(rates, {}), 1.5);
  EXPECT_DOUBLE_EQ(SlicedSeconds(rates, SlicesFor(rates)), 1);
}

// T = 6 / 9, s = (T r - 1) / 2
TEST(SlicesTest, ALinkOfHalfTheRateMakesLess) {
  const Rates rates = {2, 3, 2, 2};

  EXPECT_EQ(SlicesFor(rates), (Slices{167, 500, 167, 166}));
  EXPECT_NEAR(SlicedSeconds(rates, SlicesFor(rates)), 6.0 / 9, 2e-3);
}

TEST(SlicesTest, AlikeTheyAreNoneAndOfTwoThereIsNothingToSave) {
  EXPECT_TRUE(SlicesFor({5, 5, 5}).empty());
  EXPECT_TRUE(SlicesFor({5, 1}).empty());
  EXPECT_DOUBLE_EQ(SlicedSeconds({5, 1}, {}), SlicedSeconds({5, 1}, {1000, 0}));
}

TEST(SlicesTest, NoOtherSlicesTakeLess) {
  Rng rng(1);
  for (int seed = 0; seed < 1000; ++seed) {
    Rates rates;
    const std::uint64_t members = 3 + rng.Below(15);
    for (std::uint64_t i = 0; i < members; ++i) rates.push_back(0.1 + rng.Uniform() * 10);
    const Slices best = SlicesFor(rates);
    ASSERT_EQ(std::accumulate(best.begin(), best.end(), 0u), kSlicesWhole);
    // That thousandths are rounded costs the slowest who makes any at most one of them.
    const double rounding = static_cast<double>(members) / kSlicesWhole / std::ranges::min(rates);
    const double least = SlicedSeconds(rates, best) - rounding;
    ASSERT_GE(SlicedSeconds(rates, {}), least);
    for (int other = 0; other < 20; ++other) {
      Slices slices = best;
      const std::size_t from = rng.Below(members);
      const std::size_t to = rng.Below(members);
      const auto moved = static_cast<std::uint32_t>(rng.Below(slices[from] + 1));
      slices[from] -= moved;
      slices[to] += moved;
      ASSERT_GE(SlicedSeconds(rates, slices), least);
    }
  }
}

}  // namespace
}  // namespace tactus::policies
