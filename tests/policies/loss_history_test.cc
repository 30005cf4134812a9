#include "policies/loss_history.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace tactus::policies {
namespace {

constexpr double kFallOfCourse = 0.2;

double CourseAt(double seconds) { return 3 - kFallOfCourse * std::log(seconds); }

TEST(LossHistoryTest, ALineOverTheLogarithmOfTimeIsFound) {
  LossHistory history;
  for (int i = 1; i <= 1000; ++i) history.Add(1, i, CourseAt(i));

  const LossLine line = history.Fit({.first = 1, .end = 2});

  EXPECT_EQ(line.rounds, 1000u);
  EXPECT_NEAR(line.fall, kFallOfCourse, 1e-3);
  EXPECT_NEAR(line.At(std::log(2000.0)), CourseAt(2000), 1e-3);
}

TEST(LossHistoryTest, ErrorsCoverTheTruthAsOftenAsNormalOnesDo) {
  Rng rng(1);
  int covered = 0;
  constexpr int kTimes = 500;
  for (int time = 0; time < kTimes; ++time) {
    LossHistory history;
    for (int i = 1; i <= 300; ++i) history.Add(1, 0.5 * i, CourseAt(0.5 * i) + 0.1 * rng.Normal());
    const LossLine line = history.Fit({.first = 1, .end = 2});
    const double at = std::log(200.0);
    covered += std::abs(line.At(at) - CourseAt(200)) < line.ErrorAt(at) ? 1 : 0;
    if (time > 0) continue;
    EXPECT_NEAR(line.spread, 0.1, 0.02);
  }
  EXPECT_NEAR(covered, 0.683 * kTimes, 50);
}

TEST(LossHistoryTest, OnlyThePlansAndTheTimeAskedForCount) {
  LossHistory history;
  for (int i = 1; i <= 20; ++i) history.Add(1, i, 5);
  for (int i = 21; i <= 40; ++i) history.Add(2, i, 1);

  EXPECT_EQ(history.Fit({.first = 2, .end = 3}).mean, 1);
  EXPECT_EQ(history.Fit({.first = 1, .end = 2, .from = 10}).rounds, 10u);
  EXPECT_EQ(history.Fit({.first = 7, .end = 8}).rounds, 0u);
}

TEST(LossHistoryTest, FewRoundsTellNoSlope) {
  LossHistory history;
  for (int i = 1; i <= 3; ++i) history.Add(1, i, 10.0 - i);

  const LossLine line = history.Fit({.first = 1, .end = 2});

  EXPECT_EQ(line.mean, 8);
  EXPECT_EQ(line.fall, 0);
  EXPECT_TRUE(std::isinf(line.mean_error));
}

// Two hours of rounds of a hundredth of a second keep their beginning.
TEST(LossHistoryTest, HoursTakeNoMoreRoomThanTheyMay) {
  LossHistory history;
  for (int i = 1; i <= 720'000; ++i) history.Add(1, 0.01 * i, CourseAt(0.01 * i));

  const LossLine line = history.Fit({.first = 1, .end = 2});

  EXPECT_EQ(line.rounds, 720'000u);
  EXPECT_NEAR(line.fall, kFallOfCourse, 1e-6);
}

}  // namespace
}  // namespace tactus::policies
