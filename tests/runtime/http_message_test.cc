#include "runtime/http_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST(HttpMessageTest, APathAndAQueryAreDecoded) {
  const auto request = ParseTarget("/a%20b+c?name=%C3%A4+%2B&flag&other=1");

  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->path, "/a b+c");
  EXPECT_THAT(request->query,
              ElementsAre(Pair("flag", ""), Pair("name", "\xc3\xa4 +"), Pair("other", "1")));
}

// They go into messages and JSON, which hold nothing else.
TEST(HttpMessageTest, WhatIsNotUtf8IsRefused) {
  for (const char* target : {"/%ff", "/a?%ff=1", "/a?b=%ff", "/a?b=%c3", "/a?b=%ed%a0%80",
                             "/a?b=\xff", "/a?b=%c3&c=%a4"}) {
    const absl::Status status = ParseTarget(target).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << target;
    EXPECT_THAT(std::string(status.message()), HasSubstr("UTF-8")) << target;
  }
}

TEST(HttpMessageTest, AHostIsReadWithoutCaseBracketsAndPort) {
  for (const char* field : {"Gpu-7.Example", "gpu-7.example:80"}) {
    EXPECT_EQ(HostName(field), "gpu-7.example");
  }
  for (const char* field : {"[2001:DB8::7]", "[2001:db8::7]:80"}) {
    EXPECT_EQ(HostName(field), "2001:db8::7");
  }
  EXPECT_EQ(HostName(""), "");
  EXPECT_FALSE(IsLocalHost(""));
}

TEST(HttpMessageTest, BadEscapesAndControlCharactersAreRefused) {
  for (const char* target : {"/%", "/%4", "/%zz", "/a?b=%0a", "/a?b=%7f", "/a?%00=1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseTarget(target).status())) << target;
  }
}

}  // namespace
}  // namespace tactus::runtime
