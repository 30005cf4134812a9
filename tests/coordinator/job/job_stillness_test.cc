// What a job makes of a group that closes no round: who is to blame, and how long it is waited for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

StandingMessage Waits(std::uint32_t rank) {
  return {.generation = 1, .waits = true, .awaits = {rank}};
}

// Three workers that train. Nothing more is said but where they stand.
class JobStillnessTest : public testing::Test {
 protected:
  JobStillnessTest() : rig_(JobOnce(1)) {
    rig_.ToRunning();
    rig_.Round();
    heard_ = rig_.seconds();
  }

  // Ticks at each deadline until then, and answers in the name of who is looked at.
  void RunTo(double seconds) {
    while (next_ < heard_ + seconds) {
      Answer(rig_.StepAt(next_, Ticked{}));
      next_ += 0.5;
    }
  }

  void Answer(const Actions& actions) {
    for (const LookAtWorker& look : Only<LookAtWorker>(actions)) {
      const auto found = standings_.find(look.worker.value);
      if (found != standings_.end()) rig_.StepAt(next_, Said(look.worker.value, found->second));
    }
    for (const WorkerId worker : Stopped(actions)) stopped_.push_back(worker);
  }

  Rig rig_;
  double heard_ = 0;  // the last report
  double next_ = 2;
  std::map<std::uint64_t, StandingMessage> standings_;
  std::vector<WorkerId> stopped_;
};

// Of 0.65 s; rounded up to a second, and to the next whole one of all jobs.
TEST_F(JobStillnessTest, AllAreLookedAtFourRoundsAfterTheLastReport) {
  EXPECT_THAT(Only<LookAtWorker>(rig_.StepAt(heard_ + 2.9, Ticked{})), IsEmpty());

  const auto looks = Only<LookAtWorker>(rig_.StepAt(heard_ + 4, Ticked{}));

  ASSERT_THAT(looks, SizeIs(3));
  EXPECT_EQ(looks[2].node, "b");
  EXPECT_EQ(looks[2].worker, WorkerId{3});
}

TEST_F(JobStillnessTest, AStoppedProcessIsNamedAtOnceAndGivenUpAfterTwoMinutes) {
  standings_[1] = standings_[2] = Waits(2);
  standings_[3] = {.generation = 1, .stopped = true};

  RunTo(5);
  EXPECT_EQ(rig_.record().state_reason,
            "training on 3 workers; worker 3 on node b stands still: its process is stopped");
  RunTo(120);
  EXPECT_EQ(rig_.record().state, JobState::kRunning);
  RunTo(140);

  EXPECT_EQ(rig_.record().state, JobState::kFailed);
  EXPECT_THAT(rig_.record().state_reason,
              HasSubstr("worker 3 on node b stands still: its process is stopped; no newer "
                        "round for 1"));
  EXPECT_THAT(rig_.record().state_reason, HasSubstr(" seconds, after 2 rounds"));
  EXPECT_THAT(stopped_, ElementsAre(WorkerId{3}, WorkerId{1}, WorkerId{2}))
      << "the others when none of them says that it could go on";
}

TEST_F(JobStillnessTest, AReportTakesItBack) {
  standings_[3] = {.generation = 1, .stopped = true};
  RunTo(100);
  ASSERT_THAT(rig_.record().state_reason, HasSubstr("stands still"));

  rig_.StepAt(next_, Said(3, ReportOf(2, {.round = 2, .batch_sizes = {32, 32, 32}})));
  EXPECT_EQ(rig_.record().state_reason, "training on 3 workers");
  heard_ = next_;
  RunTo(100);

  EXPECT_EQ(rig_.record().state, JobState::kRunning);
}

TEST_F(JobStillnessTest, WhoTakesProcessorTimeIsWaitedForLonger) {
  standings_[1] = standings_[2] = Waits(2);
  for (int second = 0; second < 890; second += 2) {
    standings_[3] = {.generation = 1, .processor_seconds = double(second)};
    RunTo(second);
  }
  EXPECT_THAT(rig_.record().state_reason,
              HasSubstr("others wait for worker 3 on node b, which computes and ends no batch"));
  for (int second = 890; second < 920; second += 2) {
    standings_[3] = {.generation = 1, .processor_seconds = double(second)};
    RunTo(second);
  }

  EXPECT_EQ(rig_.record().state, JobState::kFailed);
}

TEST_F(JobStillnessTest, WhoDoesBatchesIsNeverGivenUp) {
  standings_[1] = standings_[2] = Waits(2);
  for (int second = 0; second < 4000; second += 2) {
    standings_[3] = {.generation = 1, .batches = std::uint64_t(second)};
    RunTo(second);
  }

  EXPECT_EQ(rig_.record().state, JobState::kRunning);
  EXPECT_EQ(rig_.record().state_reason, "training on 3 workers");  // it is only slow
}

TEST_F(JobStillnessTest, LongRoundsAreLookedAtLater) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    ReportMessage slow = ReportOf(rank, {.round = 2, .batch_sizes = {32, 32, 32}});
    slow.report.round_seconds = 10;
    rig_.StepAt(heard_ + 10, Said(rank + 1, slow));
  }
  EXPECT_THAT(Only<LookAtWorker>(rig_.StepAt(heard_ + 49.9, Ticked{})), IsEmpty());

  EXPECT_THAT(Only<LookAtWorker>(rig_.StepAt(heard_ + 51, Ticked{})), SizeIs(3));
}

TEST_F(JobStillnessTest, WhoseNodeIsNotHeardIsNotAsked) {
  rig_.Step(NodeUnreachable{.node = "a", .reason = "not heard for 10 s"});

  const auto looks = Only<LookAtWorker>(rig_.StepAt(heard_ + 4, Ticked{}));

  ASSERT_THAT(looks, SizeIs(1));
  EXPECT_EQ(looks[0].worker, WorkerId{3});
}

TEST_F(JobStillnessTest, ACoordinatorThatStoodStillItselfAsksFirst) {
  EXPECT_THAT(Stopped(rig_.StepAt(heard_ + 5000, Ticked{})), IsEmpty());
  EXPECT_THAT(Stopped(rig_.StepAt(heard_ + 5002, Ticked{})), IsEmpty());
  EXPECT_THAT(Stopped(rig_.StepAt(heard_ + 5004, Ticked{})), IsEmpty());

  EXPECT_EQ(rig_.record().state, JobState::kRunning);
}

TEST_F(JobStillnessTest, NorDoesItConcludeFromWhatWasAnsweredBefore) {
  standings_[1] = standings_[2] = Waits(2);
  standings_[3] = {.generation = 1, .stopped = true};
  RunTo(100);
  ASSERT_THAT(rig_.record().state_reason, HasSubstr("its process is stopped"));

  EXPECT_THAT(Stopped(rig_.StepAt(heard_ + 5000, Ticked{})), IsEmpty());

  EXPECT_EQ(rig_.record().state, JobState::kRunning);
}

// The plan's rounds were long before the coordinator restarted.
TEST_F(JobStillnessTest, LongRoundsAreRememberedOverARestart) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    ReportMessage slow = ReportOf(rank, {.round = 2, .batch_sizes = {32, 32, 32}});
    slow.report.round_seconds = 10;
    rig_.StepAt(heard_ + 10, Said(rank + 1, slow));
  }
  rig_.StepAt(heard_ + 20, Said(1, ReportOf(0, {.round = 3, .batch_sizes = {32, 32, 32}})));
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});
  const double back = rig_.seconds();

  EXPECT_THAT(Only<LookAtWorker>(rig_.StepAt(back + 39, Ticked{})), IsEmpty());
  EXPECT_THAT(Only<LookAtWorker>(rig_.StepAt(back + 42, Ticked{})), SizeIs(3));
}

TEST_F(JobStillnessTest, WhatIsSaidUnaskedIsPassedOver) {
  EXPECT_THAT(rig_.Step(Said(3, StandingMessage{.stopped = true})), IsEmpty());
}

}  // namespace
}  // namespace tactus::job
