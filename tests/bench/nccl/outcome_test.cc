// How a case's outcome travels from a member's process, and how it is told.

#include "bench/nccl/outcome.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::bench::nccl {
namespace {

const Outcome kOutcome{
    .passed = true, .said = "sums are right", .figures = {{"init_us", 1.5}, {"leave_us", 2e6}}};

TEST(OutcomeTest, ComesOutOfItsLinesAsItWentIn) {
  EXPECT_EQ(FromLines(ToLines(kOutcome)), kOutcome);
  EXPECT_EQ(FromLines(ToLines({})), Outcome{});
}

TEST(OutcomeTest, AReasonOfSeveralLinesStaysOne) {
  const Outcome outcome{.said = "first\nsecond"};

  EXPECT_EQ(FromLines(ToLines(outcome))->said, "first second");
}

TEST(OutcomeTest, WhatAProcessThatDiedHasWrittenIsNone) {
  for (const char* const lines : {"", "passed", "passed\n", "perhaps\nso\n", "passed\nso\nus\n"}) {
    EXPECT_EQ(FromLines(lines), std::nullopt) << lines;
  }
}

TEST(OutcomeTest, AllMembersHaveToPass) {
  const Outcome failed{.said = "killed"};

  EXPECT_TRUE(Together({kOutcome, kOutcome}).passed);
  EXPECT_FALSE(Together({kOutcome, failed}).passed);
  EXPECT_EQ(Together({kOutcome, failed}).said, "rank 0: sums are right; rank 1: killed");
  EXPECT_EQ(Together({kOutcome, failed}).figures, kOutcome.figures);
}

TEST(OutcomeTest, JsonIsOneLine) {
  const Outcome outcome{.said = "a \"duplicate\"\n\\", .figures = {{"init_us", 12}}};

  EXPECT_EQ(ToJson("alone", outcome),
            "{\"case\": \"alone\", \"passed\": false, \"said\": \"a \\\"duplicate\\\" \\\\\", "
            "\"figures\": {\"init_us\": 12}}");
}

}  // namespace
}  // namespace tactus::bench::nccl
