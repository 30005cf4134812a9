#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/box/box.h"

namespace tactus::box {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Support Whole() {
  return {.landlock_abi = 6, .filters = true, .memory = true, .tasks = true, .user = true};
}

TEST(LacksTest, AWholeBoxLacksNothing) {
  EXPECT_THAT(Lacks(Whole()), IsEmpty());
  EXPECT_EQ(LabelOf(Whole()), "full");
  EXPECT_EQ(ExplainLacks(Whole()), "");
}

TEST(LacksTest, EachVersionOfLandlockLacksWhatCameLater) {
  const auto lacks = [](int abi) {
    Support support = Whole();
    support.landlock_abi = abi;
    return LabelOf(support);
  };

  EXPECT_EQ(lacks(7), "full");
  EXPECT_EQ(lacks(5), "lacks signals");
  EXPECT_EQ(lacks(4), "lacks ioctl signals");
  EXPECT_EQ(lacks(3), "lacks ports ioctl signals");
  EXPECT_EQ(lacks(2), "lacks truncation ports ioctl signals");
  EXPECT_EQ(lacks(0), "lacks files ports ioctl signals");
}

TEST(LacksTest, WhatIsLackingIsALabelsTextAndExplained) {
  for (int abi = 0; abi <= 7; ++abi) {
    const Support none{.landlock_abi = abi};
    EXPECT_LE(LabelOf(none).size(), 63u) << LabelOf(none);
    for (const std::string& word : Lacks(none)) {
      EXPECT_THAT(ExplainLacks(none), HasSubstr(word + ": "));
    }
  }
  Support support = Whole();
  support.user = support.memory = false;
  EXPECT_THAT(Lacks(support), ElementsAre("memory", "user"));
}

// Its own folder in /proc is made after the rules are, so /proc is allowed as a whole or not.
TEST(LacksTest, NoPrivatePlaceIsOnTheWayToTheFactsOfAProcess) {
  for (const std::string& place : KeyPlaces("/home/user")) {
    EXPECT_FALSE(place.starts_with("/proc")) << place;
  }
  EXPECT_THAT(KeyPlaces("/home/user"), testing::Contains("/home/user/.ssh"));
}

}  // namespace
}  // namespace tactus::box
