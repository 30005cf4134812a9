#include "policies/proportional_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace tactus::policies {
namespace {

using Sizes = std::vector<std::uint32_t>;
using Speeds = std::vector<double>;

std::uint64_t Sum(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

double LongestTime(const Sizes& sizes, const Speeds& speeds) {
  double longest = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) longest = std::max(longest, sizes[i] / speeds[i]);
  return longest;
}

// The dumb twin: the least longest time over every split of `left` among ranks `rank` and up.
double BestOfAllSplits(const Speeds& speeds, std::uint64_t left, const BatchOptions& options,
                       std::size_t rank = 0) {
  if (rank == speeds.size()) return left == 0 ? 0 : INFINITY;
  double best = INFINITY;
  for (std::uint64_t size = options.batch_min;
       size <= std::min<std::uint64_t>(options.batch_max, left); ++size) {
    const double rest = BestOfAllSplits(speeds, left - size, options, rank + 1);
    best = std::min(best, std::max(static_cast<double>(size) / speeds[rank], rest));
  }
  return best;
}

Speeds RandomSpeeds(Rng& rng, std::size_t members, double spread) {
  Speeds speeds;
  for (std::size_t i = 0; i < members; ++i) {
    speeds.push_back(std::exp(spread * (2 * rng.Uniform() - 1)));
  }
  return speeds;
}

TEST(ProportionalSharesTest, FollowTheSpeeds) {
  EXPECT_EQ(ProportionalShares({1, 1, 0.5, 0.25}, 44, {}), (Sizes{16, 16, 8, 4}));
}

TEST(ProportionalSharesTest, DoNotDependOnTheUnitOfSpeed) {
  EXPECT_EQ(ProportionalShares({100, 100, 50, 25}, 128, {}),
            ProportionalShares({4e-6, 4e-6, 2e-6, 1e-6}, 128, {}));
}

TEST(ProportionalSharesTest, GiveALeftOverSampleToTheLowerOfEqualRanks) {
  EXPECT_EQ(ProportionalShares({1, 1, 1}, 8, {}), (Sizes{3, 3, 2}));
}

TEST(ProportionalSharesTest, PutALeftOverSampleWhereItIsDoneSoonest) {
  // Quotas 7.2 and 0.8: by largest remainder 7 and 1, where the slow one needs 1 / 0.1 = 10 s; all
  // eight on the fast one need 8 / 0.9 = 8.9 s.
  EXPECT_EQ(ProportionalShares({0.9, 0.1}, 8, {.batch_min = 0}), (Sizes{8, 0}));
}

TEST(ProportionalSharesTest, OfOneWorkerAreTheWhole) {
  EXPECT_EQ(ProportionalShares({0.001}, 77, {}), (Sizes{77}));
}

TEST(ProportionalSharesTest, OfNobodyAreNone) {
  EXPECT_TRUE(ProportionalShares({}, 8, {}).empty());
}

TEST(ProportionalSharesTest, HandOverToTheOthersWhatABoundKeepsFromOne) {
  EXPECT_EQ(ProportionalShares({8, 1, 1}, 20, {.batch_max = 10}), (Sizes{10, 5, 5}));
  EXPECT_EQ(ProportionalShares({100, 100, 1}, 20, {.batch_min = 4}), (Sizes{8, 8, 4}));
}

TEST(ProportionalSharesTest, ClampATotalThatTheBoundsDoNotAllow) {
  EXPECT_EQ(ProportionalShares({1, 2}, 1, {.batch_min = 4, .batch_max = 6}), (Sizes{4, 4}));
  EXPECT_EQ(ProportionalShares({1, 2}, 99, {.batch_min = 4, .batch_max = 6}), (Sizes{6, 6}));
}

TEST(ProportionalSharesTest, StandExtremeSpeeds) {
  const Sizes sizes = ProportionalShares({1e-12, 1e12, 1e300, 1e-300}, 1000, {});

  EXPECT_EQ(sizes, (Sizes{1, 1, 997, 1}));
}

TEST(ProportionalSharesDeathTest, RefuseASpeedThatIsNone) {
  EXPECT_DEATH(ProportionalShares({1, 0}, 8, {}), "check failed");
  EXPECT_DEATH(ProportionalShares({1, NAN}, 8, {}), "check failed");
  EXPECT_DEATH(ProportionalShares({1, INFINITY}, 8, {}), "check failed");
}

TEST(ProportionalSharesPropertyTest, SumIsExactAndBoundsAreKept) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t members = 1 + rng.Below(64);
    BatchOptions options;
    options.batch_min = static_cast<std::uint32_t>(rng.Below(10));
    options.batch_max = static_cast<std::uint32_t>(options.batch_min + 1 + rng.Below(500));
    const std::uint64_t total = rng.Below(members * 300 + 1);
    const std::uint64_t allowed =
        std::clamp(total, members * options.batch_min, members * options.batch_max);

    const Sizes sizes = ProportionalShares(RandomSpeeds(rng, members, 5), total, options);

    ASSERT_EQ(sizes.size(), members) << "seed " << seed;
    ASSERT_EQ(Sum(sizes), allowed) << "seed " << seed;
    for (const std::uint32_t size : sizes) {
      ASSERT_GE(size, options.batch_min) << "seed " << seed;
      ASSERT_LE(size, options.batch_max) << "seed " << seed;
    }
  }
}

TEST(ProportionalSharesPropertyTest, NobodyIsBelowItsWholeQuotaNorIsAFasterOneBehindASlower) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t members = 1 + rng.Below(32);
    const Speeds speeds = RandomSpeeds(rng, members, 3);
    const double speed_sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    const std::uint64_t total = 1 + rng.Below(5000);

    const Sizes sizes = ProportionalShares(speeds, total, {.batch_min = 0});

    for (std::size_t i = 0; i < members; ++i) {
      const double quota = static_cast<double>(total) * speeds[i] / speed_sum;
      ASSERT_GE(sizes[i], std::floor(quota - 1e-6)) << "seed " << seed << " rank " << i;
      for (std::size_t j = 0; j < members; ++j) {
        ASSERT_TRUE(speeds[i] <= speeds[j] || sizes[i] >= sizes[j]) << "seed " << seed;
      }
    }
  }
}

TEST(ProportionalSharesOracleTest, LongestTimeIsTheLeastOfAllSplits) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t members = 1 + rng.Below(4);
    BatchOptions options;
    options.batch_min = static_cast<std::uint32_t>(rng.Below(3));
    options.batch_max = static_cast<std::uint32_t>(options.batch_min + 1 + rng.Below(12));
    const Speeds speeds = RandomSpeeds(rng, members, 2);
    const std::uint64_t total = std::clamp<std::uint64_t>(
        rng.Below(20), members * options.batch_min, members * options.batch_max);

    const Sizes sizes = ProportionalShares(speeds, total, options);

    ASSERT_DOUBLE_EQ(LongestTime(sizes, speeds), BestOfAllSplits(speeds, total, options))
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::policies
