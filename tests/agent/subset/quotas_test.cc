#include "agent/subset/quotas.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::subset {
namespace {

using testing::ElementsAre;

std::vector<std::uint64_t> Of(std::vector<std::uint64_t> sizes, std::uint64_t budget) {
  return Quotas(sizes, budget);
}

// Section 8h, vector 3; rounding up gives nine.
TEST(QuotasPaperTest, GoByLargestRemainder) {
  EXPECT_THAT(Of({50, 30, 20}, 7), ElementsAre(4, 2, 1));
}

TEST(QuotasTest, WhoHasAnythingGetsAtLeastOne) {
  EXPECT_THAT(Of({1000, 1, 0, 1}, 4), ElementsAre(2, 1, 0, 1));
}

TEST(QuotasTest, AllIsAll) { EXPECT_THAT(Of({3, 0, 5}, 8), ElementsAre(3, 0, 5)); }

TEST(QuotasPropertyTest, SumUpToTheBudgetWithinTheSizes) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    std::vector<std::uint64_t> sizes;
    std::uint64_t groups = 0;
    for (std::uint64_t i = 0; i < 1 + rng.Below(12); ++i) {
      sizes.push_back(rng.Below(4) == 0 ? 0 : rng.Below(1 + rng.Below(500)));
      groups += sizes.back() > 0 ? 1 : 0;
    }
    const std::uint64_t total = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
    const std::uint64_t budget = groups + rng.Below(total - groups + 1);

    const std::vector<std::uint64_t> quotas = Quotas(sizes, budget);

    ASSERT_EQ(std::accumulate(quotas.begin(), quotas.end(), std::uint64_t{0}), budget);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      ASSERT_LE(quotas[i], sizes[i]);
      ASSERT_EQ(quotas[i] == 0, sizes[i] == 0);
    }
  }
}

}  // namespace
}  // namespace tactus::subset
