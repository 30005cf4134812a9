#include "agent/engine/samples/ledger.h"

#include <numeric>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

std::vector<std::uint64_t> Sizes(const std::vector<Block>& blocks) {
  std::vector<std::uint64_t> sizes;
  for (const Block& block : blocks) sizes.push_back(SizeOf(block));
  return sizes;
}

// What each member reserves: they hold equal ledgers, and each looks at its own share.
std::vector<Block> ReserveAll(SampleLedger& ledger, const std::vector<std::uint64_t>& sizes,
                              Edges edges = Edges::kKept) {
  std::vector<Block> blocks;
  for (std::size_t member = 0; member < sizes.size(); ++member) {
    SampleLedger view = ledger;
    view.SetShares(sizes, member);
    const Block next = view.Next(edges);
    blocks.push_back(view.Reserve(edges));
    EXPECT_EQ(next, blocks.back());
    if (member + 1 == sizes.size()) ledger = std::move(view);
  }
  return blocks;
}

TEST(SampleLedgerTest, BlocksArePrefixSumsOfTheBatchSizes) {
  SampleLedger ledger(100, 1);

  const std::vector<Block> blocks = ReserveAll(ledger, {7, 5, 0, 1});

  EXPECT_EQ(blocks[0], (Block{{0, 7}}));
  EXPECT_EQ(blocks[1], (Block{{7, 12}}));
  EXPECT_EQ(blocks[2], Block{});
  EXPECT_EQ(blocks[3], (Block{{12, 13}}));
}

TEST(SampleLedgerTest, LastRoundOfAnEpochIsSharedInProportion) {
  SampleLedger ledger(110, 1);
  ledger.Apply(Sizes(ReserveAll(ledger, {40, 40, 20})));

  const std::vector<Block> blocks = ReserveAll(ledger, {40, 40, 20});

  EXPECT_EQ(Sizes(blocks), (std::vector<std::uint64_t>{4, 4, 2}));
  ledger.Apply(Sizes(blocks));
  EXPECT_EQ(ledger.epoch(), 1u);
  EXPECT_EQ(ledger.consumed(), 0u);
}

TEST(SampleLedgerTest, ContributorsAreThoseWithSamplesInTheOldestRound) {
  SampleLedger ledger(15, 1);
  EXPECT_EQ(ledger.contributors(), 0u);

  ledger.Apply(Sizes(ReserveAll(ledger, {7, 5, 0, 1})));
  const std::vector<Block> last = ReserveAll(ledger, {7, 5, 0, 1});

  EXPECT_EQ(Sizes(last), (std::vector<std::uint64_t>{1, 0, 0, 1}));
  EXPECT_EQ(ledger.contributors(), 2u);
}

TEST(SampleLedgerTest, AnAbandonedRoundConsumesNothing) {
  SampleLedger ledger(50, 1);
  const std::vector<Block> before = ReserveAll(ledger, {10, 10});
  ledger.Abandon();

  // Its second member died: the first one alone takes what the two had.
  const std::vector<Block> after = ReserveAll(ledger, {20});

  EXPECT_EQ(ledger.consumed(), 0u);
  EXPECT_EQ(after[0], (Block{{0, 20}}));
}

TEST(SampleLedgerTest, WhatAMemberLeftReturnsToTheFront) {
  SampleLedger ledger(50, 1);
  ReserveAll(ledger, {10, 10});
  ledger.Apply(std::vector<std::uint64_t>{4, 10});

  const std::vector<Block> blocks = ReserveAll(ledger, {5, 5});

  EXPECT_EQ(ledger.consumed(), 14u);
  EXPECT_EQ(blocks[0], (Block{{4, 9}}));
  EXPECT_EQ(blocks[1], (Block{{9, 10}, {20, 24}}));
}

TEST(SampleLedgerTest, WhatIsPassedOverIsUsedByNobody) {
  SampleLedger ledger(10, 1, 2);
  ledger.SetShares({4, 4}, 0);
  ledger.Reserve();
  ledger.Apply(std::vector<std::uint64_t>{1, 4});  // 1 to 3 are free again
  ledger.PassOver(5);

  EXPECT_EQ(ledger.epoch(), 1u);
  EXPECT_EQ(ledger.consumed(), 0u);
  EXPECT_EQ(ledger.Reserve(), (Block{{10, 14}}));
  ledger.ApplyWhole();
  ledger.PassOver(100);
  EXPECT_FALSE(ledger.HasFree());
  EXPECT_EQ(ledger.epoch(), 2u) << "there is no third";
}

TEST(SampleLedgerDeathTest, AMemberCannotHaveUsedMoreThanItsBlock) {
  SampleLedger ledger(50, 1);
  ReserveAll(ledger, {10, 10});

  EXPECT_DEATH(ledger.Apply(std::vector<std::uint64_t>{11, 9}), "");
}

TEST(SampleLedgerTest, HugeEpochsDoNotOverflow) {
  const std::uint64_t size = std::uint64_t{1} << 50;
  SampleLedger ledger(size, 1);

  const std::vector<Block> blocks = ReserveAll(ledger, {4'000'000'000u, 2});

  EXPECT_EQ(Sizes(blocks), (std::vector<std::uint64_t>{4'000'000'000u, 2}));
}

// Random groups, batch sizes that change every round, members that leave some of their block,
// rounds that are lost: each index is used exactly once an epoch all the same.
TEST(SampleLedgerPropertyTest, EverySampleIsUsedExactlyOncePerEpoch) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    const std::uint64_t size = 1 + rng.Below(400);
    SampleLedger ledger(size, seed);
    std::vector<int> used(size, 0);
    while (ledger.epoch() < 2) {
      const std::uint64_t epoch = ledger.epoch();
      std::vector<std::uint64_t> batch(1 + rng.Below(5));
      for (std::uint64_t& b : batch) b = rng.Below(40);
      batch[0] += 1;
      const std::vector<Block> blocks = ReserveAll(ledger, batch);
      if (rng.Below(5) == 0) {
        ledger.Abandon();
        continue;
      }
      std::vector<std::uint64_t> counts;
      for (const Block& block : blocks) {
        const std::uint64_t whole = SizeOf(block);
        counts.push_back(rng.Below(3) == 0 ? rng.Below(whole + 1) : whole);
        std::uint64_t left = counts.back();
        for (const Stretch& stretch : block) {
          for (std::uint64_t at = stretch.begin; at < stretch.end && left > 0; ++at, --left) {
            ++used[ledger.SampleAt(at)];
          }
        }
      }
      ledger.Apply(counts);
      if (ledger.epoch() == epoch) continue;
      for (std::uint64_t i = 0; i < size; ++i) {
        ASSERT_EQ(used[i], 1) << "seed " << seed << " epoch " << epoch << " sample " << i;
      }
      used.assign(size, 0);
    }
  }
}

TEST(SampleLedgerTest, ARoundMayBeReservedBeforeTheFormerOneIsApplied) {
  SampleLedger ledger(50, 1);
  ReserveAll(ledger, {10, 10});
  const std::vector<Block> second = ReserveAll(ledger, {10, 10});
  ledger.Apply(std::vector<std::uint64_t>{4, 10});

  const std::vector<Block> third = ReserveAll(ledger, {5, 5});

  EXPECT_EQ(second[1], (Block{{30, 40}}));
  EXPECT_EQ(third[0], (Block{{4, 9}}));
  EXPECT_EQ(third[1], (Block{{9, 10}, {40, 44}}));
  EXPECT_EQ(ledger.consumed(), 14u);
}

TEST(SampleLedgerTest, ARoundThatCrossesAnEdgeTakesTheNextEpochsFirstSamples) {
  SampleLedger ledger(25, 1);
  ReserveAll(ledger, {10, 10}, Edges::kCrossed);
  ledger.ApplyWhole();

  const std::vector<Block> blocks = ReserveAll(ledger, {4, 4}, Edges::kCrossed);
  ledger.Apply(std::vector<std::uint64_t>{3, 4});

  EXPECT_EQ(blocks[1], (Block{{24, 28}}));
  EXPECT_EQ(ledger.epoch(), 0u);  // one position of it is free again
  EXPECT_EQ(ledger.consumed(), 27u);
  EXPECT_EQ(ReserveAll(ledger, {8})[0], (Block{{23, 24}}));  // kept: the rest of the epoch
}

TEST(SampleLedgerTest, NothingIsHandedOutBeyondTheLastEpoch) {
  SampleLedger ledger(25, 1, 2);
  ReserveAll(ledger, {20, 20}, Edges::kCrossed);

  const std::vector<Block> blocks = ReserveAll(ledger, {20, 20}, Edges::kCrossed);

  EXPECT_EQ(Sizes(blocks), (std::vector<std::uint64_t>{5, 5}));
  EXPECT_FALSE(ledger.HasFree());
}

// As the delayed synchronization uses it: a round is applied after the next one was reserved, and
// blocks are rarely used up.
TEST(SampleLedgerPropertyTest, RoundsUnderWayAtTheSameTimeUseEverySampleOncePerEpoch) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    const std::uint64_t size = 1 + rng.Below(200);
    SampleLedger ledger(size, seed, 3);
    std::vector<int> used(3 * size, 0);
    std::vector<std::uint64_t> waiting;  // counts of the round that is not applied
    while (ledger.HasFree() || ledger.outstanding() > 0) {
      if (!ledger.HasFree()) {
        ledger.Apply(waiting);
        waiting.clear();
        continue;
      }
      std::vector<std::uint64_t> shares(1 + rng.Below(4), 1);
      for (std::uint64_t& share : shares) share += rng.Below(30);
      std::vector<std::uint64_t> counts;
      for (const Block& block : ReserveAll(ledger, shares, Edges::kCrossed)) {
        std::uint64_t left = counts.emplace_back(rng.Below(SizeOf(block) + 1));
        for (const Stretch& stretch : block) {
          for (std::uint64_t at = stretch.begin; at < stretch.end && left > 0; ++at, --left) {
            ++used[at];
          }
        }
      }
      if (ledger.outstanding() == 2) ledger.Apply(waiting);
      waiting = counts;
    }
    for (const int times : used) ASSERT_EQ(times, 1) << "seed " << seed;
    EXPECT_EQ(ledger.epoch(), 3u) << "seed " << seed;
  }
}

// ---- A round that goes on in another group

TEST(ResumedRoundTest, WhoIsLeftHasTheSameBlocksAndTheOthersAreFree) {
  SampleLedger ledger(100, 1);
  ledger.Apply(Sizes(ReserveAll(ledger, {5, 5, 5})));
  const std::vector<Block> blocks = ReserveAll(ledger, {7, 6, 4});
  ledger.Abandon();

  ASSERT_TRUE(ledger.MayResume({blocks[0], blocks[2], {}}));
  EXPECT_EQ(ledger.Resume({blocks[0], blocks[2], {}}, 1), blocks[2]);

  EXPECT_EQ(ledger.reserved(), 11u);
  EXPECT_EQ(ledger.OwnBlock(), blocks[2]);
  EXPECT_EQ(ledger.contributors(), 2u);
  ledger.SetShares({3, 8}, 0);
  EXPECT_EQ(ledger.Next(), (Block{{22, 25}}));
  ledger.ApplyWhole();
  EXPECT_EQ(ledger.State(), (LedgerState{.epoch_size = 100, .fresh = 32, .returned = {{22, 28}}}));
  EXPECT_EQ(ledger.consumed(), 26u);
}

TEST(ResumedRoundTest, WhatIsLeftOfItReturns) {
  SampleLedger ledger(100, 1);
  const std::vector<Block> blocks = ReserveAll(ledger, {6, 6, 6});
  ledger.Abandon();
  ledger.Resume({blocks[1], blocks[2]}, 0);

  ledger.Apply(std::vector<std::uint64_t>{2, 6});

  EXPECT_EQ(ledger.State(),
            (LedgerState{.epoch_size = 100, .fresh = 18, .returned = {{0, 6}, {8, 12}}}));
}

TEST(ResumedRoundTest, AbandonedOnceMoreItIsFreeAsBefore) {
  SampleLedger ledger(20, 1, 1);
  ledger.Apply(Sizes(ReserveAll(ledger, {4, 4})));
  const LedgerState before = ledger.State();
  const std::vector<Block> blocks = ReserveAll(ledger, {9, 9});
  EXPECT_EQ(SizeOf(blocks[0]) + SizeOf(blocks[1]), 12u) << "all that there is";
  ledger.Abandon();
  ledger.Resume({blocks[0], blocks[1]}, 1);
  EXPECT_FALSE(ledger.HasFree());

  ledger.Abandon();

  EXPECT_EQ(ledger.State(), before);
}

TEST(ResumedRoundTest, OnlyWhatRisesAndIsFreeMayBe) {
  SampleLedger ledger(100, 1, 1);
  ledger.Apply(Sizes(ReserveAll(ledger, {10})));

  EXPECT_TRUE(ledger.MayResume({{{10, 20}}, {}, {{20, 30}, {40, 50}}}));
  EXPECT_FALSE(ledger.MayResume({{{20, 30}}, {{10, 20}}}));
  EXPECT_FALSE(ledger.MayResume({{{9, 12}}})) << "one is used";
  EXPECT_FALSE(ledger.MayResume({{{10, 20}}, {{19, 30}}}));
  EXPECT_FALSE(ledger.MayResume({{{90, 101}}})) << "beyond all epochs";
  EXPECT_FALSE(ledger.MayResume({{{30, 30}}}));
}

TEST(ResumedRoundTest, ARoundHasANumberOfItsPositionsAndShares) {
  const auto id = [](std::uint64_t used, std::vector<std::uint64_t> sizes, std::size_t member) {
    SampleLedger ledger(100, 1);
    ledger.Apply(Sizes(ReserveAll(ledger, {used})));
    ledger.SetShares(std::move(sizes), member);
    ledger.Reserve();
    return ledger.RoundId();
  };

  EXPECT_EQ(id(10, {3, 4}, 0), id(10, {3, 4}, 1));
  EXPECT_NE(id(10, {3, 4}, 0), id(11, {3, 4}, 0));
  EXPECT_NE(id(10, {3, 4}, 0), id(10, {4, 3}, 0));
}

}  // namespace
}  // namespace tactus::engine
