#include "runtime/host_port.h"

#include <gtest/gtest.h>

namespace tactus::runtime {
namespace {

TEST(HostPortTest, NamesAndNumbersAreRead) {
  EXPECT_EQ(ParseHostPort("localhost:0"), (HostPort{.host = "localhost", .port = 0}));
  EXPECT_EQ(ParseHostPort("10.0.0.5:7070"), (HostPort{.host = "10.0.0.5", .port = 7070}));
  EXPECT_EQ(ParseHostPort("[2001:db8::7]:65535"), (HostPort{.host = "2001:db8::7", .port = 65535}));
  EXPECT_EQ(ParseHostPort("a:00080"), (HostPort{.host = "a", .port = 80}));
}

TEST(HostPortTest, WhatIsNoHostAndPortIsRefused) {
  for (const char* text : {"", "localhost", "localhost:", ":80", "[]:80", "]:", "a:http", "a:65536",
                           "a:000080", "a:-1", "a:+1", "a: 1", "a:1 ", "a:1x", "http://a:1",
                           "user@a:1", "no such host:1", "a/b:1"}) {
    EXPECT_EQ(ParseHostPort(text), std::nullopt) << text;
  }
}

TEST(HostPortTest, SeveralStandWithCommasBetweenThem) {
  EXPECT_EQ(SplitAddresses("a:1,[::1]:2"), (std::vector<std::string>{"a:1", "[::1]:2"}));
  EXPECT_EQ(SplitAddresses(""), std::vector<std::string>{""});
  for (const char* text : {"a:1", "a:1,b:2", "[::1]:2,c:65535"}) EXPECT_TRUE(AreHostPorts(text));
  for (const char* text : {"", ",", "a:1,", "a:1,,b:2", "a:1, b:2", "a:0,b:1", "a:1,b"}) {
    EXPECT_FALSE(AreHostPorts(text)) << text;
  }
}

TEST(HostPortTest, WhatIsWrittenIsReadAsTheSame) {
  for (const char* text : {"a:1", "10.0.0.5:7070", "[::]:0", "[2001:db8::7]:9101"}) {
    const auto address = ParseHostPort(text);
    ASSERT_TRUE(address.has_value()) << text;
    EXPECT_EQ(FormatHostPort(*address), text);
  }
}

}  // namespace
}  // namespace tactus::runtime
