// Checkpoints that a group takes while it trains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "coordinator/job/attempts.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class JobCheckpointsTest : public testing::Test {
 protected:
  JobCheckpointsTest() { rig_.ToRunning(); }

  static CheckpointedMessage After(std::uint64_t rounds) {
    return {.generation = 1,
            .file = "checkpoints/1-" + std::to_string(rounds) + ".safetensors",
            .rounds = rounds,
            .samples_global = 96 * rounds,
            .epochs = 1,
            .epoch_consumed = 7,
            .train_loss = 1.5,
            .train_seconds = 0.05,
            .sha256 = "checkpoint " + std::to_string(rounds),
            .size_bytes = 9};
  }
  Actions Say(CheckpointedMessage message, std::uint64_t worker = 1) {
    return rig_.Step(Said(worker, std::move(message)));
  }
  // The second is killed, the others obey.
  void LoseGroup() {
    rig_.Step(WorkerExited{.worker = WorkerId{2}, .exit_code = -1, .signal = 9});
    rig_.Step(WorkerExited{.worker = WorkerId{1}, .exit_code = -1, .signal = 15});
    rig_.Step(WorkerExited{.worker = WorkerId{3}, .exit_code = -1, .signal = 15});
  }
  const JobRecord& record() const { return rig_.record(); }

  Rig rig_;
};

TEST_F(JobCheckpointsTest, OneIsDurableBeforeAnybodyIsToldOfIt) {
  const Actions actions = Say(After(5));

  ASSERT_GE(actions.size(), 2u);
  ASSERT_TRUE(std::holds_alternative<PersistJob>(actions[0]));
  ASSERT_TRUE(std::holds_alternative<PublishJob>(actions[1]));
  EXPECT_EQ(record().state, JobState::kRunning);
  ASSERT_TRUE(record().checkpoint);
  EXPECT_EQ(record().checkpoint->sha256, "checkpoint 5");
  EXPECT_EQ(record().checkpoint->rounds, 5u);
  EXPECT_EQ(record().checkpoint->samples, 480u);
  EXPECT_EQ(record().checkpoint->epoch, 1u);
  EXPECT_EQ(record().checkpoint->epoch_consumed, 7u);
  EXPECT_EQ(record().checkpoint->time, kWallOffset + Seconds(rig_.seconds()).count());
}

TEST_F(JobCheckpointsTest, AfterALossTheJobGoesOnFromTheNewest) {
  Say(After(5));
  Say(After(9));
  for (int i = 0; i < 20; ++i) rig_.Round();

  LoseGroup();

  EXPECT_EQ(record().state, JobState::kQueued);
  EXPECT_EQ(record().progress.rounds, 9u);
  EXPECT_EQ(record().progress.samples, 864u);
  const auto starts = Only<StartWorker>(rig_.StepAt(rig_.seconds() + 6, Ticked{}));
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_EQ(starts[0].checkpoint, "checkpoint 9");
}

// Reports of the others have not come for as many rounds, and do not any more.
TEST_F(JobCheckpointsTest, AnAttemptDidAtLeastWhatItsCheckpointHolds) {
  Say(After(9));

  LoseGroup();

  EXPECT_EQ(record().attempts.back().rounds, 9u);
  EXPECT_EQ(record().attempts.back().samples, 864u);
}

TEST_F(JobCheckpointsTest, TheNewestFewAreKept) {
  for (const std::uint64_t rounds : {5, 9, 14}) Say(After(rounds));

  EXPECT_EQ(record().checkpoint->rounds, 14u);
  EXPECT_THAT(record().former_checkpoints, ElementsAre(Field(&CheckpointRecord::rounds, 9u)));
}

TEST_F(JobCheckpointsTest, OneThatCannotBeReadGivesWayToTheOneBeforeIt) {
  Say(After(5));
  Say(After(9));
  LoseGroup();
  rig_.StepAt(rig_.seconds() + 6, Ticked{});

  rig_.Step(Said(5, FailedMessage{.field = "checkpoint", .message = "damaged", .transient = true}));

  EXPECT_EQ(record().checkpoint->rounds, 5u);
  EXPECT_THAT(record().former_checkpoints, IsEmpty());
  EXPECT_EQ(record().progress.rounds, 5u);
  EXPECT_THAT(record().attempts.back().reason,
              StartsWith("the checkpoint after 9 rounds was given up: worker 5 on node a"));
  for (const std::uint64_t worker : {4, 5, 6}) {
    rig_.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = 1});
  }
  EXPECT_THAT(record().state_reason,
              StartsWith("goes on from round 5 in 10 seconds (retry 2 of 3)"));
  const auto starts = Only<StartWorker>(rig_.StepAt(rig_.seconds() + 11, Ticked{}));
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_EQ(starts[0].checkpoint, "checkpoint 5");
}

// Rounds that are done for the second time are no progress: else a job whose checkpoints are never
// whole would be tried for ever.
TEST_F(JobCheckpointsTest, WhatWasGivenUpIsNoProgressWhenItIsReachedAgain) {
  JobRecord record = Job(1);
  record.checkpoint = CheckpointRecord{.rounds = 5};
  record.fruitless = 2;
  record.fruitless_rounds = 9;

  EXPECT_TRUE(CountLoss(record));
  EXPECT_EQ(record.fruitless_rounds, 9u);
  record.checkpoint->rounds = 9;
  EXPECT_FALSE(CountLoss(record));
  record.checkpoint->rounds = 10;
  EXPECT_TRUE(CountLoss(record));
}

TEST_F(JobCheckpointsTest, WithoutOneBeforeItTheNewestStays) {
  Say(After(9));
  LoseGroup();
  rig_.StepAt(rig_.seconds() + 6, Ticked{});

  rig_.Step(Said(5, FailedMessage{.field = "checkpoint", .message = "damaged", .transient = true}));

  ASSERT_TRUE(record().checkpoint);
  EXPECT_EQ(record().checkpoint->rounds, 9u);
  EXPECT_EQ(record().fruitless, 2u);
}

TEST_F(JobCheckpointsTest, AJobThatFailsKeepsTheNewest) {
  Say(After(5));
  Say(After(9));

  rig_.Step(Said(1, FailedMessage{.field = "optimizer", .message = "the loss diverges"}));

  EXPECT_EQ(record().state, JobState::kFailed);
  ASSERT_TRUE(record().checkpoint);
  EXPECT_EQ(record().checkpoint->rounds, 9u);
}

TEST_F(JobCheckpointsTest, AJobThatSucceedsHasItsResultAndNone) {
  Say(After(5));

  rig_.FinishAll();
  rig_.StoreAll();

  EXPECT_EQ(record().state, JobState::kSucceeded);
  EXPECT_FALSE(record().checkpoint);
}

TEST_F(JobCheckpointsTest, WhatIsNoNewsIsNone) {
  Say(After(9));
  CheckpointedMessage stranger = After(20);
  stranger.generation = 7;
  CheckpointedMessage nameless = After(20);
  nameless.sha256.clear();

  EXPECT_THAT(Only<PersistJob>(Say(After(9))), IsEmpty());
  EXPECT_THAT(Only<PersistJob>(Say(After(5))), IsEmpty());
  EXPECT_THAT(Only<PersistJob>(Say(stranger)), IsEmpty());
  EXPECT_THAT(Only<PersistJob>(Say(nameless)), IsEmpty());
  EXPECT_THAT(Only<PersistJob>(Say(After(20), 2)), IsEmpty()) << "not of rank 0";
  EXPECT_EQ(record().checkpoint->rounds, 9u);
}

TEST_F(JobCheckpointsTest, ItsFileIsNoPartOfTheResult) {
  const Actions stored =
      rig_.Step(ArtifactStored{JobId{1}, {.path = After(5).file, .sha256 = "checkpoint 5"}});

  EXPECT_THAT(Only<PersistJob>(stored), IsEmpty());
  EXPECT_THAT(record().ending.artifacts, IsEmpty());
}

TEST_F(JobCheckpointsTest, ACoordinatorThatRestartsKnowsTheNewest) {
  Say(After(9));
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});
  Say(After(12));

  LoseGroup();

  EXPECT_EQ(record().progress.rounds, 12u);
}

TEST_F(JobCheckpointsTest, AJobThatIsOverKeepsNoneButTheNewest) {
  Say(After(5));
  Say(After(9));

  rig_.Step(JobCancelled{.job = JobId{1}, .discard = true});
  rig_.FinishAll();

  EXPECT_EQ(record().state, JobState::kCancelled);
  EXPECT_THAT(record().former_checkpoints, IsEmpty());
}

TEST(LossSecondsTest, GroupsThatWereLostOftenAreExpectedToBeAgain) {
  JobRecord record = Job(1);
  EXPECT_EQ(LossSeconds(record, 4), 21600);

  record.attempts = {{.end_time = 1, .rounds = 90, .trained = 3600, .workers = 4},
                     {.end_time = 2,
                      .first_round = 90,
                      .first_trained = 3600,
                      .rounds = 95,
                      .trained = 5400,
                      .workers = 4},
                     {.end_time = 3,
                      .first_round = 90,
                      .first_trained = 3600,
                      .rounds = 90,
                      .trained = 3600,
                      .workers = 4},
                     {.first_round = 90, .first_trained = 3600, .workers = 2}};
  record.progress.elapsed_seconds = 4600;

  EXPECT_NEAR(LossSeconds(record, 4), (86400.0 + 4 * 3600 + 4 * 1800 + 2 * 1000) / 3 / 4, 1e-6);
}

}  // namespace
}  // namespace tactus::job
