#include "coordinator/files/retention_clock.h"

#include <gtest/gtest.h>

namespace tactus::service {
namespace {

constexpr job::WallTime kHour = Duration(std::chrono::hours(1)).count();
constexpr job::WallTime kDay = 24 * kHour;
constexpr job::WallTime kYear = 365 * kDay;
constexpr job::WallTime kSince = 50 * kYear;

Instant After(job::WallTime nanoseconds) { return Instant(Duration(nanoseconds)); }

TEST(RetentionClockTest, IsTheTimeOfDayWhereThatGoesOn) {
  RetentionClock clock(kSince, After(0));

  for (int hour = 1; hour < 1000; ++hour) {
    EXPECT_EQ(clock.Now(kSince + hour * kHour, After(hour * kHour)), kSince + hour * kHour);
  }
}

TEST(RetentionClockTest, FollowsAJumpSlowly) {
  RetentionClock clock(kSince, After(0));
  clock.Now(kSince + kHour, After(kHour));

  EXPECT_EQ(clock.Now(kSince + 10 * kYear, After(2 * kHour)), kSince + 3 * kHour);
  EXPECT_EQ(clock.Now(kSince + 10 * kYear, After(3 * kHour)), kSince + 5 * kHour);
  // Set right again.
  EXPECT_EQ(clock.Now(kSince + 4 * kHour, After(4 * kHour)), kSince + 4 * kHour);
}

TEST(RetentionClockTest, BelievesInAWeekOfAbsence) {
  RetentionClock soon(kSince, After(0));
  RetentionClock late(kSince, After(0));

  EXPECT_EQ(soon.Now(kSince + 6 * kDay, After(0)), kSince + 6 * kDay);
  EXPECT_EQ(late.Now(kSince + kYear, After(0)), kSince + 7 * kDay);
  EXPECT_EQ(late.Now(kSince + kYear, After(kHour)), kSince + 7 * kDay + 2 * kHour);
}

TEST(RetentionClockTest, AtTheVeryFirstIsTheTimeOfDay) {
  RetentionClock clock(0, After(kHour));

  EXPECT_EQ(clock.Now(kSince, After(2 * kHour)), kSince);
}

TEST(RetentionClockTest, IsNeverAheadOfTheTimeOfDay) {
  RetentionClock clock(kSince, After(0));

  EXPECT_EQ(clock.Now(kSince - kYear, After(kHour)), kSince - kYear);
}

}  // namespace
}  // namespace tactus::service
