#include "session/numbered_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tactus::session {
namespace {

using ::testing::ElementsAre;

struct Numbered {
  std::uint64_t sequence = 0;
  int value = 0;
};
using Numbers = NumberedLog<Numbered>;

std::vector<std::uint64_t> SequencesOf(Numbers& log) {
  std::vector<std::uint64_t> sequences;
  while (const Numbered* entry = log.Next()) sequences.push_back(entry->sequence);
  return sequences;
}

TEST(NumberedLogTest, EntriesAreNumberedFromOneAndSentOnce) {
  Numbers log(8);
  ASSERT_TRUE(log.Append({.value = 1}));
  ASSERT_TRUE(log.Append({.value = 2}));

  EXPECT_THAT(SequencesOf(log), ElementsAre(1, 2));
  EXPECT_THAT(SequencesOf(log), ElementsAre());
}

TEST(NumberedLogTest, ANewStreamGetsAgainWhatWasNotAcknowledged) {
  Numbers log(8);
  for (int i = 1; i <= 4; ++i) ASSERT_TRUE(log.Append({.value = i}));
  SequencesOf(log);
  log.Acknowledge(1);
  log.Acknowledge(2);

  log.Rewind();
  ASSERT_TRUE(log.Append({.value = 5}));

  EXPECT_THAT(SequencesOf(log), ElementsAre(3, 4, 5));
}

TEST(NumberedLogTest, WhatGoesIsShownOnce) {
  Numbers log(8);
  for (int i = 1; i <= 3; ++i) ASSERT_TRUE(log.Append({.value = 10 * i}));
  std::vector<int> gone;
  const auto note = [&](const Numbered& entry) { gone.push_back(entry.value); };

  log.Acknowledge(2, note);
  log.Acknowledge(2, note);

  EXPECT_THAT(gone, ElementsAre(10, 20));
}

TEST(NumberedLogTest, ARestartGoesOnBehindWhatTheOtherEndRemembers) {
  Numbers log(8);
  ASSERT_TRUE(log.Append({.value = 1}));

  log.Restart(17);
  ASSERT_TRUE(log.Append({.value = 2}));

  EXPECT_THAT(SequencesOf(log), ElementsAre(18));
}

TEST(NumberedLogTest, AFullLogRefusesAndLosesNoNumber) {
  Numbers log(2);
  ASSERT_TRUE(log.Append({}));
  ASSERT_TRUE(log.Append({}));

  EXPECT_FALSE(log.Append({}));
  log.Acknowledge(2);
  ASSERT_TRUE(log.Append({}));

  EXPECT_THAT(SequencesOf(log), ElementsAre(3));
}

}  // namespace
}  // namespace tactus::session
