// Places in meshes, and who shares what.

#include "agent/collective/places.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::collective {
namespace {

using ::testing::ElementsAre;

TEST(PlacesTest, FillOneMeshAfterTheOtherRowByRow) {
  const MeshShape shape{.rows = 2, .columns = 2};

  EXPECT_EQ(PlaceOf(0, shape), (Place{0, 0, 0}));
  EXPECT_EQ(PlaceOf(1, shape), (Place{0, 0, 1}));
  EXPECT_EQ(PlaceOf(2, shape), (Place{0, 1, 0}));
  EXPECT_EQ(PlaceOf(7, shape), (Place{1, 1, 1}));
}

TEST(PlacesTest, GroupsAreTheRanksOfARowAColumnAndAPlace) {
  const MeshShape shape{.rows = 3, .columns = 3};

  EXPECT_THAT(RowOf(13, shape), ElementsAre(12, 13, 14));
  EXPECT_THAT(ColumnOf(13, shape), ElementsAre(10, 13, 16));
  EXPECT_THAT(EqualPlacesOf(13, shape, 27), ElementsAre(4, 13, 22));
}

TEST(PlacesTest, ALineIsOneRow) {
  const MeshShape line{.rows = 1, .columns = 4};

  EXPECT_THAT(RowOf(6, line), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(ColumnOf(6, line), ElementsAre(6));
  EXPECT_THAT(EqualPlacesOf(6, line, 12), ElementsAre(2, 6, 10));
}

TEST(PlacesTest, WithoutAMeshAllMembersAreAtOnePlace) {
  EXPECT_THAT(RowOf(2, {}), ElementsAre(2));
  EXPECT_THAT(EqualPlacesOf(2, {}, 4), ElementsAre(0, 1, 2, 3));
}

TEST(PlacesTest, EveryRankIsWhereItsPlaceSays) {
  for (const MeshShape shape :
       {MeshShape{1, 1}, MeshShape{1, 4}, MeshShape{2, 2}, MeshShape{3, 3}}) {
    const int size = 3 * shape.devices();
    for (int rank = 0; rank < size; ++rank) {
      const Place place = PlaceOf(rank, shape);
      EXPECT_EQ(RankOf(place, shape), rank);
      EXPECT_EQ(RowOf(rank, shape)[static_cast<std::size_t>(place.column)], rank);
      EXPECT_EQ(ColumnOf(rank, shape)[static_cast<std::size_t>(place.row)], rank);
      EXPECT_EQ(EqualPlacesOf(rank, shape, size)[static_cast<std::size_t>(place.replica)], rank);
    }
  }
}

// One more connection between each two members serves all three groups because of it.
TEST(PlacesTest, TwoMembersShareAtMostOneOfRowColumnAndPlace) {
  const MeshShape shape{.rows = 3, .columns = 3};
  const auto shared = [](const std::vector<int>& ranks, int rank) {
    return std::ranges::count(ranks, rank);
  };
  for (int a = 0; a < 27; ++a) {
    for (int b = 0; b < 27; ++b) {
      if (a == b) continue;
      EXPECT_LE(shared(RowOf(a, shape), b) + shared(ColumnOf(a, shape), b) +
                    shared(EqualPlacesOf(a, shape, 27), b),
                1);
    }
  }
}

}  // namespace
}  // namespace tactus::collective
