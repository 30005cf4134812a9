#include "agent/collective/launch_order.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace tactus::collective {
namespace {

constexpr std::chrono::milliseconds kNow{0};
constexpr std::chrono::milliseconds kLong{60000};

TEST(LaunchOrderTest, IsThatOfTheStarts) {
  LaunchOrder order;
  const int row = 0, column = 0;
  order.Enter(&row);
  order.Enter(&column);
  order.Enter(&row);

  EXPECT_FALSE(order.AwaitTurn(&column, kNow));
  EXPECT_TRUE(order.AwaitTurn(&row, kNow));
  order.Launched(&row);
  EXPECT_FALSE(order.AwaitTurn(&row, kNow));
  EXPECT_TRUE(order.AwaitTurn(&column, kNow));
  order.Launched(&column);
  EXPECT_TRUE(order.AwaitTurn(&row, kNow));
}

TEST(LaunchOrderTest, WhoWaitsHearsOfALaunch) {
  LaunchOrder order;
  const int row = 0, column = 0;
  order.Enter(&row);
  order.Enter(&column);
  std::future<bool> turn =
      std::async(std::launch::async, [&] { return order.AwaitTurn(&column, kLong); });
  order.Launched(&row);

  EXPECT_TRUE(turn.get());
}

TEST(LaunchOrderTest, NobodyWaitsForWhoHasLeft) {
  LaunchOrder order;
  const int row = 0, column = 0;
  order.Enter(&row);
  order.Enter(&column);
  order.Leave(&row);
  order.Enter(&row);

  EXPECT_TRUE(order.AwaitTurn(&column, kNow));
  order.Launched(&column);
  EXPECT_FALSE(order.AwaitTurn(&row, kNow));
}

}  // namespace
}  // namespace tactus::collective
