#include "base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace tactus {
namespace {

TEST(BoundedQueueTest, GivesItemsInTheOrderInWhichTheyCame) {
  BoundedQueue<int, 3> queue;

  EXPECT_TRUE(queue.Push(1));
  EXPECT_TRUE(queue.Push(2));

  EXPECT_EQ(queue.Front(), 1);
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_TRUE(queue.empty());
}

TEST(BoundedQueueTest, RefusesAnItemWhenFullAndKeepsTheOthers) {
  BoundedQueue<int, 2> queue;
  ASSERT_TRUE(queue.Push(1));
  ASSERT_TRUE(queue.Push(2));

  EXPECT_FALSE(queue.Push(3));

  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_TRUE(queue.Push(4));
  EXPECT_EQ(queue.Pop(), 2);
  EXPECT_EQ(queue.Pop(), 4);
}

TEST(BoundedQueueTest, TakesNothingWhenItsBoundIsZero) {
  BoundedQueue<int, 0> queue;

  EXPECT_FALSE(queue.Push(1));
  EXPECT_TRUE(queue.empty());
}

TEST(BoundedQueueTest, HoldsThingsThatOnlyMove) {
  BoundedQueue<std::unique_ptr<int>, 1> queue;

  ASSERT_TRUE(queue.Push(std::make_unique<int>(5)));

  EXPECT_EQ(*queue.Pop(), 5);
}

TEST(BoundedQueueTest, ClearMakesRoomAgain) {
  BoundedQueue<int, 1> queue;
  ASSERT_TRUE(queue.Push(1));

  queue.Clear();

  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.Push(2));
  EXPECT_EQ(queue.Front(), 2);
}

TEST(BoundedQueueDeathTest, StopsWhenAskedForAnItemItDoesNotHave) {
  BoundedQueue<int, 1> queue;

  EXPECT_DEATH(queue.Pop(), "check failed");
  EXPECT_DEATH(static_cast<void>(queue.Front()), "check failed");
}

TEST(CheckDeathTest, SaysThePlaceAndTheCondition) {
  const int workers = 0;

  EXPECT_DEATH(TACTUS_CHECK(workers > 0),
               "bounded_queue_test.cc:[0-9]+: check failed: workers > 0");
}

TEST(CheckTest, EvaluatesItsConditionOnceInEveryBuild) {
  int evaluations = 0;

  TACTUS_CHECK(++evaluations > 0);

  EXPECT_EQ(evaluations, 1);
}

}  // namespace
}  // namespace tactus
