#include "policies/least_gain.h"

#include <gtest/gtest.h>

namespace tactus::policies {
namespace {

TEST(LeastGainTest, GrowsWithEveryChangeUpToTheMost) {
  LeastGain gain(0.04, 0.08, 100);
  EXPECT_DOUBLE_EQ(gain.value(), 0.04);

  gain.Tire();
  EXPECT_DOUBLE_EQ(gain.value(), 0.06);
  gain.Tire();
  EXPECT_DOUBLE_EQ(gain.value(), 0.08);
}

TEST(LeastGainTest, HalfOfWhatItGrewIsForgivenInAHalfLife) {
  LeastGain gain(0.04, 0.08, 100);
  gain.Tire();

  gain.Rest(100);
  EXPECT_DOUBLE_EQ(gain.value(), 0.05);
  gain.Rest(1e6);
  EXPECT_DOUBLE_EQ(gain.value(), 0.04);
}

}  // namespace
}  // namespace tactus::policies
