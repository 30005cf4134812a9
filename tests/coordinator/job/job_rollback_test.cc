// A job whose loss rises as nothing explains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Rounds of 96 samples, of which an epoch has 1000.
class JobRollbackTest : public testing::Test {
 protected:
  JobRollbackTest() : rig_(Job(1, Settings())) { rig_.ToRunning(); }

  static JobSettings Settings() {
    JobSettings settings{.workers_min = 1, .workers_max = 3, .retries = 3};
    settings.adapt.batch_policy = "fixed";
    return settings;
  }
  // All report so many rounds of this loss. Returns what came of it.
  Actions Train(int rounds, double loss) {
    Actions all;
    for (int i = 0; i < rounds; ++i, ++round_) {
      for (std::uint32_t rank = 0; rank < 3; ++rank) {
        ReportMessage report = ReportOf(rank,
                                        {.round = round_,
                                         .plan_version = record().newest_plan.version,
                                         .batch_sizes = {32, 32, 32}},
                                        record().generation);
        report.report.loss_mean_global = loss;
        for (Action& action : rig_.Step(Said(first_worker_ + rank, report))) {
          all.push_back(std::move(action));
        }
      }
    }
    return all;
  }
  // Durable after so many rounds.
  void Checkpoint(std::uint64_t rounds) {
    rig_.Step(
        Said(first_worker_, CheckpointedMessage{.generation = record().generation,
                                                .file = "checkpoints/c.safetensors",
                                                .rounds = rounds,
                                                .samples_global = 96 * rounds,
                                                .epochs = 96 * rounds / 1000,
                                                .epoch_consumed = 96 * rounds % 1000,
                                                .train_loss = 2,
                                                .train_seconds = 0.1,
                                                .sha256 = "checkpoint " + std::to_string(rounds),
                                                .size_bytes = 9}));
  }
  // Those that were started load and meet.
  void Form(std::uint64_t generation) {
    for (std::uint64_t i = 0; i < 3; ++i) rig_.Step(Said(first_worker_ + i, Ready()));
    for (std::uint64_t i = 0; i < 3; ++i) {
      rig_.Step(
          Said(first_worker_ + i, EndpointMessage{.generation = generation, .endpoint = "e"}));
    }
  }
  // Its workers are gone; others are started. Returns the orders.
  std::vector<StartWorker> StartAgain() {
    std::vector<StartWorker> starts;
    for (std::uint64_t worker = first_worker_; worker < first_worker_ + 3; ++worker) {
      starts = Only<StartWorker>(rig_.Step(WorkerExited{.worker = WorkerId{worker}}));
    }
    first_worker_ += 3;
    return starts;
  }
  const JobRecord& record() const { return rig_.record(); }

  Rig rig_;
  std::uint64_t round_ = 1;
  std::uint64_t first_worker_ = 1;
};

TEST_F(JobRollbackTest, ItGoesBackToBeforeThatAndPassesTheSamplesOver) {
  Train(149, 2.0);
  Checkpoint(140);
  Train(50, 2.0);
  Train(20, 9.0);
  Checkpoint(215);  // of parameters that are spoilt
  const Actions back = Train(20, 9.0);

  EXPECT_THAT(Stopped(back), SizeIs(3));
  EXPECT_EQ(record().state, JobState::kSuspending);
  ASSERT_TRUE(record().rollback);
  EXPECT_THAT(record().rollback->reason,
              AllOf(HasSubstr("the training loss rose from 2.00 to 9.00 at round 200"),
                    HasSubstr("no change of the plan")));
  const std::uint64_t reached = record().attempts.back().rounds;
  EXPECT_EQ(record().progress.rounds, 140u);
  EXPECT_EQ(record().rollback->skip_samples, 96 * (reached - 140));

  const std::vector<StartWorker> starts = StartAgain();
  ASSERT_THAT(starts, SizeIs(3)) << "without a rest";
  EXPECT_THAT(starts, Each(Field(&StartWorker::checkpoint, "checkpoint 140")));
  EXPECT_THAT(starts, Each(Field(&StartWorker::skip_samples, 96 * (reached - 140))));
  EXPECT_EQ(record().fruitless, 0u) << "it failed in nothing";
}

TEST_F(JobRollbackTest, ItDoesSoOnceAndGoesOn) {
  Train(199, 2.0);
  Checkpoint(190);
  Train(60, 9.0);
  ASSERT_THAT(StartAgain(), SizeIs(3));
  Form(2);
  round_ = 190;
  Train(200, 2.0);
  EXPECT_EQ(record().state, JobState::kRunning);

  EXPECT_THAT(Stopped(Train(100, 9.0)), IsEmpty());
  EXPECT_EQ(record().state, JobState::kRunning);
}

TEST_F(JobRollbackTest, WithoutACheckpointOfBeforeItIsSaidAndTrainsOn) {
  Train(199, 2.0);
  Train(20, 9.0);
  Checkpoint(218);

  EXPECT_THAT(Stopped(Train(40, 9.0)), IsEmpty());
  EXPECT_EQ(record().state, JobState::kRunning);
  ASSERT_TRUE(record().rollback);
  EXPECT_EQ(record().rollback->skip_samples, 0u);
  EXPECT_EQ(record().checkpoint->sha256, "checkpoint 218");
}

TEST_F(JobRollbackTest, ALaterLossPassesThemOverAgainUntilThereIsANewCheckpoint) {
  Train(199, 2.0);
  Checkpoint(190);
  Train(60, 9.0);
  const std::uint64_t skip = record().rollback->skip_samples;
  EXPECT_GT(skip, 0u);
  rig_.Restart();
  const std::vector<StartWorker> starts = Only<StartWorker>(rig_.Rejoin("a", 2, {}));

  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_EQ(starts[0].skip_samples, skip);
}

TEST_F(JobRollbackTest, ACheckpointOfWhenItBeganIsNoneOfBefore) {
  Train(199, 2.0);
  Checkpoint(196);
  Train(60, 9.0);

  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_EQ(record().rollback->skip_samples, 0u);
}

TEST_F(JobRollbackTest, WhoGoesOnFromAnOldCheckpointIsWhereTheLossWas) {
  Train(149, 9.0);
  Checkpoint(140);
  Train(200, 2.0);
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    rig_.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = -1, .signal = 9});
  }
  first_worker_ = 4;
  ASSERT_THAT(Only<StartWorker>(rig_.StepAt(rig_.seconds() + 6, Ticked{})), SizeIs(3));
  Form(2);
  round_ = 140;
  Train(100, 9.0);

  EXPECT_EQ(record().state, JobState::kRunning);
  EXPECT_FALSE(record().rollback);
}

TEST_F(JobRollbackTest, WhoEndsIsNotSentBack) {
  Train(199, 2.0);
  Checkpoint(190);
  rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});
  Train(60, 9.0);

  EXPECT_EQ(record().state, JobState::kStopping);
  EXPECT_FALSE(record().rollback);
}

}  // namespace
}  // namespace tactus::job
