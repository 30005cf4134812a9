#include "agent/subset/piece_picks.h"

#include <algorithm>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::subset {
namespace {

using testing::ElementsAre;

PiecePicks Plan(std::vector<std::uint64_t> sizes, std::uint64_t quota, std::size_t piece_max) {
  return PlanPicks(sizes, quota, piece_max);
}

TEST(PiecePicksTest, EachPiecePicksTheQuotaWhereOneCanPickAmongAll) {
  const PiecePicks picks = Plan({10, 4}, 3, 16);

  EXPECT_THAT(picks.of_pieces, ElementsAre(ElementsAre(3), ElementsAre(3)));
  EXPECT_TRUE(picks.again);
}

TEST(PiecePicksTest, EachPicksItsShareWhereTheyAreTooMany) {
  const PiecePicks picks = Plan({32, 16}, 12, 16);

  EXPECT_THAT(picks.of_pieces, ElementsAre(ElementsAre(4, 4), ElementsAre(4)));
  EXPECT_FALSE(picks.again);
}

TEST(PiecePicksTest, OfMorePiecesThanTheQuotaEachPicksAFew) {
  const PiecePicks picks = Plan({80}, 4, 16);

  EXPECT_THAT(picks.of_pieces, ElementsAre(ElementsAre(3, 3, 3, 3, 3)));
  EXPECT_TRUE(picks.again);
}

TEST(PiecePicksTest, OfMorePiecesThanOneCanPickAmongSomePick) {
  const PiecePicks picks = Plan({16, 16}, 2, 4);

  EXPECT_THAT(picks.of_pieces, ElementsAre(ElementsAre(0, 1, 0, 1), ElementsAre(0, 1, 0, 1)));
  EXPECT_TRUE(picks.again);
}

// All of what was picked is the class's; those who stand for the pieces without a pick count anew.
TEST(PiecePicksTest, AQuotaAboveWhatOneCanPickAmongIsPickedAtOnce) {
  const PiecePicks picks = Plan({32}, 6, 4);

  EXPECT_THAT(picks.of_pieces, ElementsAre(ElementsAre(0, 1, 1, 1, 0, 1, 1, 1)));
  EXPECT_EQ(picks.picked, 6);
  EXPECT_TRUE(picks.again);
}

TEST(PiecePicksPropertyTest, NobodyPicksAmongMoreThanAPieceHasAndTheQuotaIsReached) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::uint64_t piece_max = 1 + rng.Below(40);
    std::vector<std::uint64_t> sizes(1 + rng.Below(9));
    std::uint64_t total = 0;
    for (std::uint64_t& size : sizes) total += size = rng.Below(1 + rng.Below(3000));
    if (total == 0) continue;
    const std::uint64_t quota = 1 + rng.Below(1 + rng.Below(total));

    const PiecePicks picks = PlanPicks(sizes, quota, piece_max);

    ASSERT_GE(picks.picked, quota);
    ASSERT_TRUE(!picks.again || picks.picked <= piece_max || picks.picked == quota);
    bool all_pick = true;
    for (std::size_t member = 0; member < sizes.size(); ++member) {
      const std::vector<std::uint64_t>& pieces = picks.of_pieces[member];
      std::uint64_t samples = 0;
      for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
        const std::uint64_t size = SizeOfPiece(sizes[member], piece, pieces.size());
        ASSERT_LE(size, piece_max);
        ASSERT_LE(pieces[piece], size);
        all_pick = all_pick && pieces[piece] > 0;
        samples += size;
      }
      ASSERT_EQ(samples, sizes[member]);
    }
    ASSERT_EQ(picks.again, picks.picked > quota || !all_pick);
  }
}

}  // namespace
}  // namespace tactus::subset
