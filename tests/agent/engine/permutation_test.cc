#include "agent/engine/samples/permutation.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

TEST(EpochPermutationTest, IsABijectionForEverySize) {
  for (std::uint64_t size = 1; size <= 300; ++size) {
    const EpochPermutation order(size, 7, 3);
    std::vector<bool> seen(size, false);
    for (std::uint64_t at = 0; at < size; ++at) {
      const std::uint64_t sample = order.At(at);
      ASSERT_LT(sample, size);
      ASSERT_FALSE(seen[sample]) << "size " << size << " position " << at;
      seen[sample] = true;
    }
  }
}

TEST(EpochPermutationTest, HoldsBeyond32Bits) {
  const std::uint64_t size = (std::uint64_t{1} << 40) + 12345;
  const EpochPermutation order(size, 1, 0);
  EXPECT_LT(order.At(0), size);
  EXPECT_LT(order.At(size - 1), size);
  EXPECT_NE(order.At(0), order.At(size - 1));
}

TEST(EpochPermutationTest, SeedsAndEpochsGiveDifferentOrders) {
  const EpochPermutation base(1000, 1, 0);
  const EpochPermutation other_seed(1000, 2, 0);
  const EpochPermutation other_epoch(1000, 1, 1);
  int same_seed = 0;
  int same_epoch = 0;
  for (std::uint64_t at = 0; at < 1000; ++at) {
    same_seed += base.At(at) == other_seed.At(at) ? 1 : 0;
    same_epoch += base.At(at) == other_epoch.At(at) ? 1 : 0;
  }

  // Two random permutations share Poisson(1) places: 12 or more have probability 1e-9.
  EXPECT_LT(same_seed, 12);
  EXPECT_LT(same_epoch, 12);
}

// Where a sample lands must not depend on its number: chi-square over 16 x 16 cells.
TEST(EpochPermutationTest, SpreadsNeighboursOverTheEpoch) {
  constexpr std::uint64_t kSize = 1 << 14;
  std::vector<double> cells(256, 0);
  const EpochPermutation order(kSize, 5, 9);
  for (std::uint64_t at = 0; at < kSize; ++at) {
    cells[(at / (kSize / 16)) * 16 + order.At(at) / (kSize / 16)] += 1;
  }
  double chi2 = 0;
  for (const double count : cells) chi2 += (count - 64) * (count - 64) / 64;

  // 225 degrees of freedom: mean 225, standard deviation 21.2; 6 of them above.
  EXPECT_LT(chi2, 225 + 6 * std::sqrt(2 * 225.0));
}

}  // namespace
}  // namespace tactus::engine
