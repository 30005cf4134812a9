#include "agent/engine/link_meter.h"

#include <gtest/gtest.h>

#include <vector>

namespace tactus::engine {
namespace {

using collective::Carried;
using Rates = std::vector<double>;

constexpr std::uint64_t kMiB = 1 << 20;

TEST(LinkMeterTest, RatesAreOfWhatWasCarriedSinceTheLastAnswer) {
  LinkMeter meter;
  EXPECT_EQ(meter.Take(std::vector<Carried>{{}, {5 * kMiB, 1}, {5 * kMiB, 1}}, 0), Rates());

  EXPECT_EQ(meter.Take(std::vector<Carried>{{}, {6 * kMiB, 1.5}, {7 * kMiB, 5}}, 0),
            (Rates{0, 2.0 * kMiB, 0.5 * kMiB}));
  EXPECT_EQ(meter.Take(std::vector<Carried>{{}, {9 * kMiB, 2.5}, {9 * kMiB, 6}}, 0),
            (Rates{0, 3.0 * kMiB, 2.0 * kMiB}));
}

TEST(LinkMeterTest, LittleIsKeptUntilItIsMuchOnEachWay) {
  LinkMeter meter;
  std::vector<Carried> carried(3);
  int answers = 0;
  for (int round = 0; round < 64; ++round) {
    carried[0].bytes += 32 << 10;
    carried[2].bytes += 16 << 10;
    carried[0].seconds += 0.01;
    carried[2].seconds += 0.01;
    const Rates rates = meter.Take(carried, 1);
    if (rates.empty()) continue;
    ++answers;
    EXPECT_NEAR(rates[0], 3.2768e6, 1);
    EXPECT_NEAR(rates[2], 1.6384e6, 1);
  }
  EXPECT_EQ(answers, 3);  // of 16 rounds each, the first beside what was there before
}

TEST(LinkMeterTest, NobodyKnowsNothing) {
  LinkMeter meter;
  EXPECT_EQ(meter.Take({}, 0), Rates());
  EXPECT_EQ(meter.Take(std::vector<Carried>{{}, {kMiB, 1}}, 0), Rates());
  EXPECT_EQ(meter.Take(std::vector<Carried>{{}, {2 * kMiB, 1}}, 0), Rates()) << "no time passed";
}

}  // namespace
}  // namespace tactus::engine
