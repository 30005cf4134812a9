#include "coordinator/delivery/action_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tactus::delivery {
namespace {

using ::testing::ElementsAre;

// Of the simulator's seed 203: the disk was full, so a job's start waited; its node's agent came
// back as a new process meanwhile, the job failed, and the start would have reached that process.
TEST(ActionQueueDropTest, WhatWaitsForANodeThatStartedAnewIsDropped) {
  std::vector<std::string> performed;
  ActionQueue queue({.write = [](const job::WriteBatch&) {},
                     .perform =
                         [&](const job::Action& action) {
                           const std::string* node = job::NodeOf(action);
                           performed.push_back(node == nullptr ? "other" : *node);
                         }});
  queue.Push({job::PersistJob{}, job::StartWorker{.node = "a"}, job::StartWorker{.node = "b"},
              job::PublishJob{}},
             {});

  queue.Drop("a");
  queue.OnWritten(true);

  EXPECT_THAT(performed, ElementsAre("b", "other"));
}

TEST(ActionQueueHeldTest, NothingIsCarriedOutWhileItIsHeldAndAllOfItAfterwards) {
  bool held = true;
  std::vector<std::string> performed;
  ActionQueue queue({.write = [](const job::WriteBatch&) {},
                     .perform = [&](const job::Action&) { performed.push_back("action"); },
                     .held = [&] { return held; }});
  queue.Push({job::PersistJob{}, job::StopWorker{}},
             [&](bool carried_out) { performed.push_back(carried_out ? "done" : "given up"); });
  queue.OnWritten(true);
  queue.Flush();
  EXPECT_THAT(performed, ElementsAre());

  held = false;
  queue.Flush();

  EXPECT_THAT(performed, ElementsAre("action", "done"));
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
    return [this, name](bool carried_out) {
      performed_.push_back(carried_out ? name : name + " given up");
    };
  }

  std::vector<std::string> performed_;
  std::vector<job::WriteBatch> written_;
  ActionQueue queue_{{.write = [this](job::WriteBatch batch) { written_.push_back(batch); },
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
  queue_.OnWritten(false);
  queue_.Push({Persist(8, 1), StopWorker(2)}, Done("second"));

  queue_.Close();
  queue_.Push({Persist(9, 1), StopWorker(3)}, Done("third"));
  queue_.Flush();
  queue_.OnWritten(true);

  EXPECT_THAT(performed_, ElementsAre("first given up", "second given up", "third given up"));
  ASSERT_EQ(written_.size(), 3u);  // the one that failed, again, and what came meanwhile
  EXPECT_EQ(written_[2].jobs.size(), 2u);
}

TEST_F(ActionQueueTest, WhatStandsBehindAPersistWaitsForIt) {
  queue_.Push({StopWorker(1), Persist(7, 1), StopWorker(2)}, Done("done"));
  queue_.Push({StopWorker(3)}, Done("later"));
  EXPECT_THAT(performed_, ElementsAre("1"));

  queue_.OnWritten(true);

  EXPECT_THAT(performed_, ElementsAre("1", "2", "done", "3", "later"));
}

TEST_F(ActionQueueTest, PersistsThatWaitShareOneWriteAndTheNewestRecordCounts) {
  queue_.Push({Persist(1, 1), StopWorker(1)}, {});
  queue_.Push({Persist(2, 1), StopWorker(2)}, {});
  queue_.Push({Persist(3, 1), Persist(2, 2), StopWorker(3)}, {});

  queue_.OnWritten(true);
  EXPECT_THAT(performed_, ElementsAre("1"));
  ASSERT_EQ(written_.size(), 2u);
  ASSERT_EQ(written_[1].jobs.size(), 2u);
  EXPECT_EQ(written_[1].jobs[0].revision, 2u);
  queue_.OnWritten(true);

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

TEST_F(ActionQueueTest, WhatAPlannerLearnedIsWrittenWithTheRecordOfItsListTheNewestAlone) {
  const auto learned = [](std::uint64_t job, const std::string& memory) {
    return job::PersistMemory{{.job = JobId{job}, .memory = memory}};
  };
  queue_.Push({learned(1, "old"), learned(1, "new"), learned(2, ""), StopWorker(1)}, {});
  EXPECT_THAT(performed_, ElementsAre("1"));
  EXPECT_FALSE(queue_.idle());

  queue_.Push({learned(3, "third"), Persist(3, 1)}, {});

  ASSERT_EQ(written_.size(), 1u);
  ASSERT_EQ(written_[0].memories.size(), 3u);
  EXPECT_EQ(written_[0].memories[0].memory, "new");
  EXPECT_EQ(written_[0].memories[1].memory, "");
  EXPECT_EQ(written_[0].memories[2].memory, "third");
  EXPECT_EQ(written_[0].jobs.size(), 1u);
  queue_.OnWritten(true);
  EXPECT_TRUE(queue_.idle());
}

TEST_F(ActionQueueTest, WhatJobsHandOnHoldsNothingUpAndGoesOutOnFlushTheNewestOfAKeyAlone) {
  const auto found = [](const std::string& key, std::uint64_t number, const std::string& prior) {
    return job::PersistPrior{{.key = key, .number = number, .prior = prior}};
  };
  queue_.Push({found("b", 1, "old"), found("b", 2, "new"), found("a", 0, ""), StopWorker(1)}, {});
  EXPECT_THAT(performed_, ElementsAre("1"));
  EXPECT_FALSE(queue_.idle());

  queue_.Flush();

  ASSERT_EQ(written_.size(), 1u);
  ASSERT_EQ(written_[0].priors.size(), 2u);
  EXPECT_EQ(written_[0].priors[0].prior, "");
  EXPECT_EQ(written_[0].priors[1].number, 2u);
  EXPECT_EQ(written_[0].priors[1].prior, "new");
  queue_.OnWritten(true);
  EXPECT_TRUE(queue_.idle());
}

TEST_F(ActionQueueTest, AFailedWriteIsTriedAgainAndNothingIsSeenBefore) {
  queue_.Push({Persist(1, 1), StopWorker(1)}, Done("done"));
  queue_.OnWritten(false);
  queue_.Push({Persist(1, 2), StopWorker(2)}, {});
  EXPECT_TRUE(performed_.empty());
  EXPECT_EQ(written_.size(), 1u);

  queue_.Flush();
  queue_.OnWritten(true);

  ASSERT_EQ(written_.size(), 3u);
  EXPECT_EQ(written_[1].jobs[0].revision, 1u);
  EXPECT_THAT(performed_, ElementsAre("1", "done"));
  queue_.OnWritten(true);
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

  queue_.OnWritten(true);
  EXPECT_THAT(performed_, ElementsAre("1", "done"));
  ASSERT_EQ(written_.size(), 2u);
  ASSERT_EQ(written_[1].nodes.size(), 1u);
  EXPECT_EQ(written_[1].nodes[0].name, "b");
  EXPECT_TRUE(written_[1].nodes[0].cordoned);
  queue_.OnWritten(true);

  EXPECT_THAT(performed_, ElementsAre("1", "done", "later"));
  EXPECT_TRUE(queue_.idle());
}

TEST_F(ActionQueueTest, ItIsFullWhileTooManyListsWait) {
  queue_.Push({Persist(1, 1)}, {});
  queue_.OnWritten(false);
  for (std::size_t i = 1; i < ActionQueue::kListsMax; ++i) {
    EXPECT_FALSE(queue_.full());
    queue_.Push({StopWorker(1)}, {});
  }
  EXPECT_TRUE(queue_.full());

  queue_.Flush();
  queue_.OnWritten(true);

  EXPECT_FALSE(queue_.full());
}

TEST_F(ActionQueueTest, AListPushedFromWithinAnActionComesAfterItsOwn) {
  queue_.Push({StopWorker(1)}, [this](bool) {
    queue_.Push({StopWorker(2)}, Done("inner"));
    performed_.push_back("outer");
  });

  EXPECT_THAT(performed_, ElementsAre("1", "outer", "2", "inner"));
}

TEST_F(ActionQueueTest, ValidationsHoldNothingUpAndThoseBehindForgottenRoundsGo) {
  const auto validated = [](std::uint64_t job, std::uint64_t rounds) {
    return job::PersistValidation{{.job = JobId{job}, .rounds = rounds}};
  };
  queue_.Push({validated(1, 2), validated(1, 3), validated(2, 3), StopWorker(1)}, {});
  EXPECT_THAT(performed_, ElementsAre("1"));
  EXPECT_FALSE(queue_.idle());
  queue_.Push({job::ForgetRounds{.job = JobId{1}, .from = 2}}, {});

  queue_.Flush();

  ASSERT_EQ(written_.size(), 1u);
  ASSERT_EQ(written_[0].validations.size(), 2u);
  EXPECT_EQ(written_[0].validations[0].rounds, 2u);
  EXPECT_EQ(written_[0].validations[1].job, JobId{2});
  queue_.OnWritten(true);
  EXPECT_TRUE(queue_.idle());
}

}  // namespace
}  // namespace tactus::delivery
