// What a job that may be tried again makes of losses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "coordinator/job/attempts.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kSecondKilled = "worker 2 on node a was ended by signal 9 (SIGKILL)";

// ---- The rest before a retry

TEST(BackOffTest, DoublesFromFiveSecondsToFiveMinutes) {
  EXPECT_EQ(BackOff(1), Seconds(5));
  EXPECT_EQ(BackOff(2), Seconds(10));
  EXPECT_EQ(BackOff(3), Seconds(20));
  EXPECT_EQ(BackOff(7), Seconds(300));
  EXPECT_EQ(BackOff(4'000'000'000u), Seconds(300));
}

// ---- Attempts on record

TEST(AttemptsTest, TheNewestAreKeptAndTheirNumbersGoOn) {
  JobRecord record = Job(1);
  for (std::size_t i = 0; i < kAttemptsMax + 3; ++i) {
    BeginAttempt(record, 1);
    EndAttempt(record, "lost", 2);
  }

  EXPECT_THAT(record.attempts, SizeIs(kAttemptsMax));
  EXPECT_EQ(record.attempts.front().number, 4u);
  EXPECT_EQ(record.attempts.back().number, kAttemptsMax + 3);
}

TEST(AttemptsTest, AJobThatRanBeforeTheyWereOnRecordHasHadOne) {
  JobRecord record = Job(1);
  record.start_time = 5;
  record.progress = {.rounds = 9, .samples = 90};
  record.members = {{.node = "a"}, {.node = "b"}, {.node = "a"}};

  EndAttempt(record, "lost", 7);

  ASSERT_THAT(record.attempts, SizeIs(1));
  EXPECT_EQ(record.attempts[0].start_time, 5);
  EXPECT_EQ(record.attempts[0].first_round, 0u);
  EXPECT_EQ(record.attempts[0].rounds, 9u);
  EXPECT_THAT(record.attempts[0].nodes, ElementsAre("a", "b"));
}

TEST(AttemptsTest, OnlyANewerCheckpointIsProgress) {
  JobRecord record = Job(1);
  record.settings.retries = 1;

  record.progress.rounds = 100;
  EXPECT_TRUE(CountLoss(record));
  record.progress.rounds = 500;  // further than ever, and for nothing
  EXPECT_FALSE(CountLoss(record));

  record.checkpoint = CheckpointRecord{.rounds = 3};
  EXPECT_TRUE(CountLoss(record));
  EXPECT_FALSE(CountLoss(record));
}

// ---- A job that is tried again

class JobRetryTest : public testing::Test {
 protected:
  Actions Kill(std::uint64_t worker) {
    return rig_.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = -1, .signal = 9});
  }
  void ExitRest(std::uint64_t first, std::uint64_t killed) {
    for (std::uint64_t worker = first; worker < first + 3; ++worker) {
      if (worker == killed) continue;
      rig_.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = -1, .signal = 15});
    }
  }
  // The first and the third cannot go on without it.
  Actions SayLost() {
    const FailedMessage lost{.message = "reset by peer", .lost_generation = 1};
    rig_.Step(Said(1, lost));
    return rig_.Step(Said(3, lost));
  }
  // Of the group of workers `first` to first + 2, the second is killed and the others obey.
  void LoseGroup(std::uint64_t first) {
    Kill(first + 1);
    ExitRest(first, first + 1);
  }
  Actions Wait(double seconds) { return rig_.StepAt(rig_.seconds() + seconds, Ticked{}); }
  // The group's checkpoint after `rounds`; all leave.
  void Suspend(std::uint64_t first, std::uint64_t rounds) {
    rig_.Step(JobUpdated{
        .job = JobId{1}, .spec = "spec", .settings = record().settings, .needs_restart = true});
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      FinishedMessage message = Finished(rank);
      message.suspended = true;
      message.rounds = rounds;
      message.files.clear();
      if (rank == 0) message.files = {kCheckpointFile};
      rig_.Step(Said(first + rank, message));
    }
    rig_.Step(ArtifactStored{JobId{1},
                             {.path = kCheckpointFile,
                              .size_bytes = 9,
                              .sha256 = "checkpoint " + std::to_string(rounds)}});
    for (std::uint64_t worker = first; worker < first + 3; ++worker) {
      rig_.Step(WorkerExited{.worker = WorkerId{worker}});
    }
  }
  // The workers `first` to first + 2 load, meet and report `round`.
  Actions Train(std::uint64_t first, std::uint64_t round) {
    Actions all;
    const auto say = [&](std::uint64_t worker, FromWorker message) {
      for (Action& action : rig_.Step(Said(worker, std::move(message)))) {
        all.push_back(std::move(action));
      }
    };
    for (std::uint32_t rank = 0; rank < 3; ++rank) say(first + rank, Ready());
    const std::uint64_t generation = record().generation;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      say(first + rank, EndpointMessage{.generation = generation, .endpoint = "e"});
    }
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      say(first + rank, ReportOf(rank,
                                 {.round = round,
                                  .plan_version = record().newest_plan.version,
                                  .batch_sizes = {32, 32, 32}},
                                 generation));
    }
    return all;
  }
  const JobRecord& record() const { return rig_.record(); }

  Rig rig_;
};

TEST_F(JobRetryTest, AKilledWorkerSendsTheJobBackToTheQueue) {
  rig_.ToRunning();

  Kill(2);
  const Actions lost = SayLost();
  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_EQ(record().state_reason, kSecondKilled);
  EXPECT_THAT(Stopped(lost), ElementsAre(WorkerId{1}, WorkerId{3}));
  ExitRest(1, 2);

  EXPECT_EQ(record().state, JobState::kQueued);
  EXPECT_EQ(
      record().state_reason,
      std::string("goes on from the beginning in 5 seconds (retry 1 of 3): ") + kSecondKilled);
  EXPECT_EQ(record().progress.rounds, 0u);
  EXPECT_EQ(record().progress.samples, 0u);
  EXPECT_EQ(record().suspensions, 0u);
}

TEST_F(JobRetryTest, NothingStartsBeforeTheRestIsOver) {
  rig_.ToRunning();
  Kill(2);
  rig_.Step(WorkerExited{.worker = WorkerId{1}, .exit_code = -1, .signal = 15});
  const Actions last = rig_.Step(WorkerExited{.worker = WorkerId{3}, .signal = 15});
  EXPECT_EQ(record().retry_time, kWallOffset + Seconds(rig_.seconds() + 5).count());

  EXPECT_THAT(Only<StartWorker>(last), IsEmpty());
  EXPECT_THAT(Only<StartWorker>(Wait(4.8)), IsEmpty());
  EXPECT_EQ(rig_.cluster().QueueHead(), std::nullopt) << "it holds nobody up";
  const std::vector<StartWorker> starts = Only<StartWorker>(Wait(0.3));

  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_THAT(starts, Each(Field(&StartWorker::checkpoint, "")));
  EXPECT_EQ(starts[0].worker, WorkerId{4});
  EXPECT_EQ(record().state, JobState::kStarting);
  EXPECT_EQ(record().retry_time, 0);
}

TEST_F(JobRetryTest, TheRestIsWokenForWithoutAnyEvent) {
  rig_.ToRunning();
  LoseGroup(1);

  Actions woken;
  for (int i = 0; i < 5 && Only<StartWorker>(woken).empty(); ++i) woken = Wait(1.5);

  EXPECT_THAT(Only<StartWorker>(woken), SizeIs(3));
}

TEST_F(JobRetryTest, OthersHaveTheDevicesMeanwhile) {
  rig_.ToRunning();
  rig_.Step(JobSubmitted{Job(2, {.workers_min = 3, .workers_max = 3})});
  LoseGroup(1);

  EXPECT_EQ(rig_.cluster().Find(JobId{2})->state, JobState::kStarting);
  Wait(6);
  EXPECT_EQ(rig_.cluster().Find(JobId{1})->state, JobState::kQueued);
}

TEST_F(JobRetryTest, ItGoesOnFromItsCheckpointAndTheHistoryWithIt) {
  rig_.ToRunning();
  Suspend(1, 7);
  Train(4, 7);
  Train(4, 8);  // the first words are out of turn, and do nothing
  const std::uint64_t samples = record().checkpoint->samples;

  LoseGroup(4);
  EXPECT_EQ(record().attempts.back().rounds, 9u);
  EXPECT_EQ(record().progress.rounds, 7u);
  EXPECT_EQ(record().progress.samples, samples);
  EXPECT_EQ(record().progress.elapsed_seconds, record().checkpoint->elapsed_seconds);
  EXPECT_THAT(record().state_reason, HasSubstr("goes on from round 7 in 5 seconds"));
  const std::vector<StartWorker> starts = Only<StartWorker>(Wait(5.1));
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_THAT(starts, Each(Field(&StartWorker::checkpoint, "checkpoint 7")));
  const Actions trained = Train(7, 7);

  ASSERT_THAT(Only<ForgetRounds>(trained), SizeIs(1));
  EXPECT_EQ(Only<ForgetRounds>(trained)[0].from, 7u);
  EXPECT_EQ(rig_.cluster().Find(JobId{1})->progress.rounds, 8u);
}

TEST_F(JobRetryTest, EachAttemptIsOnRecordWithWhatWasDoneInIt) {
  rig_.ToRunning();
  Suspend(1, 7);
  Train(4, 7);
  LoseGroup(4);
  Wait(5.1);
  Train(7, 7);

  const std::vector<AttemptRecord>& attempts = rig_.cluster().Find(JobId{1})->attempts;
  ASSERT_THAT(attempts, SizeIs(2));
  EXPECT_EQ(attempts[0].number, 1u);
  EXPECT_EQ(attempts[0].first_round, 0u);
  EXPECT_EQ(attempts[0].rounds, 8u) << "the suspension lies within it";
  EXPECT_GT(attempts[0].samples, attempts[0].first_samples);
  EXPECT_GT(attempts[0].end_time, attempts[0].start_time);
  EXPECT_THAT(attempts[0].nodes, ElementsAre("a", "b"));
  EXPECT_EQ(attempts[0].workers, 3u);
  EXPECT_EQ(attempts[0].reason, "worker 5 on node a was ended by signal 9 (SIGKILL)");
  EXPECT_EQ(attempts[1].number, 2u);
  EXPECT_EQ(attempts[1].first_round, 7u);
  EXPECT_EQ(attempts[1].end_time, 0);
}

TEST_F(JobRetryTest, FourLossesWithoutANewerCheckpointAreOneTooMany) {
  rig_.ToRunning();
  LoseGroup(1);
  Wait(5.1);
  Train(4, 0);
  LoseGroup(4);
  EXPECT_THAT(record().state_reason, HasSubstr("in 10 seconds (retry 2 of 3)"));
  Wait(10.1);
  LoseGroup(7);
  EXPECT_THAT(record().state_reason, HasSubstr("in 20 seconds (retry 3 of 3)"));
  Wait(20.1);
  LoseGroup(10);

  EXPECT_EQ(record().state, JobState::kFailed);
  EXPECT_EQ(record().state_reason,
            "worker 11 on node a was ended by signal 9 (SIGKILL); given up after 4 attempts from "
            "the beginning");
  EXPECT_THAT(record().attempts, SizeIs(4));
  EXPECT_EQ(record().attempts.back().reason, record().state_reason);
}

TEST_F(JobRetryTest, ANewerCheckpointBeginsTheCountAnew) {
  rig_.ToRunning();
  LoseGroup(1);
  Wait(5.1);
  Train(4, 0);
  Suspend(4, 7);
  Train(7, 7);
  LoseGroup(7);

  EXPECT_THAT(record().state_reason, HasSubstr("in 5 seconds (retry 1 of 3)"));
}

TEST_F(JobRetryTest, TheJobsOwnWordsFailItAtOnce) {
  rig_.ToRunning();

  rig_.Step(Said(2, FailedMessage{.message = "training diverged: the loss is nan"}));

  EXPECT_EQ(record().state, JobState::kFailed);
  EXPECT_EQ(record().state_reason, "worker 2 on node a: training diverged: the loss is nan");
}

TEST_F(JobRetryTest, WhatAWorkerSaysOfItsDeviceIsALoss) {
  rig_.ToRunning();

  rig_.Step(
      Said(2, FailedMessage{.message = "cuda:0: uncorrectable ECC error", .transient = true}));
  SayLost();

  EXPECT_EQ(record().state, JobState::kSuspending);
  EXPECT_EQ(record().state_reason, "worker 2 on node a: cuda:0: uncorrectable ECC error");
  EXPECT_TRUE(record().suspension->lost);
}

TEST_F(JobRetryTest, AWorkerLostInTheEvaluationCostsTheAttempt) {
  rig_.ToRunning();
  rig_.Step(Said(2, Finished(1)));
  ASSERT_EQ(record().state, JobState::kStopping);

  Kill(1);
  ExitRest(1, 1);
  EXPECT_EQ(record().state, JobState::kQueued);
  EXPECT_THAT(record().ending.finished, IsEmpty());
  EXPECT_THAT(Only<StartWorker>(Wait(5.1)), SizeIs(3));
}

TEST_F(JobRetryTest, AWorkerLostWhileLoadingCostsTheAttempt) {
  rig_.ToStarting();
  LoseGroup(1);

  EXPECT_EQ(record().state, JobState::kQueued);
  ASSERT_THAT(record().attempts, SizeIs(1));
  EXPECT_EQ(record().attempts[0].rounds, 0u);
}

TEST_F(JobRetryTest, WhatComesOfALostGroupDoesNothing) {
  rig_.ToRunning();
  Kill(2);
  SayLost();
  const std::uint64_t revision = record().revision;

  rig_.Round();
  rig_.Step(Said(1, EvaluatedMessage{.loss = 1, .samples = 10}));
  rig_.Step(Said(1, Finished(0)));
  rig_.Step(Said(3, FailedMessage{.field = "data", .message = "bad"}));
  rig_.StoreAll();
  rig_.StepAt(rig_.seconds() + 1000, Ticked{});

  EXPECT_EQ(record().revision, revision);
  EXPECT_EQ(record().state, JobState::kSuspending);
}

TEST_F(JobRetryTest, WordsThatComeAfterTheExitAreActedUponAtOnce) {
  Rig rig(Job(1, {.workers_min = 1, .workers_max = 1}));
  rig.Step(Join("a", 1));
  rig.Step(JobSubmitted{Job(1, {.workers_min = 1, .workers_max = 1})});
  rig.Restart();  // of one that was starting: queued again
  rig.Rejoin("a", 1, {});
  rig.Step(Said(2, Ready()));
  rig.Step(Said(2, EndpointMessage{.generation = 1, .endpoint = "e"}));
  rig.Step(Said(2, ReportOf(0, {.batch_sizes = {32}})));
  rig.Restart();
  rig.Rejoin("a", 1, {});  // its agent restarted, too, and holds the worker's last word

  rig.Step(Said(2, FailedMessage{.message = "gone", .transient = true}));

  EXPECT_EQ(rig.record().state, JobState::kQueued);
  EXPECT_THAT(Only<StartWorker>(rig.StepAt(rig.seconds() + 5, Ticked{})), SizeIs(1));
}

// ---- A restart of the coordinator, and users

TEST_F(JobRetryTest, ARestartRemembersTheAttemptsAndRestsAnew) {
  rig_.ToRunning();
  LoseGroup(1);
  Wait(3);

  rig_.Restart();
  rig_.Rejoin("a", 2, {});
  rig_.Rejoin("b", 1, {});
  EXPECT_EQ(record().fruitless, 1u);
  EXPECT_THAT(record().attempts, SizeIs(1));
  EXPECT_THAT(Only<StartWorker>(Wait(4)), IsEmpty());

  EXPECT_THAT(Only<StartWorker>(Wait(1.1)), SizeIs(3));
}

TEST_F(JobRetryTest, ARestartWhileALostGroupLeavesQueuesTheJob) {
  rig_.ToRunning();
  Kill(2);
  SayLost();

  rig_.Restart();

  EXPECT_EQ(record().state, JobState::kQueued);
  EXPECT_THAT(record().state_reason, HasSubstr("(retry 1 of 3)"));
  EXPECT_THAT(Stopped(rig_.Rejoin("b", 1, {WorkerId{3}})), ElementsAre(WorkerId{3}));
}

TEST_F(JobRetryTest, AResumedJobDoesNotRest) {
  rig_.ToRunning();
  LoseGroup(1);
  rig_.Step(JobPaused{JobId{1}});
  EXPECT_EQ(record().retry_time, 0);

  EXPECT_THAT(Only<StartWorker>(rig_.Step(JobResumed{JobId{1}})), SizeIs(3));
}

TEST_F(JobRetryTest, ACancelEndsTheRest) {
  rig_.ToRunning();
  Suspend(1, 7);
  Train(4, 7);
  LoseGroup(4);

  rig_.Step(JobCancelled{.job = JobId{1}, .reason = "enough"});

  EXPECT_EQ(record().state, JobState::kCancelled);
  ASSERT_TRUE(record().result.has_value());
  EXPECT_EQ(record().result->rounds, 7u) << "what the checkpoint has";
  EXPECT_EQ(record().result->samples, record().checkpoint->samples);
}

}  // namespace
}  // namespace tactus::job
