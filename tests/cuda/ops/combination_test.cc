#include "cuda/ops/combination.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/ops/vector.h"
#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

std::uint32_t Bits(float x) { return std::bit_cast<std::uint32_t>(x); }

struct Members {
  std::vector<Guarded> buffers{};
  std::vector<double> weights{};

  Members(std::size_t count, std::size_t length) {
    Rng rng(count * 1'000'003 + length);
    for (std::size_t p = 0; p < count; ++p) {
      buffers.push_back(RandomBuffer(rng, length, 10));
      weights.push_back(rng.Normal());
    }
  }

  std::vector<Weighted> parts() const {
    std::vector<Weighted> parts;
    for (std::size_t p = 0; p < buffers.size(); ++p) {
      parts.push_back({.weight = weights[p], .buffer = buffers[p].span()});
    }
    return parts;
  }

  float Expected(std::size_t i) const {
    double sum = weights[0] * static_cast<double>(buffers[0].span()[i]);
    for (std::size_t p = 1; p < buffers.size(); ++p) {
      const double product = weights[p] * static_cast<double>(buffers[p].span()[i]);
      sum += product;
    }
    return static_cast<float>(sum);
  }
};

class WeightedSumTest : public testing::TestWithParam<std::size_t> {};

TEST_P(WeightedSumTest, IsTheSumInOrderRoundedOnce) {
  const std::size_t length = GetParam();
  for (const std::size_t count : {1, 2, 3, 8, 64}) {
    if (length > 1000 && count > 3) continue;
    const Members members(count, length);
    Guarded out(length);

    host::WeightedSum(members.parts(), out.span());

    for (std::size_t i = 0; i < length; ++i)
      ASSERT_EQ(Bits(out[i]), Bits(members.Expected(i))) << i;
    EXPECT_TRUE(out.Intact());
  }
}

TEST_P(WeightedSumTest, MayBeStoredOverAnyOfItsParts) {
  const std::size_t length = GetParam();
  for (const std::size_t target : {0, 1, 2}) {
    Members members(3, length);
    const Members before = members;

    host::WeightedSum(members.parts(), members.buffers[target].span());

    for (std::size_t i = 0; i < length; ++i) {
      ASSERT_EQ(Bits(members.buffers[target][i]), Bits(before.Expected(i))) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, WeightedSumTest, testing::ValuesIn(kLengths));

TEST(WeightedSumTest, IsMoreExactThanAddingInFloat32) {
  const std::vector<float> large = {0x1p24f};
  const std::vector<float> one = {1};
  const std::vector<Weighted> parts = {{1, large}, {1, one}, {1, one}, {-1, large}};
  std::vector<float> out(1);

  host::WeightedSum(parts, out);

  EXPECT_EQ(out[0], 2);
}

TEST(WeightedSumTest, ANonFiniteElementSpoilsItsOwnPlaceAlone) {
  Members members(2, 40);
  members.buffers[1][7] = std::numeric_limits<float>::infinity();
  members.buffers[0][9] = std::numeric_limits<float>::quiet_NaN();
  members.weights[1] = 0;
  std::vector<float> out(40);

  host::WeightedSum(members.parts(), out);

  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(std::isnan(out[i]), i == 7 || i == 9) << i;
}

TEST(WeightedSumDeathTest, RefusesWhatItsContractExcludes) {
  const Members many(65, 4);
  const Members two(2, 4);
  std::vector<float> three(3);
  std::vector<float> four(4);

  EXPECT_DEATH(host::WeightedSum(many.parts(), four), "check failed");
  EXPECT_DEATH(host::WeightedSum({}, four), "check failed");
  EXPECT_DEATH(host::WeightedSum(two.parts(), three), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
