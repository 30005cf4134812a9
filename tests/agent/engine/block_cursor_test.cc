#include "agent/engine/samples/block_cursor.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

using ::testing::ElementsAre;
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

// Of steps of 6, three members have 1, 2 and 3; of the rest of 4 what is in proportion.
TEST(BlockCursorTest, MembersOfAReplicaShareEachStep) {
  const SampleLedger ledger(100, 1);
  const Block block = {{.begin = 3, .end = 5}, {.begin = 90, .end = 104}};
  std::vector<BlockCursor> members = {
      {ledger, block, {.step = 6, .micro_batch = 8, .before = 0, .behind = 5}},
      {ledger, block, {.step = 6, .micro_batch = 8, .before = 1, .behind = 3}},
      {ledger, block, {.step = 6, .micro_batch = 8, .before = 3, .behind = 0}}};
  BlockCursor whole(ledger, block, {.step = 6, .micro_batch = 8});

  std::vector<std::uint64_t> own(members.size());
  for (const std::vector<std::size_t>& sizes :
       std::vector<std::vector<std::size_t>>{{1, 2, 3}, {1, 2, 3}, {0, 2, 2}}) {
    std::vector<std::uint64_t> together;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::vector<std::uint64_t> taken = members[i].Take();
      EXPECT_THAT(taken, SizeIs(sizes[i]));
      own[i] += taken.size();
      EXPECT_EQ(members[i].own(), own[i]);
      together.insert(together.end(), taken.begin(), taken.end());
    }
    EXPECT_EQ(together, whole.Take());
    for (BlockCursor& member : members) {
      EXPECT_EQ(member.taken(), whole.taken());
      EXPECT_EQ(member.of_step(), whole.of_step());
      EXPECT_THAT(member.Take(), IsEmpty());
      member.EndStep();
    }
    whole.EndStep();
  }
  EXPECT_TRUE(members[0].exhausted());
}

TEST(BlockCursorTest, AMembersShareOfAStepMayTakeSeveralMicroBatches) {
  const SampleLedger ledger(100, 1);
  BlockCursor cursor(ledger, {{.begin = 0, .end = 8}},
                     {.step = 8, .micro_batch = 2, .before = 3, .behind = 2});

  EXPECT_THAT(cursor.Take(), ElementsAre(ledger.SampleAt(3), ledger.SampleAt(4)));
  EXPECT_FALSE(cursor.exhausted());
  EXPECT_THAT(cursor.Take(), ElementsAre(ledger.SampleAt(5)));
  EXPECT_TRUE(cursor.exhausted());
}

TEST(BlockCursorTest, AMemberGoesOnBehindWhatItsReplicaUsed) {
  const SampleLedger ledger(100, 1);
  BlockCursor cursor(ledger, {{.begin = 0, .end = 10}},
                     {.step = 4, .micro_batch = 8, .before = 3, .behind = 0});

  cursor.Skip(8);

  EXPECT_EQ(cursor.own(), 2u);
  EXPECT_EQ(cursor.taken(), 8u);
  EXPECT_THAT(cursor.Take(), ElementsAre(ledger.SampleAt(9)));
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
