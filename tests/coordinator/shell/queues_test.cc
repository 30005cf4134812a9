#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/shell/action_queue.h"
#include "coordinator/shell/outbox.h"

namespace tactus::service {
namespace {

using ::testing::ElementsAre;

agent::v1::ToAgent Stop(std::uint64_t worker) {
  agent::v1::ToAgent message;
  message.mutable_stop_worker()->set_worker_id(worker);
  return message;
}

std::vector<std::uint64_t> SendAll(Outbox& outbox) {
  std::vector<std::uint64_t> sequences;
  while (const agent::v1::ToAgent* message = outbox.Next())
    sequences.push_back(message->sequence());
  return sequences;
}

TEST(OutboxTest, MessagesAreNumberedFromOneAndSentOnce) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Append(Stop(1)));
  ASSERT_TRUE(outbox.Append(Stop(2)));

  EXPECT_THAT(SendAll(outbox), ElementsAre(1, 2));
  EXPECT_THAT(SendAll(outbox), ElementsAre());
}

TEST(OutboxTest, ANewStreamGetsAgainWhatWasNotAcknowledged) {
  Outbox outbox;
  for (std::uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(outbox.Append(Stop(i)));
  SendAll(outbox);
  outbox.Acknowledge(1);

  outbox.Rewind(2);
  ASSERT_TRUE(outbox.Append(Stop(5)));

  EXPECT_THAT(SendAll(outbox), ElementsAre(3, 4, 5));
}

TEST(OutboxTest, ARestartGoesOnBehindWhatTheAgentRemembers) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Append(Stop(1)));

  outbox.Restart(17);
  ASSERT_TRUE(outbox.Append(Stop(2)));

  EXPECT_THAT(SendAll(outbox), ElementsAre(18));
}

TEST(OutboxTest, AFullBoxRefuses) {
  Outbox outbox;
  for (std::size_t i = 0; i < Outbox::kMessagesMax; ++i) ASSERT_TRUE(outbox.Append(Stop(i)));

  EXPECT_FALSE(outbox.Append(Stop(0)));
  EXPECT_EQ(outbox.size(), Outbox::kMessagesMax);
}

// Of the simulator's seed 203: the disk was full, so a job's start waited; its node's agent came
// back as a new process meanwhile, the job failed, and the start would have reached that process.
TEST(ActionQueueDropTest, WhatWaitsForANodeThatStartedAnewIsDropped) {
  std::vector<std::string> performed;
  ActionQueue queue({.write = [](const store::WriteBatch&) {},
                     .perform =
                         [&](const job::Action& action) {
                           const std::string* node = job::NodeOf(action);
                           performed.push_back(node == nullptr ? "other" : *node);
                         }});
  queue.Push({job::PersistJob{}, job::StartWorker{.node = "a"}, job::StartWorker{.node = "b"},
              job::PublishJob{}},
             {});

  queue.Drop("a");
  queue.OnWritten(absl::OkStatus());

  EXPECT_THAT(performed, ElementsAre("b", "other"));
}

// Records what the queue asks for; writes end when the test says so.
class ActionQueueTest : public testing::Test {
 protected:
  static job::PersistJob Persist(std::uint64_t id, std::uint64_t revision) {
    job::PersistJob persist;
    persist.record.id = JobId{id};
    persist.record.revision = revision;
    return persist;
  }
  static job::StopWorker StopWorker(std::uint64_t worker) {
    return {.node = "n", .worker = WorkerId{worker}, .grace = Seconds(1)};
  }
  static job::PersistRound Round(std::uint64_t round) {
    job::PersistRound persist;
    persist.round.job = JobId{1};
    persist.round.round = round;
    return persist;
  }
  ActionQueue::Done Done(const std::string& name) {
    return [this, name](const absl::Status& status) {
      performed_.push_back(status.ok() ? name : name + ": " + std::string(status.message()));
    };
  }

  std::vector<std::string> performed_;
  std::vector<store::WriteBatch> written_;
  ActionQueue queue_{{.write = [this](store::WriteBatch batch) { written_.push_back(batch); },
                      .perform =
                          [this](const job::Action& action) {
                            performed_.push_back(
                                std::to_string(std::get<job::StopWorker>(action).worker.value));
                          }}};
};

TEST_F(ActionQueueTest, ActionsWithoutAPersistAreCarriedOutAtOnce) {
  queue_.Push({StopWorker(1), StopWorker(2)}, Done("done"));

  EXPECT_THAT(performed_, ElementsAre("1", "2", "done"));
  EXPECT_TRUE(written_.empty());
}

TEST_F(ActionQueueTest, WhatWaitsWhenItIsClosedIsGivenUpAndStillWritten) {
  queue_.Push({Persist(7, 1), StopWorker(1)}, Done("first"));
  queue_.OnWritten(absl::ResourceExhaustedError("full"));
  queue_.Push({Persist(8, 1), StopWorker(2)}, Done("second"));

  queue_.Close(absl::UnavailableError("stopping"));
  queue_.Push({Persist(9, 1), StopWorker(3)}, Done("third"));
  queue_.Flush();
  queue_.OnWritten(absl::OkStatus());

  EXPECT_THAT(performed_, ElementsAre("first: stopping", "second: stopping", "third: stopping"));
  ASSERT_EQ(written_.size(), 3u);  // the one that failed, again, and what came meanwhile
  EXPECT_EQ(written_[2].jobs.size(), 2u);
}

TEST_F(ActionQueueTest, WhatStandsBehindAPersistWaitsForIt) {
  queue_.Push({StopWorker(1), Persist(7, 1), StopWorker(2)}, Done("done"));
  queue_.Push({StopWorker(3)}, Done("later"));
  EXPECT_THAT(performed_, ElementsAre("1"));

  queue_.OnWritten(absl::OkStatus());

  EXPECT_THAT(performed_, ElementsAre("1", "2", "done", "3", "later"));
}

TEST_F(ActionQueueTest, PersistsThatWaitShareOneWriteAndTheNewestRecordCounts) {
  queue_.Push({Persist(1, 1), StopWorker(1)}, {});
  queue_.Push({Persist(2, 1), StopWorker(2)}, {});
  queue_.Push({Persist(3, 1), Persist(2, 2), StopWorker(3)}, {});

  queue_.OnWritten(absl::OkStatus());
  EXPECT_THAT(performed_, ElementsAre("1"));
  ASSERT_EQ(written_.size(), 2u);
  ASSERT_EQ(written_[1].jobs.size(), 2u);
  EXPECT_EQ(written_[1].jobs[0].revision, 2u);
  queue_.OnWritten(absl::OkStatus());

  EXPECT_THAT(performed_, ElementsAre("1", "2", "3"));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(ActionQueueTest, RoundsHoldNothingUpAndGoOutOnFlush) {
  queue_.Push({Round(1), StopWorker(1)}, Done("done"));
  EXPECT_THAT(performed_, ElementsAre("1", "done"));
  EXPECT_TRUE(written_.empty());

  queue_.Flush();

  ASSERT_EQ(written_.size(), 1u);
  EXPECT_EQ(written_[0].rounds.size(), 1u);
}

TEST_F(ActionQueueTest, RoundsThatAreForgottenAreNotWrittenAndThoseAfterwardsAre) {
  queue_.Push({Round(1), Round(2), job::ForgetRounds{.job = JobId{1}, .from = 2}, Round(2)}, {});
  EXPECT_FALSE(queue_.idle());

  queue_.Flush();

  ASSERT_EQ(written_.size(), 1u);
  ASSERT_EQ(written_[0].forgotten.size(), 1u);
  EXPECT_EQ(written_[0].forgotten[0].from, 2u);
  EXPECT_EQ(written_[0].rounds.size(), 2u);
}

TEST_F(ActionQueueTest, DecisionsHoldNothingUpAndGoOutOnFlushInOrder) {
  queue_.Push(
      {job::PersistDecision{.job = JobId{1}, .decision = {.plan_version = 2}},
       job::PersistDecision{.job = JobId{1}, .decision = {.plan_version = 3}}, StopWorker(1)},
      Done("done"));
  EXPECT_THAT(performed_, ElementsAre("1", "done"));
  EXPECT_FALSE(queue_.idle());

  queue_.Flush();

  ASSERT_EQ(written_.size(), 1u);
  ASSERT_EQ(written_[0].decisions.size(), 2u);
  EXPECT_EQ(written_[0].decisions[0].job, JobId{1});
  EXPECT_EQ(written_[0].decisions[1].decision.plan_version, 3u);
}

TEST_F(ActionQueueTest, AFailedWriteIsTriedAgainAndNothingIsSeenBefore) {
  queue_.Push({Persist(1, 1), StopWorker(1)}, Done("done"));
  queue_.OnWritten(absl::ResourceExhaustedError("disk full"));
  queue_.Push({Persist(1, 2), StopWorker(2)}, {});
  EXPECT_TRUE(performed_.empty());
  EXPECT_EQ(written_.size(), 1u);

  queue_.Flush();
  queue_.OnWritten(absl::OkStatus());

  ASSERT_EQ(written_.size(), 3u);
  EXPECT_EQ(written_[1].jobs[0].revision, 1u);
  EXPECT_THAT(performed_, ElementsAre("1", "done"));
  queue_.OnWritten(absl::OkStatus());
  EXPECT_THAT(performed_, ElementsAre("1", "done", "2"));
}

TEST_F(ActionQueueTest, WhatUsersSaidOfANodeIsDurableBeforeWhatStandsBehindIt) {
  queue_.Push({job::PersistNode{{.name = "a", .cordoned = true}}, StopWorker(1)}, Done("done"));
  queue_.Push({job::PersistNode{{.name = "b"}}, job::PersistNode{{.name = "b", .cordoned = true}}},
              Done("later"));
  EXPECT_TRUE(performed_.empty());
  ASSERT_EQ(written_.size(), 1u);
  ASSERT_EQ(written_[0].nodes.size(), 1u);
  EXPECT_TRUE(written_[0].nodes[0].cordoned);

  queue_.OnWritten(absl::OkStatus());
  EXPECT_THAT(performed_, ElementsAre("1", "done"));
  ASSERT_EQ(written_.size(), 2u);
  ASSERT_EQ(written_[1].nodes.size(), 1u);
  EXPECT_EQ(written_[1].nodes[0].name, "b");
  EXPECT_TRUE(written_[1].nodes[0].cordoned);
  queue_.OnWritten(absl::OkStatus());

  EXPECT_THAT(performed_, ElementsAre("1", "done", "later"));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(ActionQueueTest, ItIsFullWhileTooManyListsWait) {
  queue_.Push({Persist(1, 1)}, {});
  queue_.OnWritten(absl::ResourceExhaustedError("disk full"));
  for (std::size_t i = 1; i < ActionQueue::kListsMax; ++i) {
    EXPECT_FALSE(queue_.full());
    queue_.Push({StopWorker(1)}, {});
  }
  EXPECT_TRUE(queue_.full());

  queue_.Flush();
  queue_.OnWritten(absl::OkStatus());

  EXPECT_FALSE(queue_.full());
}

TEST_F(ActionQueueTest, AListPushedFromWithinAnActionComesAfterItsOwn) {
  queue_.Push({StopWorker(1)}, [this](const absl::Status&) {
    queue_.Push({StopWorker(2)}, Done("inner"));
    performed_.push_back("outer");
  });

  EXPECT_THAT(performed_, ElementsAre("1", "outer", "2", "inner"));
}

}  // namespace
}  // namespace tactus::service
