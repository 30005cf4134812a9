#include "agent/collective/rank_sum.h"

#include <cstddef>
#include <vector>

#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

// The plain twin: one element after the other.
std::vector<float> SumPlainly(const std::vector<std::vector<float>>& sources) {
  std::vector<float> sum = sources.front();
  for (std::size_t s = 1; s < sources.size(); ++s) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += sources[s][i];
  }
  return sum;
}

TEST(RankSumTest, AgreesWithThePlainSumBitForBit) {
  for (const std::size_t length : {0, 1, 31, 32, 33, 1023, 1024, 1025, 10'007}) {
    for (std::size_t count = 1; count <= 5; ++count) {
      std::vector<std::vector<float>> sources;
      for (std::size_t s = 0; s < count; ++s) sources.push_back(RandomValues(length, s));
      const std::vector<float> expected = SumPlainly(sources);
      std::vector<const float*> pointers;
      for (const std::vector<float>& source : sources) pointers.push_back(source.data());

      std::vector<float> apart(length);
      SumInRankOrder(pointers, apart);
      SumInRankOrder(pointers, sources[count / 2]);  // in place of one of them

      EXPECT_TRUE(SameBits(apart, expected)) << length << " elements, " << count << " sources";
      EXPECT_TRUE(SameBits(sources[count / 2], expected)) << length << " elements, " << count;
    }
  }
}

TEST(RankSumTest, TheOrderOfTheRanksDecidesTheRounding) {
  const std::vector<float> large = {1e8f}, small = {1.0f}, minus = {-1e8f};
  float sum = 0;

  SumInRankOrder(std::vector<const float*>{large.data(), minus.data(), small.data()}, {&sum, 1});
  EXPECT_EQ(sum, 1.0f);

  SumInRankOrder(std::vector<const float*>{large.data(), small.data(), minus.data()}, {&sum, 1});
  EXPECT_EQ(sum, 0.0f);
}

}  // namespace
}  // namespace tactus::collective
