#include "runtime/json_log.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/logging.h"

namespace tactus::runtime {
namespace {

// What is behind the five keys that every line has.
std::string FieldsOf(const std::string& text) {
  const std::string line =
      JsonLogLine({.time = 0, .level = "info", .component = "c", .text = text});
  const std::size_t begin = line.find("\"msg\":");
  const std::size_t end = line.find('"', begin + 7);  // no phrase here has quotes
  return line.substr(end + 1);
}

TEST(JsonLogTest, ALineIsAnObject) {
  EXPECT_EQ(JsonLogLine({.time = 1'772'373'900'123'456'789,
                         .level = "info",
                         .component = "events",
                         .text = "job submitted job=demo-1 request=\"a b\""}),
            "{\"ts\":\"2026-03-01T14:05:00.123456Z\",\"level\":\"info\",\"component\":\"events\","
            "\"event\":\"job_submitted\",\"msg\":\"job submitted\",\"job\":\"demo-1\","
            "\"request\":\"a b\"}\n");
}

TEST(JsonLogTest, AnEventIsThePhraseUpToItsComma) {
  const auto event = [](const std::string& text) {
    const std::string line = JsonLogLine({.text = text});
    const std::size_t begin = line.find("\"event\":\"") + 9;
    return line.substr(begin, line.find('"', begin) - begin);
  };

  EXPECT_EQ(event("workers' output dropped, the disk is too slow job=x"), "workers_output_dropped");
  EXPECT_EQ(event("store works again"), "store_works_again");
  EXPECT_EQ(event("Re-read it"), "re_read_it");
  EXPECT_EQ(event("a=1"), "");
  EXPECT_EQ(event(""), "");
}

TEST(JsonLogTest, NumbersAndTruthsAreSuch) {
  EXPECT_EQ(FieldsOf("x a=1 b=-0.5 c=1e-05 d=true e=18446744073709551615"),
            ",\"a\":1,\"b\":-0.5,\"c\":1e-05,\"d\":true,\"e\":18446744073709551615}\n");
}

TEST(JsonLogTest, WhatOnlyLooksLikeANumberIsText) {
  EXPECT_EQ(FieldsOf("x a=007 b=nan c=1. d=.5 e=+1 f=- g=1e h=0x1 i="),
            ",\"a\":\"007\",\"b\":\"nan\",\"c\":\"1.\",\"d\":\".5\",\"e\":\"+1\",\"f\":\"-\","
            "\"g\":\"1e\",\"h\":\"0x1\",\"i\":\"\"}\n");
}

TEST(JsonLogTest, NamesAndQuotedValuesAreText) {
  EXPECT_EQ(FieldsOf("x node=7 batch_sizes=32 request=9e9 reason=\"5\""),
            ",\"node\":\"7\",\"batch_sizes\":\"32\",\"request\":\"9e9\",\"reason\":\"5\"}\n");
}

TEST(JsonLogTest, WhatWasQuotedComesBack) {
  const std::string text = "a \"b\" \\ c=d \n e";
  EXPECT_EQ(FieldsOf("x a=" + Quoted(text) + " b=2"),
            ",\"a\":\"a \\\"b\\\" \\\\ c=d \\n e\",\"b\":2}\n");
}

TEST(JsonLogTest, ABareValueMayHaveBlanks) {
  EXPECT_EQ(FieldsOf("x a=one two  b=3"), ",\"a\":\"one two \",\"b\":3}\n");
}

TEST(JsonLogTest, NoFieldReplacesOneThatEveryLineHas) {
  EXPECT_EQ(FieldsOf("x level=9 ts=\"1\" a=1 a=2"), ",\"a\":1}\n");
}

TEST(JsonLogTest, BrokenTextIsReplacedAndStaysOneLine) {
  EXPECT_EQ(FieldsOf("x a=\"\xff\xc3\xa4\xed\xa0\x80\xf0\x9f\x98\x80\x01 b=1"),
            ",\"a\":\"\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80"
            "\\u0001 b=1\"}\n");
  EXPECT_EQ(FieldsOf("x a=\"\\"), ",\"a\":\"\\\\\"}\n");
  EXPECT_EQ(FieldsOf("x a=\xc3"), ",\"a\":\"\xef\xbf\xbd\"}\n");
}

TEST(LoggingTest, ALevelOfAllIsKnownAndNoOther) {
  for (const char* level : {"trace", "debug", "info", "warn", "error", "off"}) {
    EXPECT_TRUE(CheckLogLevel(level).ok()) << level;
  }
  for (const char* level : {"", "loud", "INFO", "warning", "critical"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckLogLevel(level))) << level;
  }
}

TEST(LoggingTest, AnUnknownFormatIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(StartLogging({.format = "xml"})));
}

// Logging starts once a process, so in one of its own.
TEST(LoggingDeathTest, ALevelHasOneNameInTextAndInOptions) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto log = [] {
    if (!StartLogging({}).ok()) std::_Exit(1);
    Logger("a")->warn("careful");
    Logger("b")->info("well");
    StopLogging();
    std::_Exit(0);
  };

  EXPECT_EXIT(log(), testing::ExitedWithCode(0), " warn a: careful\n.* info b: well");
}

TEST(LoggingTest, AChangedLevelHoldsForLoggersThatAreThere) {
  const auto logger = Logger("a-logger-of-this-test");
  EXPECT_FALSE(logger->should_log(spdlog::level::debug));

  SetLogLevel("debug", nullptr);
  EXPECT_TRUE(logger->should_log(spdlog::level::debug));

  SetLogLevel("off", nullptr);
  EXPECT_FALSE(logger->should_log(spdlog::level::critical));
  SetLogLevel("warn", nullptr);
}

TEST(LoggingTest, AChangeIsSaidWhileMoreIsLogged) {
  const auto logger = Logger("a-logger-of-this-test");
  std::vector<bool> heard;
  const auto say = [&] { heard.push_back(logger->should_log(spdlog::level::info)); };

  SetLogLevel("info", say);
  SetLogLevel("error", say);

  EXPECT_EQ(heard, std::vector<bool>({true, true}));
  SetLogLevel("warn", nullptr);
}

}  // namespace
}  // namespace tactus::runtime
