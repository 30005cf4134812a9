#include "client/observe/disturbance.h"

#include <gtest/gtest.h>

#include <vector>

namespace tactus::client {
namespace {

Instant AtSecond(double seconds) { return Instant(Seconds(seconds)); }

v1::Job Training(std::uint64_t rounds) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_progress()->set_rounds(rounds);
  job.add_attempts()->set_number(1);
  return job;
}

// As many rounds from `first` on, of 10 samples each.
std::vector<v1::Round> Rounds(std::uint64_t first, int count) {
  std::vector<v1::Round> rounds;
  for (int i = 0; i < count; ++i) {
    v1::Round& round = rounds.emplace_back();
    round.set_round(first + static_cast<std::uint64_t>(i));
    round.set_samples(10);
  }
  return rounds;
}

TEST(DisturbanceTest, CountsRoundsOnceAndFromWhereItBegan) {
  Disturbance watch(Training(100), AtSecond(0));

  watch.Look(Training(100), Rounds(98, 4), AtSecond(1));
  watch.Look(Training(100), Rounds(100, 3), AtSecond(2));
  const Stretch stretch = watch.Take(AtSecond(3));

  EXPECT_EQ(stretch.rounds, 3u);
  EXPECT_EQ(watch.next_round(), 103u);
  EXPECT_DOUBLE_EQ(stretch.SamplesPerSecond(), 10.0);
}

TEST(DisturbanceTest, AGapReachesFromOneLookWithRoundsToTheNextOrToTheEnd) {
  Disturbance watch(Training(0), AtSecond(0));

  watch.Look(Training(0), Rounds(0, 1), AtSecond(1));
  watch.Look(Training(0), {}, AtSecond(2));
  watch.Look(Training(0), Rounds(1, 1), AtSecond(4));
  EXPECT_EQ(watch.Take(AtSecond(5)).longest_gap, Seconds(3));
  EXPECT_EQ(watch.Take(AtSecond(9)).longest_gap, Seconds(4));
}

TEST(DisturbanceTest, RegroupsAreThoseOfTheStretch) {
  v1::Job job = Training(0);
  job.set_regroups(5);
  Disturbance watch(job, AtSecond(0));

  job.set_regroups(7);
  watch.Look(job, {}, AtSecond(1));

  EXPECT_EQ(watch.Take(AtSecond(2)).regroups, 2u);
  EXPECT_EQ(watch.Take(AtSecond(3)).regroups, 0u);
}

TEST(DisturbanceTest, ARestartLosesWhatItsCheckpointDoesNotHave) {
  Disturbance watch(Training(0), AtSecond(0));
  watch.Look(Training(0), Rounds(0, 100), AtSecond(1));

  v1::Job again = Training(100);
  again.set_state(v1::JOB_STATE_STARTING);
  again.add_attempts()->set_number(2);
  again.mutable_attempts(1)->set_first_round(80);
  watch.Look(again, Rounds(100, 5), AtSecond(2));
  EXPECT_EQ(watch.next_round(), 80u);
  watch.Look(again, Rounds(80, 20), AtSecond(3));  // of the lost attempt, as no group has formed
  again.set_state(v1::JOB_STATE_RUNNING);
  watch.Look(again, Rounds(80, 50), AtSecond(4));
  const Stretch stretch = watch.Take(AtSecond(5));

  EXPECT_EQ(stretch.restarts, 1u);
  EXPECT_EQ(stretch.rounds_lost, 20u);
  EXPECT_EQ(stretch.rounds, 150u);
  EXPECT_DOUBLE_EQ(stretch.SamplesPerSecond(), 130 * 10 / 5.0);
  EXPECT_EQ(stretch.longest_gap, Seconds(3));
}

TEST(DisturbanceTest, WithoutARoundThereIsNoSpeed) {
  Disturbance watch(Training(0), AtSecond(0));
  EXPECT_DOUBLE_EQ(watch.Take(AtSecond(0)).SamplesPerSecond(), 0);
  EXPECT_DOUBLE_EQ(watch.Take(AtSecond(1)).SamplesPerSecond(), 0);
}

}  // namespace
}  // namespace tactus::client
