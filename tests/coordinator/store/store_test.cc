#include "coordinator/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>

#include "tests/coordinator/store/any_store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/support/temporary_folder.h"

namespace tactus::store {
namespace {

using testing::HasSubstr;

void Put(Store& store, const job::JobRecord& record) {
  const absl::Status status = store.Write({.jobs = {record}, .rounds = {}});
  ASSERT_TRUE(status.ok()) << status;
}

TEST(StoreTest, EveryFieldOfAJobComesBack) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  Put(*store, FullJob());

  const absl::StatusOr<job::JobRecord> found = store->FindJob("shakespeare-3");

  ASSERT_TRUE(found.ok()) << found.status();
  ExpectEqual(*found, FullJob());
}

TEST(StoreTest, AcknowledgedWritesAreThereAfterReopening) {
  const TemporaryFolder folder;
  {
    const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
    Put(*store, FullJob());
    ASSERT_TRUE(store->Write({.jobs = {SmallJob(4)}, .rounds = {Round(4, 0), Round(4, 1)}}).ok());
  }

  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));

  const absl::StatusOr<job::JobRecord> found = store->FindJob("shakespeare-3");
  ASSERT_TRUE(found.ok()) << found.status();
  ExpectEqual(*found, FullJob());
  const auto rounds = store->ListRounds(JobId{4}, 10, "");
  ASSERT_TRUE(rounds.ok()) << rounds.status();
  ASSERT_EQ(rounds->items.size(), 2u);
  ExpectEqual(rounds->items[1], Round(4, 1));
  EXPECT_EQ(*store->LastJobId(), 4u);
}

TEST(StoreTest, RoundsAreForgottenBeforeNewOnesAreWritten) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  ASSERT_TRUE(store
                  ->Write({.jobs = {SmallJob(1), SmallJob(2)},
                           .rounds = {Round(1, 0), Round(1, 1), Round(1, 2), Round(2, 2)}})
                  .ok());

  ASSERT_TRUE(
      store->Write({.forgotten = {{.job = JobId{1}, .from = 1}}, .rounds = {Round(1, 1)}}).ok());

  const auto rounds = store->ListRounds(JobId{1}, 10, "");
  ASSERT_EQ(rounds->items.size(), 2u);
  EXPECT_EQ(rounds->items[1].round, 1u);
  EXPECT_EQ(store->ListRounds(JobId{2}, 10, "")->items.size(), 1u);
}

TEST(StoreTest, ASecondWriteReplacesJobAndRound) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  ASSERT_TRUE(store->Write({.jobs = {SmallJob(1)}, .rounds = {Round(1, 0)}}).ok());
  job::JobRecord changed = SmallJob(1);
  changed.state = job::JobState::kRunning;
  changed.revision = 2;
  job::RoundRecord round = Round(1, 0);
  round.samples = 99;

  ASSERT_TRUE(store->Write({.jobs = {changed}, .rounds = {round}}).ok());

  ExpectEqual(*store->FindJob("job-1"), changed);
  const auto rounds = store->ListRounds(JobId{1}, 10, "");
  ASSERT_EQ(rounds->items.size(), 1u);
  ExpectEqual(rounds->items[0], round);
}

TEST(StoreTest, AnUnknownJobIsNotFound) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");

  EXPECT_EQ(store->FindJob("nobody").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store->FindJobByRequest("nobody").status().code(), absl::StatusCode::kNotFound);
}

TEST(StoreTest, AJobIsFoundByItsRequest) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::JobRecord first = SmallJob(1);
  first.request_id = "r1";
  Put(*store, first);
  Put(*store, SmallJob(2));
  Put(*store, SmallJob(3));  // two jobs without a request do not collide

  ExpectEqual(*store->FindJobByRequest("r1"), first);
  EXPECT_EQ(store->FindJobByRequest("").status().code(), absl::StatusCode::kNotFound);
}

TEST(StoreTest, ATakenNameOrRequestIsRefusedAndNothingOfTheBatchIsWritten) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::JobRecord first = SmallJob(1);
  first.request_id = "r1";
  Put(*store, first);
  job::JobRecord same_name = SmallJob(2);
  same_name.name = "job-1";
  job::JobRecord same_request = SmallJob(2);
  same_request.request_id = "r1";

  for (const job::JobRecord& second : {same_name, same_request}) {
    const absl::Status status =
        store->Write({.jobs = {SmallJob(7), second}, .rounds = {Round(7, 1)}});

    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
    EXPECT_EQ(store->FindJob("job-7").status().code(), absl::StatusCode::kNotFound);
    ExpectEqual(*store->FindJob("job-1"), first);
  }
  Put(*store, SmallJob(2));  // and the store goes on
}

TEST(StoreTest, JobsAreListedNewestFirstPageByPage) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  for (std::uint64_t id = 1; id <= 7; ++id) Put(*store, SmallJob(id));

  std::vector<std::uint64_t> ids;
  std::vector<std::size_t> sizes;
  std::string token;
  do {
    const absl::StatusOr<Page<job::JobRecord>> page =
        store->ListJobs({.page_size = 3, .page_token = token});
    ASSERT_TRUE(page.ok()) << page.status();
    for (const job::JobRecord& record : page->items) ids.push_back(record.id.value);
    sizes.push_back(page->items.size());
    token = page->next;
  } while (!token.empty());

  EXPECT_EQ(ids, (std::vector<std::uint64_t>{7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 3, 1}));
}

TEST(StoreTest, APageThatEndsExactlyAtTheLastItemIsTheLast) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  for (std::uint64_t id = 1; id <= 3; ++id) Put(*store, SmallJob(id));

  EXPECT_EQ(store->ListJobs({.page_size = 3})->next, "");
  EXPECT_EQ(store->ListRounds(JobId{1}, 3, "")->items.size(), 0u);
}

TEST(StoreTest, PagesNeitherRepeatNorSkipWhenJobsArriveInBetween) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  for (std::uint64_t id = 1; id <= 10; ++id) Put(*store, SmallJob(id));

  std::multiset<std::uint64_t> seen;
  std::string token;
  std::uint64_t arriving = 11;
  do {
    const absl::StatusOr<Page<job::JobRecord>> page =
        store->ListJobs({.page_size = 4, .page_token = token});
    ASSERT_TRUE(page.ok()) << page.status();
    for (const job::JobRecord& record : page->items) seen.insert(record.id.value);
    token = page->next;
    Put(*store, SmallJob(arriving++));
  } while (!token.empty());

  EXPECT_EQ(seen, (std::multiset<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(StoreTest, RoundsAreListedOldestFirstPageByPageAndByJob) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::WriteBatch batch{.jobs = {SmallJob(1), SmallJob(2)}, .rounds = {}};
  for (std::uint64_t round = 0; round < 5; ++round) {
    batch.rounds.push_back(Round(1, 4 - round));
    batch.rounds.push_back(Round(2, round));
  }
  ASSERT_TRUE(store->Write(batch).ok());

  std::vector<std::uint64_t> rounds;
  std::string token;
  do {
    const absl::StatusOr<Page<job::RoundRecord>> page = store->ListRounds(JobId{1}, 2, token);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const job::RoundRecord& round : page->items) {
      EXPECT_EQ(round.job, JobId{1});
      rounds.push_back(round.round);
    }
    token = page->next;
  } while (!token.empty());

  EXPECT_EQ(rounds, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
}

TEST(StoreTest, RoundsAreListedFromAnyOne) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::WriteBatch batch{.jobs = {SmallJob(1)}, .rounds = {}};
  for (const std::uint64_t round : {0, 1, 2, 5, 6, 7}) batch.rounds.push_back(Round(1, round));
  ASSERT_TRUE(store->Write(batch).ok());
  const auto list = [&](std::uint64_t first) {
    std::vector<std::uint64_t> rounds;
    std::string token;
    do {
      const auto page = store->ListRounds(JobId{1}, 2, token, first);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      for (const job::RoundRecord& round : page->items) rounds.push_back(round.round);
      token = page->next;
    } while (!token.empty());
    return rounds;
  };

  EXPECT_EQ(list(1), (std::vector<std::uint64_t>{1, 2, 5, 6, 7}));
  EXPECT_EQ(list(3), (std::vector<std::uint64_t>{5, 6, 7}));
  EXPECT_EQ(list(8), (std::vector<std::uint64_t>{}));
  EXPECT_EQ(list(std::numeric_limits<std::uint64_t>::max()), (std::vector<std::uint64_t>{}));
}

TEST(StoreTest, EveryFieldOfADecisionComesBack) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  const job::DecisionRecord expected = DecisionOf(3, 4, policies::Axis::kSynchronization);
  ASSERT_TRUE(store->Write({.decisions = {expected}}).ok());

  const auto found = store->ListDecisions(JobId{3}, 10, "");

  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->items.size(), 1u);
  EXPECT_EQ(found->items[0].job, expected.job);
  EXPECT_EQ(found->items[0].decision, expected.decision);
  EXPECT_EQ(found->next, "");
}

TEST(StoreTest, ADecisionIsReplacedWhenItsGainIsMeasured) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::DecisionRecord decided = DecisionOf(3, 4, policies::Axis::kBatch);
  decided.decision.measured_gain.reset();
  ASSERT_TRUE(store->Write({.decisions = {decided}}).ok());

  decided.decision.measured_gain = 0.5;
  ASSERT_TRUE(store->Write({.decisions = {decided}}).ok());

  const auto found = store->ListDecisions(JobId{3}, 10, "");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->items.size(), 1u);
  EXPECT_EQ(found->items[0].decision.measured_gain, 0.5);
}

TEST(StoreTest, ADecisionIsFoundByItsPlanAndItsAxis) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  using policies::Axis;
  ASSERT_TRUE(store
                  ->Write({.decisions = {DecisionOf(3, 2, Axis::kBatch),
                                         DecisionOf(3, 2, Axis::kAggregation),
                                         DecisionOf(4, 5, Axis::kBatch)}})
                  .ok());

  const auto found = store->FindDecision(JobId{3}, {.plan_version = 2, .axis = Axis::kAggregation});

  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->decision, DecisionOf(3, 2, Axis::kAggregation).decision);
  const auto missing = store->FindDecision(JobId{3}, {.plan_version = 5, .axis = Axis::kBatch});
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
}

TEST(StoreTest, TheNewestDecisionsComeInTheirOrder) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  using policies::Axis;
  ASSERT_TRUE(
      store
          ->Write(
              {.decisions = {DecisionOf(3, 12, Axis::kBatch), DecisionOf(3, 2, Axis::kLearningRate),
                             DecisionOf(4, 99, Axis::kBatch), DecisionOf(3, 2, Axis::kBatch)}})
          .ok());
  const auto newest = [&](int count) {
    std::vector<std::pair<std::uint64_t, Axis>> listed;
    const auto found = store->NewestDecisions(JobId{3}, count);
    EXPECT_TRUE(found.ok()) << found.status();
    for (const job::DecisionRecord& record : *found) {
      listed.emplace_back(record.decision.plan_version, record.decision.axis);
    }
    return listed;
  };
  using Listed = std::vector<std::pair<std::uint64_t, Axis>>;

  EXPECT_EQ(newest(1), (Listed{{12, Axis::kBatch}}));
  EXPECT_EQ(newest(2), (Listed{{2, Axis::kLearningRate}, {12, Axis::kBatch}}));
  EXPECT_EQ(newest(9), (Listed{{2, Axis::kBatch}, {2, Axis::kLearningRate}, {12, Axis::kBatch}}));
}

TEST(StoreTest, DecisionsAreListedByPlanAndAxisPageByPageAndByJob) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  using policies::Axis;
  ASSERT_TRUE(
      store
          ->Write(
              {.decisions = {DecisionOf(3, 12, Axis::kBatch), DecisionOf(3, 2, Axis::kLearningRate),
                             DecisionOf(4, 1, Axis::kBatch), DecisionOf(3, 2, Axis::kBatch),
                             DecisionOf(3, 2, Axis::kAggregation)}})
          .ok());

  std::vector<std::pair<std::uint64_t, Axis>> listed;
  std::string token;
  do {
    const auto page = store->ListDecisions(JobId{3}, 1, token);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const job::DecisionRecord& record : page->items) {
      listed.emplace_back(record.decision.plan_version, record.decision.axis);
    }
    token = page->next;
  } while (!token.empty());

  EXPECT_EQ(listed, (std::vector<std::pair<std::uint64_t, Axis>>{{2, Axis::kBatch},
                                                                 {2, Axis::kAggregation},
                                                                 {2, Axis::kLearningRate},
                                                                 {12, Axis::kBatch}}));
}

TEST(StoreTest, ATokenThatIsNotOursIsInvalid) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  const std::unique_ptr<Store> other = OpenOrDie(":memory:");
  for (std::uint64_t id = 1; id <= 3; ++id) {
    const job::WriteBatch batch{.jobs = {SmallJob(id)},
                                .rounds = {Round(1, id)},
                                .decisions = {DecisionOf(1, id, policies::Axis::kBatch)}};
    ASSERT_TRUE(store->Write(batch).ok());
    ASSERT_TRUE(other->Write(batch).ok());
  }
  const std::string jobs = store->ListJobs({.page_size = 1})->next;
  const std::string rounds = store->ListRounds(JobId{1}, 1, "")->next;
  const std::string decisions = store->ListDecisions(JobId{1}, 1, "")->next;
  ASSERT_TRUE(store->ListJobs({.page_size = 1, .page_token = jobs}).ok());
  ASSERT_TRUE(store->ListRounds(JobId{1}, 1, rounds).ok());
  ASSERT_TRUE(store->ListDecisions(JobId{1}, 1, decisions).ok());
  const auto expect_refused = [](const absl::Status& status, const std::string& why) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(std::string(status.message()).starts_with("page_token: " + why)) << status;
  };

  for (const std::string& token : {std::string("x"), std::string("00"), jobs.substr(2), jobs + "00",
                                   std::string(10000, '0')}) {
    expect_refused(store->ListJobs({.page_token = token}).status(), "not a");
    expect_refused(store->ListRounds(JobId{1}, 3, token).status(), "not a");
    expect_refused(store->ListDecisions(JobId{1}, 3, token).status(), "not a");
  }
  expect_refused(other->ListJobs({.page_token = jobs}).status(), "of another server");
  expect_refused(other->ListRounds(JobId{1}, 1, rounds).status(), "of another server");
  expect_refused(store->ListJobs({.page_token = jobs, .filter = "priority=0"}).status(),
                 "of another listing");
  expect_refused(store->ListJobs({.page_token = jobs, .order_by = "name"}).status(),
                 "of another listing");
  expect_refused(store->ListRounds(JobId{2}, 1, rounds).status(), "of another listing");
  expect_refused(store->ListRounds(JobId{1}, 1, decisions).status(), "of another listing");
}

TEST(StoreTest, WhatJobsHandOnIsKeptByKeyTheNewestUntilItIsEmptyWhateverBecomesOfTheJobs) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  const auto kept = [&] {
    std::string all;
    const auto priors = store->Priors();
    EXPECT_TRUE(priors.ok()) << priors.status();
    for (const job::PriorRecord& each : *priors) {
      all += each.key + "=" + std::to_string(each.number) + each.prior + " ";
    }
    return all;
  };
  ASSERT_TRUE(
      store
          ->Write({.jobs = {SmallJob(1)},
                   .priors = {{"b", 1, "x"}, {"a", 2, std::string("\0y", 2)}, {"c", 3, "z"}}})
          .ok());
  EXPECT_EQ(kept(), "a=2" + std::string("\0y", 2) + " b=1x c=3z ");

  ASSERT_TRUE(store->Write({.priors = {{"b", 4, "newer"}, {"c", 0, ""}, {"d", 0, ""}}}).ok());
  ASSERT_TRUE(store->DeleteJob(JobId{1}).ok());

  EXPECT_EQ(kept(), "a=2" + std::string("\0y", 2) + " b=4newer ");
  EXPECT_THAT(*store->CheckIntegrity(), testing::IsEmpty());
}

TEST(StoreTest, OfEachPlannersMemoryTheNewestIsKeptUntilItIsEmptyOrItsJobIsDeleted) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  const auto kept = [&] {
    std::string all;
    const auto memories = store->Memories();
    EXPECT_TRUE(memories.ok()) << memories.status();
    for (const job::MemoryRecord& each : *memories) {
      all += std::to_string(each.job.value) + "=" + each.memory + " ";
    }
    return all;
  };
  job::JobRecord over = SmallJob(3);
  over.state = job::JobState::kSucceeded;
  ASSERT_TRUE(store
                  ->Write({.jobs = {SmallJob(1), SmallJob(2), over},
                           .memories = {{JobId{1}, "a"}, {JobId{2}, "b"}, {JobId{3}, "c"}}})
                  .ok());
  EXPECT_EQ(kept(), "1=a 2=b 3=c ");

  ASSERT_TRUE(store->Write({.memories = {{JobId{1}, "newer"}, {JobId{2}, ""}}}).ok());
  ASSERT_TRUE(store->DeleteJob(JobId{3}).ok());

  EXPECT_EQ(kept(), "1=newer ");
  EXPECT_THAT(*store->CheckIntegrity(), testing::IsEmpty());
  ASSERT_TRUE(store->Write({.memories = {{JobId{9}, "nobody's"}}}).ok());
  EXPECT_THAT(*store->CheckIntegrity(),
              testing::ElementsAre("memory of job 9: there is no such job"));
}

TEST(StoreTest, UnfinishedJobsAreThoseOfNoFinalStateById) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  for (std::uint64_t id = 9; id >= 1; --id) {
    job::JobRecord record = SmallJob(id);
    record.state = static_cast<job::JobState>(id - 1);
    Put(*store, record);
  }

  const absl::StatusOr<std::vector<job::JobRecord>> found = store->UnfinishedJobs();

  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<std::uint64_t> ids;
  for (const job::JobRecord& record : *found) ids.push_back(record.id.value);
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{1, 2, 3, 4, 8, 9}));  // SUSPENDING and PAUSED last
}

TEST(StoreTest, LastJobIdIsZeroBeforeTheFirstJob) {
  EXPECT_EQ(*OpenOrDie(":memory:")->LastJobId(), 0u);
}

TEST(StoreTest, ASchemaOfANewerProgramIsRefused) {
  if (OnPostgres()) GTEST_SKIP() << "SharedStoreTest has its own";
  const TemporaryFolder folder;
  OpenOrDie(folder.File("db")).reset();
  RunSql(folder.File("db"), "PRAGMA user_version = 99");

  EXPECT_EQ(Store::Open(folder.File("db")).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(StoreTest, AFileThatIsNoDatabaseIsDataLoss) {
  const TemporaryFolder folder;
  std::ofstream(folder.File("db")) << std::string(10000, 'x');

  EXPECT_EQ(Store::Open(folder.File("db")).status().code(), absl::StatusCode::kDataLoss);
}

TEST(StoreTest, AJobThatCannotBeReadIsSetAsideAndTheOthersAreStillRead) {
  const TemporaryFolder folder;
  {
    const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
    Put(*store, SmallJob(1));
    Put(*store, SmallJob(2));
  }
  RunSql(folder.File("db"), "UPDATE jobs SET record = x'00ff' WHERE id = 1");

  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));

  EXPECT_EQ(store->FindJob("job-1").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store->FindJob("job-1").status().code(), absl::StatusCode::kNotFound);
  ExpectEqual(*store->FindJob("job-2"), SmallJob(2));
  const std::vector<SetAsideJob> set_aside = store->TakeSetAside();
  ASSERT_EQ(set_aside.size(), 1u);
  EXPECT_EQ(set_aside[0].id, JobId{1});
  EXPECT_EQ(set_aside[0].name, "job-1");
  EXPECT_THAT(set_aside[0].reason, HasSubstr("damaged"));
  EXPECT_TRUE(store->TakeSetAside().empty());
}

TEST(StoreTest, WhatIsSetAsideIsNotInTheWayAndNotForgotten) {
  const TemporaryFolder folder;
  job::JobRecord with_blob = SmallJob(3);
  with_blob.checkpoint = job::CheckpointRecord{.sha256 = std::string(64, 'c'), .size_bytes = 1};
  {
    const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
    for (std::uint64_t id : {1, 2}) Put(*store, SmallJob(id));
    Put(*store, with_blob);
  }
  RunSql(folder.File("db"), "UPDATE jobs SET record = x'00ff' WHERE id <> 2");

  {
    const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
    const auto page = store->ListJobs({.page_size = 1});
    ASSERT_TRUE(page.ok()) << page.status();
    ASSERT_EQ(page->items.size(), 1u);
    EXPECT_EQ(page->items[0].name, "job-2");
    EXPECT_EQ(page->next, "");
    const auto unfinished = store->UnfinishedJobs();
    ASSERT_TRUE(unfinished.ok()) << unfinished.status();
    EXPECT_LE(unfinished->size(), 1u);
  }
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
  EXPECT_EQ(*store->LastJobId(), 3u);
  EXPECT_EQ(store->BlobsInUse(JobId{0}, 10)->sha256,
            std::vector<std::string>{std::string(64, 'c')});
  const auto problems = store->CheckIntegrity();
  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_THAT(*problems, testing::ElementsAre(HasSubstr("job-1 was set aside: "),
                                              HasSubstr("job-3 was set aside: ")));
  job::JobRecord again = SmallJob(4);
  again.name = "job-1";
  EXPECT_TRUE(store->Write({.jobs = {again}}).ok());
}

TEST(StoreTest, AMissingFolderIsNotFound) {
  const TemporaryFolder folder;

  EXPECT_EQ(Store::Open(folder.File("missing/db")).status().code(), absl::StatusCode::kNotFound);
}

TEST(StoreTest, ASecondStoreOnTheSameFileIsUnavailable) {
  if (OnPostgres()) GTEST_SKIP() << "SharedStoreTest has its own";
  const TemporaryFolder folder;
  const std::unique_ptr<Store> first = OpenOrDie(folder.File("db"));

  EXPECT_EQ(Store::Open(folder.File("db")).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tactus::store
