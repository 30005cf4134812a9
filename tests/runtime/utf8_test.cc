#include "runtime/utf8.h"

#include <gtest/gtest.h>

namespace tactus::runtime {
namespace {

TEST(Utf8Test, ACharacterHasOneToFourBytes) {
  EXPECT_EQ(Utf8CharacterBytes("ab"), 1u);
  EXPECT_EQ(Utf8CharacterBytes("\xc3\xa4z"), 2u);
  EXPECT_EQ(Utf8CharacterBytes("\xe2\x82\xac"), 3u);
  EXPECT_EQ(Utf8CharacterBytes("\xf0\x9f\x98\x80"), 4u);
}

TEST(Utf8Test, TheFirstAndTheLastOfEachLengthAreCharacters) {
  for (const char* text :
       {"\x01", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << testing::PrintToString(text);
  }
  EXPECT_TRUE(IsUtf8(std::string_view("\0", 1)));
  EXPECT_TRUE(IsUtf8(""));
}

TEST(Utf8Test, WhatIsNoCharacterIsRefused) {
  for (const char* text : {"\xff", "a\x80", "\xc3", "\xc3z", "\xe2\x82", "\xf0\x9f\x98", "\xc0\x80",
                           "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8Test, ValidTextIsKeptAndTheRestIsReplacedByteByByte) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(ToUtf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(ToUtf8("\xff"
                   "a\x80"),
            mark + "a" + mark);
  EXPECT_EQ(ToUtf8("\xc3"), mark);                                   // cut off
  EXPECT_EQ(ToUtf8("\xc0\x80"), mark + mark);                        // overlong
  EXPECT_EQ(ToUtf8("\xed\xa0\x80"), mark + mark + mark);             // surrogate
  EXPECT_EQ(ToUtf8("\xf4\x90\x80\x80"), mark + mark + mark + mark);  // above U+10FFFF
  EXPECT_EQ(ToUtf8(""), "");
}

}  // namespace
}  // namespace tactus::runtime
