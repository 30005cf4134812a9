// Sums that one member gets, and gatherings, over every kind of transport.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "agent/collective/mesh_costs.h"
#include "agent/collective/mesh_pieces.h"
#include "agent/collective/transport.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

class RootSumTest : public ::testing::TestWithParam<GroupShape> {
 protected:
  int size() const { return GetParam().size; }
  Transport& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }

  // The root's buffer after a sum of RandomValues.
  std::vector<float> SumAt(int root, std::size_t length) {
    std::vector<float> at_root;
    OnEveryRank(size(), [&](int rank) {
      std::vector<float> buffer = RandomValues(length, 3 + static_cast<std::uint64_t>(rank));
      EXPECT_EQ(member(rank).StartRootSum(buffer, root)->Wait().progress, Progress::kDone);
      if (rank == root) at_root = buffer;
    });
    return at_root;
  }

  void ExpectAllGather(std::size_t length) {
    std::vector<float> expected;
    for (int rank = 0; rank < size(); ++rank) {
      const std::vector<float> own = RandomValues(length, static_cast<std::uint64_t>(rank));
      expected.insert(expected.end(), own.begin(), own.end());
    }
    OnEveryRank(size(), [&](int rank) {
      const std::vector<float> own = RandomValues(length, static_cast<std::uint64_t>(rank));
      std::vector<float> all(expected.size());
      EXPECT_EQ(member(rank).StartAllGather(own, all)->Wait().progress, Progress::kDone);
      EXPECT_TRUE(SameBits(all, expected)) << length << " of each";
    });
  }

 private:
  std::vector<std::unique_ptr<Transport>> members_ = MakeGroup(GetParam());
};

// 5 and 64: whole; the others of three members and more in parts, of unequal lengths.
TEST_P(RootSumTest, TheRootGetsTheSumInRankOrder) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{64},
                                   2 * kExtraLengthMax + 1, 16 * kExtraLengthMax + 7}) {
    for (int root = 0; root < size(); ++root) {
      EXPECT_TRUE(SameBits(SumAt(root, length), ExpectedSum(size(), length, 3)))
          << length << " values at " << root;
    }
  }
}

// Beyond a piece a sum is several, which the root has back in their places.
TEST_P(RootSumTest, ALongSumIsCutAndComesTogether) {
  const std::size_t length = 2 * kPieceLength + 12'345;
  EXPECT_TRUE(SameBits(SumAt(size() - 1, length), ExpectedSum(size(), length, 3)));
}

TEST_P(RootSumTest, EverybodyGathersAllByRank) {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{100}}) {
    ExpectAllGather(length);
  }
}

TEST_P(RootSumTest, ALongGatheringIsCutAndComesTogether) {
  ExpectAllGather(2 * PieceOfGathering(static_cast<std::size_t>(size())) + 3);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RootSumTest, ::testing::ValuesIn(ShapesFrom(1, 5)),
                         [](const ::testing::TestParamInfo<GroupShape>& test) {
                           return NameOf(test.param);
                         });

}  // namespace
}  // namespace tactus::collective
