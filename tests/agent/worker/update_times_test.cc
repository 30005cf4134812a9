#include "agent/worker/update_times.h"

#include <gtest/gtest.h>

namespace tactus::worker {
namespace {

Instant At(double seconds) { return Instant{} + Seconds(seconds); }

TEST(UpdateTimesTest, AnUpdateLiesBehindTheEndOfItsRound) {
  UpdateTimes updates(At(1));

  updates.Note(0, At(1), At(2));  // a step within the round
  updates.Note(0, At(3), At(3.25));

  EXPECT_EQ(updates.Take(0), 0.25);
  EXPECT_EQ(updates.Take(0), 0);
}

// Round 0 is reported when round 1 ends: what comes behind that end is of round 1.
TEST(UpdateTimesTest, OfDelayedRoundsTheTimeIsThatOfTheRoundThatEnded) {
  UpdateTimes updates(At(0));

  updates.Note(0, At(1), At(1.125));
  updates.Note(1, At(2), At(2.5));
  EXPECT_EQ(updates.Take(0), 0.125);
  updates.Note(2, At(3), At(3.25));
  EXPECT_EQ(updates.Take(1), 0.5);
  EXPECT_EQ(updates.Take(2), 0.25);  // applied in the same step
}

TEST(SecondsByRoundTest, SecondsOfARoundAddUpWhateverComesBetween) {
  SecondsByRound seconds;

  seconds.Add(0, 0.5);
  seconds.Add(1, 4);
  seconds.Add(0, 0.25);

  EXPECT_EQ(seconds.Take(0), 0.75);
  EXPECT_EQ(seconds.Take(1), 4);
  EXPECT_EQ(seconds.Take(1), 0);
}

TEST(UpdateTimesTest, WhatIsNotKnownIsNothing) {
  UpdateTimes updates(At(0));

  updates.Note(0, At(2), At(1));
  updates.Note(1, At(3), At(3.5));

  EXPECT_EQ(updates.Take(1), 0.5);
  EXPECT_EQ(updates.Take(0), 0);
  EXPECT_EQ(updates.Take(7), 0);
}

}  // namespace
}  // namespace tactus::worker
