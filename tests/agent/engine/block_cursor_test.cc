#include "agent/engine/samples/block_cursor.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(BlockCursorTest, AStepIsHandedOutInMicroBatches) {
  const SampleLedger ledger(100, 1);
  BlockCursor cursor(ledger, {{.begin = 10, .end = 17}}, {.step = 5, .micro_batch = 3});

  EXPECT_THAT(cursor.Take(), SizeIs(3));
  EXPECT_FALSE(cursor.step_full());
  EXPECT_THAT(cursor.Take(), SizeIs(2));
  EXPECT_TRUE(cursor.step_full());
  EXPECT_THAT(cursor.Take(), IsEmpty());
  cursor.EndStep();
  EXPECT_THAT(cursor.Take(), SizeIs(2));
  EXPECT_EQ(cursor.of_step(), 2u);
  EXPECT_EQ(cursor.taken(), 7u);
  EXPECT_TRUE(cursor.exhausted());
}

TEST(BlockCursorTest, StretchesFollowOneAnother) {
  const SampleLedger ledger(100, 1);
  BlockCursor cursor(ledger, {{.begin = 3, .end = 5}, {.begin = 90, .end = 92}},
                     {.step = 8, .micro_batch = 8});

  EXPECT_EQ(cursor.Take(), (std::vector<std::uint64_t>{ledger.SampleAt(3), ledger.SampleAt(4),
                                                       ledger.SampleAt(90), ledger.SampleAt(91)}));
}

TEST(BlockCursorTest, GoesOnBehindWhatWasUsedBefore) {
  const SampleLedger ledger(100, 1);
  const Block block = {{.begin = 3, .end = 5}, {.begin = 90, .end = 96}};
  BlockCursor cursor(ledger, block, {.step = 4, .micro_batch = 8});
  BlockCursor all(ledger, block, {.step = 4, .micro_batch = 8});
  all.Take();
  all.EndStep();

  cursor.Skip(4);

  EXPECT_EQ(cursor.taken(), 4u);
  EXPECT_EQ(cursor.of_step(), 0u);
  EXPECT_EQ(cursor.Take(), all.Take());
  EXPECT_TRUE(cursor.exhausted());
}

TEST(BlockCursorTest, AMicroBatchIsOfOneEpoch) {
  const SampleLedger ledger(10, 1);
  BlockCursor cursor(ledger, {{.begin = 8, .end = 13}}, {.step = 8, .micro_batch = 8});

  EXPECT_EQ(cursor.epoch(), 0u);
  EXPECT_THAT(cursor.Take(), SizeIs(2));
  EXPECT_EQ(cursor.epoch(), 1u);
  EXPECT_THAT(cursor.Take(), SizeIs(3));
  EXPECT_EQ(cursor.epoch(), ledger.epoch());
}

TEST(BlockCursorTest, ACopyGoesItsOwnWay) {
  const SampleLedger ledger(100, 1);
  BlockCursor cursor(ledger, {{.begin = 0, .end = 4}}, {.step = 2, .micro_batch = 2});
  BlockCursor copy = cursor;

  const std::vector<std::uint64_t> ahead = copy.Take();

  EXPECT_EQ(cursor.taken(), 0u);
  EXPECT_EQ(cursor.Take(), ahead);
}

}  // namespace
}  // namespace tactus::engine
