// Jobs whose workers are programs of users.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class JobProgramsTest : public testing::Test {
 protected:
  static JobSettings Settings() {
    return {.workers_min = 1, .workers_max = 3, .program = true, .retries = 0};
  }
  explicit JobProgramsTest(JobSettings settings = Settings()) : rig_(Job(1, std::move(settings))) {
    rig_.ToStarting();
  }

  static ReadyMessage ReadyProgram(const ProgramFacts& facts) {
    ReadyMessage ready = Ready();
    ready.program = facts;
    return ready;
  }
  Actions Load(const ProgramFacts& facts) {
    Actions last;
    for (std::uint64_t worker = 1; worker <= 3; ++worker) {
      last = rig_.Step(Said(worker, ReadyProgram(facts)));
    }
    return last;
  }
  void Train() {
    for (std::uint64_t worker = 1; worker <= 3; ++worker) {
      rig_.Step(Said(worker, EndpointMessage{.generation = 1, .endpoint = "e"}));
    }
    rig_.Round();
  }
  const JobRecord& record() const { return rig_.record(); }

  Rig rig_;
};

constexpr std::uint32_t kBatch = 8;
const ProgramFacts kFacts{.batch = kBatch, .optimizer = "adamw", .clip_norm = 1.5, .hash = 7};

TEST_F(JobProgramsTest, WhatTheySayOfThemselvesIsWhatTheyArePlannedBy) {
  const std::vector<GroupMessage> groups = Sent<GroupMessage>(Load(kFacts));

  ASSERT_THAT(groups, SizeIs(3));
  EXPECT_THAT(groups[0].plan.batch_sizes, ElementsAre(kBatch, kBatch, kBatch));
  const policies::PlannerOptions& adapt = record().settings.adapt;
  EXPECT_EQ(adapt.batch.per_worker, kBatch);
  EXPECT_EQ(adapt.base_batch, kBatch);
  EXPECT_EQ(adapt.optimizer, "adamw");
  EXPECT_EQ(adapt.clip_norm, 1.5);
}

TEST_F(JobProgramsTest, AnUpdateLeavesThatToThem) {
  Load(kFacts);
  Train();
  JobSettings settings = Settings();
  settings.adapt.batch_policy = "fixed";
  rig_.Step(JobUpdated{.job = JobId{1}, .settings = settings});

  EXPECT_EQ(record().settings.adapt.batch_policy, "fixed");
  EXPECT_EQ(record().settings.adapt.optimizer, "adamw");
  EXPECT_EQ(record().settings.adapt.batch.per_worker, kBatch);
}

class JobProgramsOfAdacommTest : public JobProgramsTest {
 protected:
  static JobSettings Adacomm() {
    JobSettings settings = Settings();
    settings.adapt.synchronization.policy = "adacomm";
    settings.adapt.synchronization.period = 8;
    return settings;
  }
  JobProgramsOfAdacommTest() : JobProgramsTest(Adacomm()) {}
};

TEST_F(JobProgramsOfAdacommTest, WhatDoesNotGoWithThemFailsTheJob) {
  Load(kFacts);

  EXPECT_EQ(record().state, JobState::kFailed);
  EXPECT_EQ(record().error_field, "adapt.synchronization.policy");
  EXPECT_THAT(record().state_reason, HasSubstr("adamw"));
}

TEST_F(JobProgramsTest, ProgramsThatDifferAreNoGroup) {
  rig_.Step(Said(1, ReadyProgram(kFacts)));
  rig_.Step(Said(2, ReadyProgram(kFacts)));
  ProgramFacts other = kFacts;
  other.hash = 8;
  rig_.Step(Said(3, ReadyProgram(other)));

  EXPECT_EQ(record().state, JobState::kFailed);
  EXPECT_EQ(record().error_field, "program");
  EXPECT_THAT(record().state_reason,
              HasSubstr("worker 3 on node b has other parameters, or another"));
}

TEST_F(JobProgramsTest, NumbersThatAreNoneAreKeptInBounds) {
  Load({.batch = 0, .optimizer = "no such", .momentum = 1e300, .hash = 7});

  EXPECT_EQ(record().state, JobState::kStarting);
  EXPECT_EQ(record().settings.adapt.batch.per_worker, 1u);
  EXPECT_LE(record().settings.adapt.momentum, 1);
}

TEST_F(JobProgramsTest, AJobIsOverWhenItsProgramsAre) {
  Load(kFacts);
  Train();
  rig_.FinishAll();
  rig_.StoreAll();
  EXPECT_EQ(record().state, JobState::kStopping) << "they may evaluate and save";
  rig_.Step(WorkerExited{.worker = WorkerId{1}});
  rig_.Step(WorkerExited{.worker = WorkerId{2}});
  EXPECT_EQ(record().state, JobState::kStopping);

  rig_.Step(WorkerExited{.worker = WorkerId{3}});
  EXPECT_EQ(record().state, JobState::kSucceeded);
  EXPECT_TRUE(record().result);
}

TEST_F(JobProgramsTest, WhatIsLostBehindItsTrainingIsNoLoss) {
  Load(kFacts);
  Train();
  rig_.FinishAll();
  rig_.StoreAll();
  rig_.Step(NodeLost{.node = "a", .reason = "it burns"});
  EXPECT_EQ(record().state, JobState::kStopping);
  rig_.Step(WorkerExited{.worker = WorkerId{3}, .exit_code = 1, .log_tail = "no disk is left"});

  EXPECT_EQ(record().state, JobState::kSucceeded);
  EXPECT_THAT(record().state_reason,
              HasSubstr("; behind its training worker 3 on node b ended with exit code 1"));
}

TEST_F(JobProgramsTest, OthersFilesGiveItNoMoreTime) {
  Load(kFacts);
  Train();
  rig_.FinishAll();
  rig_.StoreAll();
  for (int minute = 1; minute < 10; ++minute) {
    rig_.StepAt(rig_.seconds() + 60, ArtifactComing{.job = JobId{1}, .worker = WorkerId{1}});
  }
  EXPECT_EQ(record().state, JobState::kStopping);

  EXPECT_THAT(Stopped(rig_.StepAt(rig_.seconds() + 61, Ticked{})), SizeIs(3));
  EXPECT_EQ(record().state, JobState::kSucceeded);
}

TEST_F(JobProgramsTest, OneThatGoesOnForEverIsEndedAndTheResultIsThere) {
  Load(kFacts);
  Train();
  rig_.FinishAll();
  rig_.StoreAll();
  rig_.Step(WorkerExited{.worker = WorkerId{1}});
  rig_.Step(WorkerExited{.worker = WorkerId{2}});
  EXPECT_THAT(Stopped(rig_.StepAt(rig_.seconds() + 599, Ticked{})), IsEmpty());

  EXPECT_THAT(Stopped(rig_.StepAt(rig_.seconds() + 2, Ticked{})), ElementsAre(WorkerId{3}));
  EXPECT_EQ(record().state, JobState::kSucceeded);
}

}  // namespace
}  // namespace tactus::job
