// Members that held wrong parameters, and hold the others' again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/coordinator/job/regroup_fixture.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class JobDifferencesTest : public JobRegroupTest {
 protected:
  Actions Differ(std::uint64_t worker, std::vector<std::uint32_t> wrong, bool majority = true,
                 std::uint64_t generation = 1) {
    return rig_.Step(Said(worker, DifferedMessage{.generation = generation,
                                                  .rounds = 7,
                                                  .wrong = std::move(wrong),
                                                  .majority = majority}));
  }
};

TEST_F(JobDifferencesTest, TheyAreOnRecordAndTrainOn) {
  Differ(1, {2});

  EXPECT_EQ(record().differences, 1u);
  EXPECT_EQ(record().difference_reason,
            "after round 7 the parameters of worker 3 on node b differed from those of the other 2 "
            "workers, which it took over");
  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{3}));
}

TEST_F(JobDifferencesTest, WithoutAMajorityNobodyIsAccused) {
  Differ(1, {1, 2}, false);
  Differ(1, {1, 2}, false);
  Differ(1, {1, 2}, false);

  EXPECT_EQ(record().differences, 3u);
  EXPECT_THAT(record().difference_reason, HasSubstr("nobody knows whose were right"));
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{3}));
}

TEST_F(JobDifferencesTest, WhoIsWrongAgainIsLeftOutAndItsDeviceSetAside) {
  Differ(1, {2});
  const Actions again = Differ(1, {2});

  EXPECT_THAT(Stopped(again), ElementsAre(WorkerId{3}));
  Lose(1);
  Lose(2);
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}));
  EXPECT_THAT(record().regroup_reason, HasSubstr("held wrong parameters again"));
  EXPECT_THAT(rig_.cluster().membership().nodes().at("b").devices[0].fault, HasSubstr("wrong"));
}

TEST_F(JobDifferencesTest, OneMessageIsOneStrikeOfEachThatItNames) {
  Differ(1, {2, 2, 2});

  EXPECT_EQ(record().differences, 1u);
  EXPECT_EQ(rig_.cluster().membership().nodes().at("b").devices[0].fault, "");
  EXPECT_THAT(Members(), ElementsAre(WorkerId{1}, WorkerId{2}, WorkerId{3}));
}

TEST_F(JobDifferencesTest, WhatIsOfAnotherGroupOrNoMemberIsPassedOver) {
  Differ(1, {2}, true, 9);
  Differ(1, {3});
  Differ(1, {0});
  Differ(1, {});

  EXPECT_EQ(record().differences, 0u);
  EXPECT_THAT(record().difference_reason, IsEmpty());
}

// ---- The part of the samples that is trained on

TEST_F(JobDifferencesTest, WhatTheFirstMemberSaysWasChosenIsOnRecord) {
  const auto say = [&](std::uint64_t worker, std::uint64_t generation, std::uint64_t number) {
    rig_.Step(Said(worker, SelectedMessage{.generation = generation,
                                           .rounds = 40,
                                           .epoch = 5,
                                           .number = number,
                                           .facts = "15 of 50 samples"}));
  };

  say(2, 1, 1);
  say(1, 7, 1);
  EXPECT_EQ(record().selections, 0u);
  say(1, 1, 2);

  EXPECT_EQ(record().selections, 2u);
  EXPECT_EQ(record().selection, "after round 40 and epoch 5: 15 of 50 samples");
}

// The next one may have just begun.
TEST_F(JobDifferencesTest, ACancelWaitsAsLongAsTheLongestChoiceBesides) {
  for (const double seconds : {200.0, 30.0}) {
    rig_.Step(Said(1, SelectedMessage{.generation = 1, .number = 1, .seconds = seconds}));
  }
  rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});
  const double asked = rig_.seconds();

  rig_.StepAt(asked + 499, Ticked{});
  EXPECT_EQ(record().state, JobState::kStopping);
  rig_.StepAt(asked + 501, Ticked{});

  EXPECT_EQ(record().state, JobState::kCancelled);
}

TEST_F(JobDifferencesTest, SecondsThatAreNoNumberProlongNothing) {
  for (const double seconds : {-5.0, std::numeric_limits<double>::infinity()}) {
    rig_.Step(Said(1, SelectedMessage{.generation = 1, .number = 1, .seconds = seconds}));
  }

  EXPECT_EQ(record().selection_seconds, 0);
}

}  // namespace
}  // namespace tactus::job
