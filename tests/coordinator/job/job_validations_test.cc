// Validations that a group makes while it trains, on the job's record.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class JobValidationsTest : public testing::Test {
 protected:
  JobValidationsTest() { rig_.ToRunning(); }

  static ValidatedMessage After(std::uint64_t rounds, double loss, std::uint64_t best_rounds,
                                double best_loss) {
    return {.generation = 1,
            .rounds = rounds,
            .epoch = 1,
            .trained_samples = 96 * rounds,
            .train_seconds = 12.5,
            .loss = loss,
            .accuracy = 0.25,
            .samples = 100,
            .seconds = 0.5,
            .best_loss = best_loss,
            .best_accuracy = 0.75,
            .best_samples = 100,
            .best_rounds = best_rounds,
            .since_best = rounds == best_rounds ? 0u : 3u};
  }
  Actions Say(const ValidatedMessage& message, std::uint64_t worker = 1) {
    return rig_.Step(Said(worker, message));
  }
  // As a restart would find it.
  const ValidationProgress& Kept() {
    rig_.Step(JobPaused{.job = JobId{1}});
    return rig_.record().progress.validation;
  }

  Rig rig_;
};

TEST_F(JobValidationsTest, EachIsPutIntoTheHistoryAndCounted) {
  const auto kept = Only<PersistValidation>(Say(After(5, 1.5, 5, 1.5)));
  Say(After(9, 1.75, 5, 1.5));

  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(kept[0].validation.job, JobId{1});
  EXPECT_EQ(kept[0].validation.rounds, 5u);
  EXPECT_EQ(kept[0].validation.loss, 1.5);
  EXPECT_EQ(kept[0].validation.accuracy, 0.25);
  EXPECT_EQ(kept[0].validation.samples, 100u);
  EXPECT_EQ(kept[0].validation.train_seconds, 12.5);
  const ValidationProgress& progress = Kept();
  EXPECT_EQ(progress.count, 2u);
  EXPECT_EQ(progress.seconds, 1.0);
  EXPECT_EQ(progress.newest->rounds, 9u);
  EXPECT_EQ(progress.best->rounds, 5u);
  EXPECT_EQ(progress.best->accuracy, 0.25);
  EXPECT_EQ(progress.since_best, 3u);
}

TEST_F(JobValidationsTest, WhatOthersOrFormerGroupsSayIsNotHeard) {
  ValidatedMessage former = After(5, 1.5, 5, 1.5);
  former.generation = 0;

  EXPECT_THAT(Only<PersistValidation>(Say(After(5, 1.5, 5, 1.5), 2)), IsEmpty());
  EXPECT_THAT(Only<PersistValidation>(Say(former)), IsEmpty());
  EXPECT_EQ(Kept().count, 0u);
}

TEST_F(JobValidationsTest, NumbersThatNoGroupHasAreLeftOut) {
  ValidatedMessage message = After(5, 1.5, 5, 1.5);
  message.rounds = std::numeric_limits<std::uint64_t>::max();
  EXPECT_THAT(Only<PersistValidation>(Say(message)), IsEmpty());

  message = After(5, 1.5, 5, 1.5);
  message.seconds = std::numeric_limits<double>::infinity();
  message.train_seconds = -4;
  const auto kept = Only<PersistValidation>(Say(message));
  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(kept[0].validation.seconds, 0);
  EXPECT_EQ(kept[0].validation.train_seconds, 0);
}

TEST_F(JobValidationsTest, TheBestIsKnownAlsoWhereItsOwnMessageWasLost) {
  Say(After(9, 1.75, 5, 1.5));

  const ValidationProgress& progress = Kept();
  EXPECT_EQ(progress.best->rounds, 5u);
  EXPECT_EQ(progress.best->loss, 1.5);
  EXPECT_EQ(progress.best->accuracy, 0.75);
}

TEST_F(JobValidationsTest, WhatIsBehindTheCheckpointIsForgottenWithItsRounds) {
  Say(After(5, 1.5, 5, 1.5));
  rig_.Step(Said(1, CheckpointedMessage{.generation = 1,
                                        .file = "checkpoints/1-6.safetensors",
                                        .rounds = 6,
                                        .sha256 = "six",
                                        .size_bytes = 9}));
  Say(After(9, 1.25, 9, 1.25));

  rig_.Step(WorkerExited{.worker = WorkerId{2}, .exit_code = -1, .signal = 9});
  rig_.Step(WorkerExited{.worker = WorkerId{1}, .exit_code = -1, .signal = 15});
  rig_.Step(WorkerExited{.worker = WorkerId{3}, .exit_code = -1, .signal = 15});

  const ValidationProgress& progress = rig_.record().progress.validation;
  EXPECT_FALSE(progress.newest.has_value());
  EXPECT_FALSE(progress.best.has_value());
  EXPECT_EQ(progress.count, 2u);
}

TEST_F(JobValidationsTest, WithoutACheckpointTheirNumberAndTimeStay) {
  Say(After(5, 1.5, 5, 1.5));

  for (const std::uint64_t worker : {2, 1, 3}) {
    rig_.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = -1, .signal = 9});
  }
  EXPECT_EQ(rig_.record().progress.validation.count, 1u);
  rig_.StepAt(rig_.seconds() + 6, Ticked{});
  for (std::uint64_t worker = 4; worker <= 6; ++worker) rig_.Step(Said(worker, Ready()));

  ASSERT_EQ(rig_.record().generation, 2u);
  EXPECT_EQ(rig_.record().progress.validation.count, 1u);
  EXPECT_EQ(rig_.record().progress.validation.seconds, 0.5);
  EXPECT_FALSE(rig_.record().progress.validation.newest.has_value());
  EXPECT_EQ(rig_.record().progress.rounds, 0u);
}

TEST_F(JobValidationsTest, SoDoThePassesThatWereRepeated) {
  ReportMessage report = ReportOf(0, {.round = 1, .batch_sizes = {32, 32, 32}});
  report.out_of_memory = 3;
  rig_.Step(Said(1, report));
  EXPECT_EQ(Kept().count, 0u);
  EXPECT_EQ(rig_.record().progress.repeated_passes, 3u);
}

// One may have just begun, and the end's comes behind it.
TEST_F(JobValidationsTest, ACancelWaitsAsLongAsTwoOfThemBesides) {
  ValidatedMessage message = After(5, 1.5, 5, 1.5);
  message.seconds = 100;
  rig_.StepAt(rig_.seconds() + 2, Said(1, message));
  rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});
  const double asked = rig_.seconds();

  rig_.StepAt(asked + 499, Ticked{});
  EXPECT_EQ(rig_.record().state, JobState::kStopping);
  rig_.StepAt(asked + 501, Ticked{});

  EXPECT_EQ(rig_.record().state, JobState::kCancelled);
  EXPECT_THAT(rig_.record().state_reason, testing::HasSubstr("no result"));
}

TEST_F(JobValidationsTest, ACancelWithoutResultWaitsAsLongAsOne) {
  ValidatedMessage message = After(5, 1.5, 5, 1.5);
  message.seconds = 100;
  rig_.StepAt(rig_.seconds() + 2, Said(1, message));
  rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough", .discard = true});
  const double asked = rig_.seconds();

  rig_.StepAt(asked + 129, Ticked{});
  EXPECT_EQ(rig_.record().state, JobState::kStopping);
  rig_.StepAt(asked + 131, Ticked{});

  EXPECT_EQ(rig_.record().state, JobState::kCancelled);
}

TEST_F(JobValidationsTest, TheResultSaysOfWhichRoundsItsParametersAre) {
  rig_.Step(Said(1, EvaluatedMessage{.loss = 1.25, .samples = 10, .rounds = 7}));
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    FinishedMessage finished = Finished(static_cast<std::uint32_t>(worker - 1));
    finished.files.clear();
    rig_.Step(Said(worker, finished));
  }

  ASSERT_TRUE(rig_.record().result.has_value());
  EXPECT_EQ(rig_.record().result->validation_rounds, 7u);
}

}  // namespace
}  // namespace tactus::job
