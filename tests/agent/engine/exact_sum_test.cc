// Sums in float64 over a group whose collectives are of float32.

#include "agent/engine/exact_sum.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "agent/collective/in_process.h"
#include "base/time.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

using collective::Progress;
using collective::Transport;

// What each member of a group gets, by rank.
std::vector<double> SumsOf(const std::vector<double>& values) {
  const auto members = collective::MakeInProcessGroup(static_cast<int>(values.size()),
                                                      [] { return Instant(Seconds(1)); });
  std::vector<double> sums(values.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    threads.emplace_back([&, rank] {
      sums[rank] = values[rank];
      EXPECT_EQ(SumExactly(*members[rank], {&sums[rank], 1}).progress, Progress::kDone);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sums;
}

TEST(SumExactlyTest, AllGetTheSumInRankOrderWithTheDigitsOfFloat64) {
  // Below, 1 + 2^-40 is 1 in float32, and 0.1 has no end in binary.
  const std::vector<double> values = {1 + std::exp2(-40), 0.1, 3e-9, 7e5 / 3};
  double expected = 0;
  for (const double value : values) expected += value;

  for (const double sum : SumsOf(values)) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(sum), std::bit_cast<std::uint64_t>(expected));
  }
}

TEST(SumExactlyTest, TheRangeIsThatOfFloat64) {
  for (const double sum : SumsOf({1e200, 2e200})) EXPECT_EQ(sum, 1e200 + 2e200);
  for (const double sum : SumsOf({1e-90, 1e-90})) EXPECT_EQ(sum, 2e-90);
}

TEST(SumExactlyTest, WhatIsNotFiniteOnOneIsSoOnAll) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double sum : SumsOf({1, kInfinity, 2})) EXPECT_EQ(sum, kInfinity);
  for (const double sum : SumsOf({1, std::nan(""), 2})) EXPECT_TRUE(std::isnan(sum));
}

TEST(SumExactlyTest, SeveralSumsTravelTogetherAndDoNotMix) {
  const auto members = collective::MakeInProcessGroup(3, [] { return Instant(Seconds(1)); });
  std::vector<std::vector<double>> sums = {
      {1e-9, 1e200, 0}, {2e-9, 2e200, -3}, {5e-9, std::nan(""), 4}};
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < sums.size(); ++rank) {
    threads.emplace_back([&, rank] { SumExactly(*members[rank], sums[rank]); });
  }
  for (std::thread& thread : threads) thread.join();

  for (const std::vector<double>& all : sums) {
    EXPECT_EQ(all[0], 1e-9 + 2e-9 + 5e-9);
    EXPECT_TRUE(std::isnan(all[1]));
    EXPECT_EQ(all[2], 1);
  }
}

TEST(SumExactlyTest, AMemberAloneHasItsOwn) { EXPECT_EQ(SumsOf({0.3}).front(), 0.3); }

TEST(SumExactlyTest, AGroupThatIsLostIsSaid) {
  const auto members = collective::MakeInProcessGroup(2, [] { return Instant(Seconds(1)); });
  members[1]->Abort("the test");
  double sum = 1;

  EXPECT_EQ(SumExactly(*members[0], {&sum, 1}).progress, Progress::kFailed);
}

}  // namespace
}  // namespace tactus::engine
