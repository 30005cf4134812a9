#include "runtime/percent.h"

#include <gtest/gtest.h>

namespace tactus::runtime {
namespace {

TEST(PercentTest, EscapesBecomeTheirBytes) {
  EXPECT_EQ(DecodePercent("%5B::1%5d:1"), "[::1]:1");
  EXPECT_EQ(DecodePercent("a%25eth0"), "a%eth0");
  EXPECT_EQ(DecodePercent("%00%fF"), std::string("\0\xff", 2));
  EXPECT_EQ(DecodePercent(""), "");
}

TEST(PercentTest, EscapesThatAreNotWholeAreRefused) {
  for (const char* text : {"%", "a%", "a%4", "%4g", "%g4", "%%41", "% 4"}) {
    EXPECT_EQ(DecodePercent(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tactus::runtime
