#include "base/time.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tactus {
namespace {

using namespace std::chrono_literals;

template <typename Clock>
concept CanBeAsked = requires {
  Clock::now();
};

TEST(TimeTest, TheClockCannotBeAskedWhatTimeItIs) {
  static_assert(!CanBeAsked<Monotonic>);
  static_assert(CanBeAsked<std::chrono::steady_clock>);
}

TEST(TimeTest, SecondsAreRoundedTowardsZeroToANanosecond) {
  EXPECT_EQ(Seconds(0), 0ns);
  EXPECT_EQ(Seconds(1.5), 1500ms);
  EXPECT_EQ(Seconds(-1.5), -1500ms);
  EXPECT_EQ(Seconds(1.9e-9), 1ns);
  EXPECT_EQ(Seconds(-1.9e-9), -1ns);
}

TEST(TimeTest, ADurationSurvivesTheWayToSecondsAndBack) {
  for (const Duration duration : {0ns, 1ns, 999ns, 123'456'789ns, 86'400'000'000'000ns}) {
    EXPECT_NEAR(static_cast<double>(Seconds(ToSeconds(duration)).count()),
                static_cast<double>(duration.count()), 1.0);
  }
}

TEST(TimeTest, InstantsAreOrderedAndDifferByDurations) {
  const Instant start{};
  const Instant later = start + 250ms;

  EXPECT_LT(start, later);
  EXPECT_EQ(later - start, 250ms);
  EXPECT_DOUBLE_EQ(ToSeconds(later - start), 0.25);
}

TEST(TimeTest, HoldsTwoHundredYears) {
  const double seconds = 200.0 * 365 * 86'400;

  EXPECT_NEAR(ToSeconds(Seconds(seconds)) / seconds, 1.0, 1e-15);
}

}  // namespace
}  // namespace tactus
