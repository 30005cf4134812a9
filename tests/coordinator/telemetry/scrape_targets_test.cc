#include "coordinator/telemetry/scrape_targets.h"

#include <gtest/gtest.h>

#include <string>

namespace tactus::telemetry {
namespace {

constexpr const char* kFar = "ipv4:10.0.0.5:41234";
constexpr const char* kNear = "ipv4:127.0.0.1:41234";

std::string Target(const std::string& metrics_address, const std::string& peer = kFar) {
  return ScrapeTarget({.node = "a", .metrics_address = metrics_address, .peer = peer})
      .value_or("none");
}

TEST(ScrapeTargetsTest, AnAddressThatOthersReachIsTheTarget) {
  EXPECT_EQ(Target("10.0.0.7:9101"), "10.0.0.7:9101");
  EXPECT_EQ(Target("gpu-7.example:9101"), "gpu-7.example:9101");
  EXPECT_EQ(Target("[2001:db8::7]:9101"), "[2001:db8::7]:9101");
}

TEST(ScrapeTargetsTest, AWildcardStandsForTheAddressFromWhichTheAgentDials) {
  EXPECT_EQ(Target("0.0.0.0:9101"), "10.0.0.5:9101");
  EXPECT_EQ(Target("[::]:9101"), "10.0.0.5:9101");
  EXPECT_EQ(Target("0.0.0.0:9101", "ipv6:%5B2001:db8::5%5D:41234"), "[2001:db8::5]:9101");
  EXPECT_EQ(Target("0.0.0.0:9101", "ipv6:[::ffff:10.0.0.5]:41234"), "10.0.0.5:9101");
  EXPECT_EQ(Target("0.0.0.0:9101", kNear), "127.0.0.1:9101");
}

TEST(ScrapeTargetsTest, AWildcardOfAnAgentWithoutAnAddressIsNoTarget) {
  for (const char* peer : {"", "unix:/tmp/socket", "unknown", "ipv4:41234",
                           "ipv6:%5Bfe80::1%25eth0%5D:41234", "ipv6:[fe80::1]:41234"}) {
    EXPECT_EQ(Target("0.0.0.0:9101", peer), "none") << peer;
  }
}

TEST(ScrapeTargetsTest, ALoopbackIsATargetOnTheCoordinatorsHostAlone) {
  for (const char* address : {"127.0.0.1:9101", "localhost:9101", "[::1]:9101"}) {
    EXPECT_EQ(Target(address, kNear), address);
    EXPECT_EQ(Target(address, kFar), "none") << address;
    EXPECT_EQ(Target(address, ""), "none") << address;
  }
}

TEST(ScrapeTargetsTest, WhatIsNoAddressIsNoTarget) {
  for (const char* address :
       {"", "9101", ":9101", "host:", "host:0", "host:65536", "host:http", "a/b:9101", "a\"b:9101",
        "a b:9101", "user@host:9101", "host:9101/x", "[::1:9101", "a\n:9101", "host:-1"}) {
    EXPECT_EQ(Target(address, kNear), "none") << address;
  }
}

TEST(ScrapeTargetsTest, TheAnswerHasAnEntryForEachAgentThatCanBeScraped) {
  EXPECT_EQ(ScrapeTargetsJson({{.node = "a", .metrics_address = "0.0.0.0:9101", .peer = kFar},
                               {.node = "b", .metrics_address = "", .peer = kFar},
                               {.node = "c.d", .metrics_address = "[::]:1", .peer = kNear}}),
            R"([{"targets":["10.0.0.5:9101"],"labels":{"node":"a"}},)"
            R"({"targets":["127.0.0.1:1"],"labels":{"node":"c.d"}}])");
  EXPECT_EQ(ScrapeTargetsJson({}), "[]");
}

}  // namespace
}  // namespace tactus::telemetry
