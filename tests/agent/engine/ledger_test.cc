#include "agent/engine/ledger.h"

#include <numeric>
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

// What each member would reserve.
std::vector<Block> ReserveAll(SampleLedger& ledger, const std::vector<std::uint32_t>& sizes) {
  std::vector<Block> blocks;
  for (std::size_t member = 0; member < sizes.size(); ++member) {
    ledger.Abandon();
    ledger.SetShares(sizes, member);
    blocks.push_back(ledger.Reserve());
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
      std::vector<std::uint32_t> batch(1 + rng.Below(5));
      for (std::uint32_t& b : batch) b = static_cast<std::uint32_t>(rng.Below(40));
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

}  // namespace
}  // namespace tactus::engine
