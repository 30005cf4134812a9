// What a job hands on to the next of its kind, and what that one makes of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/job/priors.h"
#include "policies/prior.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr policies::Prior kPrior{.period = 2, .transfer_seconds = 0.01};

JobSettings Settings(const std::string& kind) {
  return {.workers_min = 1,
          .workers_max = 3,
          .adapt = {.batch_policy = "fixed", .synchronization = {.policy = "auto"}},
          .kind = kind};
}

// Of the rig's three devices.
std::string Key(const std::string& kind) { return PriorKey(kind, std::vector<MemberRecord>(3)); }

PriorRecord RecordOf(const std::string& bytes) {
  return {.key = Key("kind"), .number = 7, .prior = bytes};
}

// A rig on which the job has formed its group and knows what former jobs found.
class JobPriorsTest : public testing::Test {
 protected:
  void Form(const std::string& kind, const std::string& bytes) {
    rig_.emplace(Job(1, Settings(kind)));
    formed_.clear();
    version_ = 1;
    if (!bytes.empty()) rig_->cluster().RestorePrior(RecordOf(bytes));
    rig_->ToStarting();
    ReadyMessage ready = Ready();
    ready.samples_per_second = 1000;
    for (std::uint64_t worker = 1; worker <= 3; ++worker) {
      for (Action& action : rig_->Step(Said(worker, ready))) formed_.push_back(std::move(action));
    }
    for (std::uint64_t worker = 1; worker <= 3; ++worker) {
      rig_->Step(Said(worker, EndpointMessage{.generation = 1, .endpoint = "e"}));
    }
  }

  std::string First() const {
    const policies::Plan plan = Sent<GroupMessage>(formed_).at(0).plan;
    return plan.synchronization == policies::Synchronization::kPeriodic
               ? "periodic " + std::to_string(plan.period)
               : "every_step";
  }

  // Rounds under the newest plan.
  Actions Rounds(int count) {
    Actions all;
    for (int i = 0; i < count; ++i) {
      for (Action& action : rig_->Round(version_)) all.push_back(std::move(action));
      for (const policies::Plan& plan : PlansSent(all)) version_ = plan.version;
    }
    return all;
  }

  Actions End() {
    Actions all;
    rig_->FinishAll();
    for (const char* path : {"model.pt", "model.safetensors"}) {
      for (Action& action : rig_->Step(
               ArtifactStored{.job = JobId{1}, .artifact = {.path = path, .size_bytes = 1}})) {
        all.push_back(std::move(action));
      }
    }
    return all;
  }

  std::optional<Rig> rig_;
  Actions formed_;
  std::uint64_t version_ = 1;
};

TEST_F(JobPriorsTest, AJobBeginsWithWhatAFormerOneOfItsKindFound) {
  Form("kind", BytesOf(kPrior));

  EXPECT_EQ(First(), "periodic 2");
  EXPECT_THAT(Only<PublishRelearning>(formed_), IsEmpty());
}

TEST_F(JobPriorsTest, OneOfAnotherKindDoesNot) {
  Form("other", BytesOf(kPrior));
  EXPECT_EQ(First(), "every_step");
}

TEST_F(JobPriorsTest, OneThatRefusesItDoesNotAndHandsNothingOn) {
  Form("", BytesOf(kPrior));
  EXPECT_EQ(First(), "every_step");

  Rounds(250);
  End();

  EXPECT_EQ(rig_->record().state, JobState::kSucceeded);
  EXPECT_THAT(rig_->priors(), IsEmpty());
}

TEST_F(JobPriorsTest, WhatCannotBeReadIsToldOfAndLeftOut) {
  std::string damaged = BytesOf(kPrior);
  damaged[1] ^= 1;
  Form("kind", damaged);

  EXPECT_EQ(First(), "every_step");
  const auto told = Only<PublishRelearning>(formed_);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].reason, "what a former job of this kind found is left out: it is damaged");
}

TEST_F(JobPriorsTest, ItsEndHandsOnWhatItFound) {
  Form("kind", BytesOf(kPrior));
  Rounds(4);
  ASSERT_THAT(rig_->priors(), IsEmpty());

  End();

  ASSERT_EQ(rig_->record().state, JobState::kSucceeded);
  ASSERT_THAT(rig_->priors(), SizeIs(1));
  const PriorRecord& record = rig_->priors().at(Key("kind"));
  EXPECT_EQ(record.number, 8u);
  const policies::ReadPrior read = policies::PriorOf(record.prior);
  ASSERT_TRUE(read.prior.has_value());
  EXPECT_EQ(read.prior->period, 2u);
  EXPECT_NEAR(read.prior->transfer_seconds, 0.01, 1e-9);
}

TEST_F(JobPriorsTest, WhoHasJudgedNothingHandsNothingOn) {
  Form("kind", "");
  Rounds(4);

  End();

  ASSERT_EQ(rig_->record().state, JobState::kSucceeded);
  EXPECT_THAT(rig_->priors(), IsEmpty());
}

TEST_F(JobPriorsTest, WhileItTrainsItIsWrittenEveryMinute) {
  Form("kind", BytesOf(kPrior));
  const double start = rig_->seconds();
  std::size_t written = 0;

  while (rig_->seconds() < start + 200) written += Only<PersistPrior>(Rounds(1)).size();

  EXPECT_GE(written, 2u);
  EXPECT_LE(written, 3u);
}

TEST_F(JobPriorsTest, OneThatFailsHandsNothingOn) {
  Form("kind", BytesOf(kPrior));
  Rounds(4);

  rig_->Step(Said(1, FailedMessage{.message = "the loss diverged"}));
  for (int i = 0; i < 60; ++i) rig_->Step(Ticked{});

  ASSERT_EQ(rig_->record().state, JobState::kFailed);
  EXPECT_THAT(rig_->priors(), IsEmpty());
}

// What ran out on one device is a bound on all of its model, for this job and the next.
TEST_F(JobPriorsTest, APassThatRanOutOfMemoryIsRememberedOfItsDevice) {
  const std::string key = PassBoundKey("kind", MemberRecord{});
  Form("kind", "");
  const auto report = [this](std::uint64_t round, std::uint32_t samples) {
    ReportMessage message = ReportOf(0, {.round = round, .batch_sizes = {32, 32, 32}});
    message.out_of_memory = 1;
    message.pass_samples_max = samples;
    rig_->Step(Said(1, message));
  };

  report(0, 16);
  EXPECT_EQ(PassBoundOf(rig_->priors().at(key).prior), 16u);
  report(1, 4);
  EXPECT_EQ(PassBoundOf(rig_->priors().at(key).prior), 4u);
  report(2, 8);
  EXPECT_EQ(PassBoundOf(rig_->priors().at(key).prior), 4u);
}

TEST_F(JobPriorsTest, WorkersBeginWithThePassesThatFitTheirDevice) {
  for (const std::string kind : {"kind", "other", ""}) {
    rig_.emplace(Job(1, Settings(kind)));
    rig_->cluster().RestorePrior(
        {.key = PassBoundKey("kind", MemberRecord{}), .number = 1, .prior = BytesOfPassBound(4)});

    rig_->Step(Join("a", 2));
    rig_->Step(Join("b", 1));
    const auto starts = Only<StartWorker>(rig_->Step(JobSubmitted{Job(1, Settings(kind))}));

    ASSERT_THAT(starts, SizeIs(3));
    for (const StartWorker& start : starts) {
      EXPECT_EQ(start.pass_samples_max, kind == "kind" ? 4u : 0u) << kind;
    }
  }
  EXPECT_NE(PassBoundKey("kind", MemberRecord{}), PassBoundKey("kind", {.model = "another"}));
}

TEST(PassBoundTest, BytesThatSayNothingAreNoBound) {
  for (const char* bytes : {"", "x", "4x", "-4", "99999999999"}) EXPECT_EQ(PassBoundOf(bytes), 0u);
}

TEST_F(JobPriorsTest, OneThatIsCancelledWithoutAResultHandsNothingOn) {
  Form("kind", BytesOf(kPrior));
  Rounds(4);

  rig_->Step(JobCancelled{.job = JobId{1}, .discard = true});
  rig_->FinishAll();

  ASSERT_EQ(rig_->record().state, JobState::kCancelled);
  EXPECT_THAT(rig_->priors(), IsEmpty());
}

TEST_F(JobPriorsTest, ARestartKeepsThemForTheNextJob) {
  Form("kind", BytesOf(kPrior));
  Rounds(4);
  End();
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    rig_->Step(WorkerExited{.worker = WorkerId{worker}});
  }
  const std::map<std::string, PriorRecord> kept = rig_->priors();

  Form("kind", kept.at(Key("kind")).prior);

  EXPECT_EQ(First(), "periodic 2");
}

TEST_F(JobPriorsTest, AnotherGroupOfTheJobBeginsAsEver) {
  Form("kind", BytesOf(kPrior));
  for (std::uint64_t worker = 1; worker <= 3; ++worker) {
    rig_->Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = 1});
  }
  const auto started = Only<StartWorker>(rig_->StepAt(rig_->seconds() + 60, Ticked{}));
  ASSERT_THAT(started, SizeIs(3));
  ReadyMessage ready = Ready();
  ready.samples_per_second = 1000;
  formed_.clear();

  for (const StartWorker& start : started) {
    for (Action& action : rig_->Step(Said(start.worker.value, ready))) {
      formed_.push_back(std::move(action));
    }
  }

  EXPECT_EQ(First(), "every_step");
}

MemberRecord On(const std::string& model, double emulated_speed = 0) {
  return {.emulated_speed = emulated_speed, .model = model};
}

TEST(PriorKeyTest, ItIsOfTheDevicesInAnyOrder) {
  const std::string key = PriorKey("kind", {On("a"), On("b"), On("b")});

  EXPECT_EQ(PriorKey("kind", {On("b"), On("a"), On("b")}), key);
  EXPECT_NE(PriorKey("kind", {On("b"), On("a"), On("a")}), key);
  EXPECT_NE(PriorKey("kind", {On("b"), On("a")}), key);
  EXPECT_NE(PriorKey("kind", {On("b"), On("a"), On("b", 0.5)}), key);
  EXPECT_NE(PriorKey("another", {On("b"), On("a"), On("b")}), key);
}

TEST(PriorsTest, TheNewestOfAKeyCountsAndIsWritten) {
  Priors priors;
  Actions actions;
  priors.Restore({.key = "a", .number = 5, .prior = "old"});

  priors.Put("a", "new", actions);

  EXPECT_EQ(priors.Find("a"), "new");
  EXPECT_EQ(priors.Find("b"), "");
  const auto written = Only<PersistPrior>(actions);
  ASSERT_THAT(written, SizeIs(1));
  EXPECT_EQ(written[0].prior.key, "a");
  EXPECT_EQ(written[0].prior.number, 6u);
  EXPECT_EQ(written[0].prior.prior, "new");
}

TEST(PriorsTest, BeyondTheBoundTheOldestIsForgotten) {
  Priors priors;
  Actions actions;
  for (std::size_t i = 0; i < Priors::kPriorsMax; ++i) {
    priors.Put(std::to_string(i), "p", actions);
  }
  priors.Put("0", "again", actions);
  actions.clear();

  priors.Put("more", "p", actions);

  EXPECT_EQ(priors.Find("0"), "again");
  EXPECT_EQ(priors.Find("1"), "");
  EXPECT_EQ(priors.Find("2"), "p");
  const auto written = Only<PersistPrior>(actions);
  ASSERT_THAT(written, SizeIs(2));
  EXPECT_EQ(written[1].prior.key, "1");
  EXPECT_EQ(written[1].prior.prior, "");
}

}  // namespace
}  // namespace tactus::job
