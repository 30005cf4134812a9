// What is kept of jobs and rounds, and for how long.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <set>

#include "coordinator/store/store.h"
#include "tests/coordinator/store/any_store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/coordinator/store/whole_store.h"
#include "tests/support/temporary_folder.h"

namespace tactus::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr job::WallTime kNow = 1'800'000'000'000'000'000;

// A job that ended `ago` before kNow.
job::JobRecord EndedJob(std::uint64_t id, Duration ago) {
  job::JobRecord record = SmallJob(id);
  record.state = job::JobState::kSucceeded;
  record.end_time = kNow - ago.count();
  return record;
}

void PutRounds(Store& store, std::uint64_t job, std::uint64_t from, std::uint64_t to) {
  job::WriteBatch batch;
  for (std::uint64_t round = from; round < to; ++round) batch.rounds.push_back(Round(job, round));
  ASSERT_TRUE(store.Write(batch).ok());
}

std::vector<std::uint64_t> RoundsOf(Store& store, std::uint64_t job) {
  std::vector<std::uint64_t> rounds;
  std::string token;
  do {
    const auto page = store.ListRounds(JobId{job}, 10000, token);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const job::RoundRecord& record : page->items) rounds.push_back(record.round);
    token = page->next;
  } while (!token.empty());
  return rounds;
}

// Prunes until there is nothing more to do; returns the jobs that went.
std::vector<std::string> PruneAll(Store& store, const Retention& retention) {
  std::vector<GoneJob> gone;
  absl::StatusOr<bool> more = true;
  for (int pieces = 0; more.ok() && *more; ++pieces) {
    EXPECT_LT(pieces, 10000) << "there is always more to prune";
    if (pieces == 10000) break;
    more = store.Prune(retention, kNow, gone);
    EXPECT_TRUE(more.ok()) << more.status();
  }
  std::vector<std::string> names;
  for (const GoneJob& job : gone) names.push_back(job.name);
  return names;
}

// The longest distance between neighbours.
std::uint64_t LongestGap(const std::vector<std::uint64_t>& rounds) {
  std::uint64_t longest = 0;
  for (std::size_t i = 1; i < rounds.size(); ++i) {
    longest = std::max(longest, rounds[i] - rounds[i - 1]);
  }
  return longest;
}

TEST(SampleRoundsTest, FewRoundsAreAllGiven) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  PutRounds(*store, 1, 5, 15);

  EXPECT_EQ(store->SampleRounds(JobId{1}, 10)->size(), 10u);
  EXPECT_EQ(store->SampleRounds(JobId{2}, 10)->size(), 0u);
}

TEST(SampleRoundsTest, ManyAreSpreadEvenlyFromTheFirstToTheLast) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  PutRounds(*store, 1, 7, 1008);
  PutRounds(*store, 2, 0, 10);
  for (const int points_max : {2, 3, 11, 999, 1000}) {
    const auto points = store->SampleRounds(JobId{1}, points_max);

    ASSERT_TRUE(points.ok()) << points.status();
    ASSERT_EQ(points->size(), static_cast<std::size_t>(points_max));
    std::vector<std::uint64_t> rounds;
    for (const job::RoundRecord& record : *points) rounds.push_back(record.round);
    EXPECT_EQ(rounds.front(), 7u);
    EXPECT_EQ(rounds.back(), 1007u);
    EXPECT_LE(LongestGap(rounds), 1000u / static_cast<unsigned>(points_max - 1) + 1);
    ExpectEqual(points->back(), Round(1, 1007));
  }
}

TEST(SampleRoundsTest, RoundsBeforeTheFirstAskedForAreLeftOut) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  PutRounds(*store, 1, 0, 100);
  const auto sample = [&](int points_max, std::uint64_t first_round) {
    const auto points = store->SampleRounds(JobId{1}, points_max, first_round);
    std::vector<std::uint64_t> rounds;
    for (const job::RoundRecord& record : *points) rounds.push_back(record.round);
    return rounds;
  };

  EXPECT_THAT(sample(3, 90), ElementsAre(90, 94, 99));
  EXPECT_THAT(sample(10, 97), ElementsAre(97, 98, 99));
  EXPECT_THAT(sample(10, 100), IsEmpty());
  EXPECT_THAT(sample(10, std::numeric_limits<std::uint64_t>::max()), IsEmpty());
}

TEST(SampleRoundsTest, GapsGiveNoRoundTwice) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  PutRounds(*store, 1, 0, 50);
  PutRounds(*store, 1, 100000, 100050);

  const auto points = store->SampleRounds(JobId{1}, 60);

  std::set<std::uint64_t> rounds;
  for (const job::RoundRecord& record : *points) {
    EXPECT_TRUE(rounds.insert(record.round).second) << record.round;
  }
  EXPECT_TRUE(rounds.contains(0));
  EXPECT_TRUE(rounds.contains(100049));
}

TEST(NodesTest, WhatUsersSaidOfANodeIsKeptUntilTheyTakeItBack) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  ASSERT_TRUE(store
                  ->Write({.nodes = {{.name = "b", .cordoned = true},
                                     {.name = "a", .cordoned = true, .draining = true},
                                     {.name = "c", .cordoned = true}}})
                  .ok());
  ASSERT_TRUE(store->Write({.nodes = {{.name = "c"}, {.name = "never"}}}).ok());

  const auto nodes = store->Nodes();

  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(nodes->size(), 2u);
  EXPECT_EQ((*nodes)[0].name, "a");
  EXPECT_TRUE((*nodes)[0].draining);
  EXPECT_EQ((*nodes)[1].name, "b");
  EXPECT_TRUE((*nodes)[1].cordoned);
  EXPECT_FALSE((*nodes)[1].draining);
}

TEST(DeleteJobTest, AJobGoesWithItsHistoryAndItsIdIsNotGivenAgain) {
  const TemporaryFolder folder;
  {
    const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
    ASSERT_TRUE(store
                    ->Write({.jobs = {EndedJob(1, Seconds(1)), EndedJob(2, Seconds(1))},
                             .decisions = {DecisionOf(2, 1, policies::Axis::kBatch)}})
                    .ok());
    PutRounds(*store, 1, 0, 3);
    PutRounds(*store, 2, 0, 9000);  // more than one piece

    EXPECT_TRUE(store->DeleteJob(JobId{2}).ok());

    EXPECT_EQ(store->FindJob("job-2").status().code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(RoundsOf(*store, 2).size(), 0u);
    EXPECT_EQ(store->SampleRounds(JobId{2}, 5)->size(), 0u);
    EXPECT_EQ(store->ListDecisions(JobId{2}, 5, "")->items.size(), 0u);
    EXPECT_EQ(RoundsOf(*store, 1).size(), 3u);
    EXPECT_EQ(store->DeleteJob(JobId{2}).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(*store->CheckIntegrity(), std::vector<std::string>{});
  }
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));

  EXPECT_EQ(*store->LastJobId(), 2u);
  EXPECT_EQ(RoundsOf(*store, 2).size(), 0u);
  EXPECT_EQ(PruneAll(*store, {}), std::vector<std::string>{});
  EXPECT_EQ(RoundsOf(*store, 2).size(), 0u);
  EXPECT_EQ(*store->CheckIntegrity(), std::vector<std::string>{});
}

TEST(BlobsInUseTest, TheyAreThoseOfTheJobsThatAreThere) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::JobRecord with_model = SmallJob(9);
  with_model.spec = "model sha256:" + HashOf('d');
  ASSERT_TRUE(store->Write({.jobs = {FullJob(), with_model, SmallJob(10)}}).ok());

  EXPECT_EQ(AllBlobs(*store), (std::vector<std::string>{HashOf('0'), HashOf('a'), HashOf('b'),
                                                        HashOf('c'), HashOf('d')}));
  job::JobRecord changed = FullJob();
  changed.checkpoint->sha256 = HashOf('e');
  ASSERT_TRUE(store->Write({.jobs = {changed}}).ok());
  ASSERT_TRUE(store->DeleteJob(JobId{9}).ok());
  EXPECT_EQ(AllBlobs(*store),
            (std::vector<std::string>{HashOf('0'), HashOf('b'), HashOf('c'), HashOf('e')}));
}

TEST(SupersededTest, ACheckpointThatANewerOneTookThePlaceOfIsSaidOnce) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::JobRecord record = SmallJob(1);
  const auto write = [&](const std::string& checkpoint) {
    record.checkpoint = job::CheckpointRecord{.sha256 = checkpoint, .size_bytes = 1, .rounds = 1};
    ++record.revision;
    ASSERT_TRUE(store->Write({.jobs = {record}}).ok());
  };
  write(HashOf('a'));
  EXPECT_TRUE(store->TakeSuperseded().empty());
  write(HashOf('a'));
  write(HashOf('b'));
  write(HashOf('c'));

  EXPECT_EQ(store->TakeSuperseded(), (std::vector<std::string>{HashOf('a'), HashOf('b')}));
  EXPECT_TRUE(store->TakeSuperseded().empty());

  // Still named by the job itself.
  record.spec = "model sha256:" + HashOf('c');
  write(HashOf('d'));
  EXPECT_TRUE(store->TakeSuperseded().empty());
  // Refused: the name is another job's.
  ASSERT_TRUE(store->Write({.jobs = {SmallJob(2)}}).ok());
  record.name = "job-2";
  record.checkpoint->sha256 = HashOf('e');
  EXPECT_FALSE(store->Write({.jobs = {record}}).ok());
  EXPECT_TRUE(store->TakeSuperseded().empty());
}

TEST(SupersededTest, ACheckpointThatIsStillKeptIsNotSaid) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::JobRecord record = SmallJob(1);
  const auto take = [&](const std::string& checkpoint, std::size_t kept) {
    if (record.checkpoint) {
      record.former_checkpoints.insert(record.former_checkpoints.begin(), *record.checkpoint);
    }
    record.former_checkpoints.resize(std::min(record.former_checkpoints.size(), kept - 1));
    record.checkpoint = job::CheckpointRecord{.sha256 = checkpoint, .size_bytes = 1, .rounds = 1};
    ++record.revision;
    ASSERT_TRUE(store->Write({.jobs = {record}}).ok());
  };
  take(HashOf('a'), 2);
  take(HashOf('b'), 2);
  EXPECT_TRUE(store->TakeSuperseded().empty());
  EXPECT_EQ(AllBlobs(*store), (std::vector<std::string>{HashOf('a'), HashOf('b')}));

  take(HashOf('c'), 2);
  EXPECT_EQ(store->TakeSuperseded(), std::vector<std::string>{HashOf('a')});

  take(HashOf('d'), 1);
  EXPECT_EQ(store->TakeSuperseded(), (std::vector<std::string>{HashOf('c'), HashOf('b')}));
  EXPECT_EQ(AllBlobs(*store), std::vector<std::string>{HashOf('d')});
}

TEST(SupersededTest, OnlySoManyAreRemembered) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::JobRecord record = SmallJob(1);
  record.checkpoint.emplace();
  for (std::size_t i = 0; i < Store::kSupersededMax + 2; ++i) {
    std::string digits = std::to_string(i);
    record.checkpoint->sha256 = std::string(64 - digits.size(), '0') + digits;
    ASSERT_TRUE(store->Write({.jobs = {record}}).ok());
  }

  const std::vector<std::string> superseded = store->TakeSuperseded();

  EXPECT_EQ(superseded.size(), Store::kSupersededMax);
  EXPECT_EQ(superseded.front(), std::string(63, '0') + "1");
}

TEST(PruneTest, JobsThatEndedLongAgoGoAndTheOthersStay) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::JobRecord running = SmallJob(3);
  running.state = job::JobState::kRunning;
  running.create_time = 1;
  const Retention retention{.age = Seconds(100)};
  ASSERT_TRUE(store
                  ->Write({.jobs = {EndedJob(1, Seconds(101)), EndedJob(2, Seconds(99)), running,
                                    EndedJob(4, Seconds(300))},
                           .decisions = {DecisionOf(4, 1, policies::Axis::kBatch)}})
                  .ok());
  PutRounds(*store, 1, 0, 9000);
  PutRounds(*store, 2, 0, 10);

  EXPECT_EQ(PruneAll(*store, retention), (std::vector<std::string>{"job-4", "job-1"}));

  EXPECT_EQ(store->ListJobs({})->items.size(), 2u);
  EXPECT_EQ(RoundsOf(*store, 1).size(), 0u);
  EXPECT_EQ(RoundsOf(*store, 2).size(), 10u);
  EXPECT_EQ(*store->CheckIntegrity(), std::vector<std::string>{});
  EXPECT_EQ(PruneAll(*store, retention), std::vector<std::string>{});
}

TEST(PruneTest, RoundsOfJobsThatEndedAreThinnedEvenlyAfterAWhile) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  const Retention retention{.full_rounds = Seconds(50), .rounds_max = 100};
  ASSERT_TRUE(store
                  ->Write({.jobs = {EndedJob(1, Seconds(51)), EndedJob(2, Seconds(49)),
                                    EndedJob(3, Seconds(60)), EndedJob(4, Seconds(60))}})
                  .ok());
  PutRounds(*store, 1, 10, 20011);
  PutRounds(*store, 2, 0, 500);
  PutRounds(*store, 3, 0, 100);

  EXPECT_EQ(PruneAll(*store, retention), std::vector<std::string>{});

  const std::vector<std::uint64_t> rounds = RoundsOf(*store, 1);
  EXPECT_EQ(rounds.size(), 100u);
  EXPECT_EQ(rounds.front(), 10u);
  EXPECT_EQ(rounds.back(), 20010u);
  EXPECT_LE(LongestGap(rounds), 204u);
  EXPECT_EQ(RoundsOf(*store, 2).size(), 500u);
  EXPECT_EQ(RoundsOf(*store, 3).size(), 100u);
  EXPECT_EQ(PruneAll(*store, retention), std::vector<std::string>{});
  EXPECT_EQ(RoundsOf(*store, 1), rounds);
}

TEST(PruneTest, ALowerLimitThinsAgain) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  ASSERT_TRUE(store->Write({.jobs = {EndedJob(1, Seconds(60))}}).ok());
  PutRounds(*store, 1, 0, 1000);

  PruneAll(*store, {.full_rounds = Seconds(50), .rounds_max = 100});
  PruneAll(*store, {.full_rounds = Seconds(50), .rounds_max = 2});

  EXPECT_EQ(RoundsOf(*store, 1), (std::vector<std::uint64_t>{0, 999}));
}

TEST(PruneTest, OldRoundsOfARunningJobAreThinnedAndTheNewestHalfIsWhole) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  const Retention retention{.running_rounds_max = 1000};
  ASSERT_TRUE(store->Write({.jobs = {SmallJob(1), SmallJob(2)}}).ok());
  PutRounds(*store, 2, 0, 1000);
  std::uint64_t last = 3;
  for (const std::uint64_t added : {900, 300, 5, 5000, 20000, 1, 3000}) {
    PutRounds(*store, 1, last, last + added);
    last += added;

    EXPECT_EQ(PruneAll(*store, retention), std::vector<std::string>{});

    const std::vector<std::uint64_t> rounds = RoundsOf(*store, 1);
    EXPECT_LE(rounds.size(), 1000u);
    EXPECT_GE(rounds.size(), std::min<std::uint64_t>(last - 3, 650));
    EXPECT_EQ(rounds.front(), 3u);
    EXPECT_EQ(rounds.back(), last - 1);
    EXPECT_EQ(rounds[rounds.size() - 500], last - 500);
    EXPECT_LE(LongestGap(rounds), 2 * (last / 480 + 1));
  }
  EXPECT_EQ(RoundsOf(*store, 2).size(), 1000u);
}

TEST(PruneTest, APieceIsBounded) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  ASSERT_TRUE(store->Write({.jobs = {EndedJob(1, Seconds(60))}}).ok());
  PutRounds(*store, 1, 0, 20000);
  const Retention retention{.full_rounds = Seconds(50), .rounds_max = 2};
  std::vector<GoneJob> gone;

  EXPECT_TRUE(*store->Prune(retention, kNow, gone));

  const std::size_t left = RoundsOf(*store, 1).size();
  EXPECT_LT(left, 20000u);
  EXPECT_GE(left, 15000u);
}

TEST(PruneTest, AboveItsSizeTheOldestJobsGoAndTheFileShrinks) {
  if (OnPostgres()) GTEST_SKIP() << "PostgreSQL cannot say what is in use";
  const TemporaryFolder folder;
  const std::string path = folder.File("db");
  std::unique_ptr<Store> store = OpenOrDie(path);
  job::JobRecord running = SmallJob(99);
  ASSERT_TRUE(store->Write({.jobs = {running}}).ok());
  for (std::uint64_t id = 1; id <= 10; ++id) {
    job::JobRecord record = EndedJob(id, Seconds(static_cast<double>(1000 * id)));
    record.spec.assign(1 << 20, 'x');
    ASSERT_TRUE(store->Write({.jobs = {record}}).ok());
  }

  // 10 MiB and some pages are there; the last to end is 1, the first is 10.
  EXPECT_EQ(PruneAll(*store, {.bytes = 20 << 20}), std::vector<std::string>{});
  EXPECT_EQ(
      PruneAll(*store, {.bytes = 4 << 20}),
      (std::vector<std::string>{"job-10", "job-9", "job-8", "job-7", "job-6", "job-5", "job-4"}));

  EXPECT_EQ(store->ListJobs({})->items.size(), 4u);
  store.reset();
  EXPECT_LT(std::filesystem::file_size(path), 6u << 20);
  EXPECT_GT(std::filesystem::file_size(path), 3u << 20);
  store = OpenOrDie(path);
  EXPECT_EQ(PruneAll(*store, {.bytes = 1}), (std::vector<std::string>{"job-3", "job-2", "job-1"}));
  EXPECT_TRUE(store->FindJob("job-99").ok());  // never one that goes on
}

TEST(PruneTest, AJobThatHasJustEndedStaysHoweverLargeTheDatabaseIs) {
  if (OnPostgres()) GTEST_SKIP() << "PostgreSQL cannot say what is in use";
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  ASSERT_TRUE(store
                  ->Write({.jobs = {EndedJob(1, Retention::kLeastAge - Seconds(1)),
                                    EndedJob(2, Retention::kLeastAge + Seconds(1)),
                                    EndedJob(3, Seconds(0))}})
                  .ok());

  EXPECT_EQ(PruneAll(*store, {.bytes = 1}), std::vector<std::string>{"job-2"});

  EXPECT_TRUE(store->FindJob("job-1").ok());
  EXPECT_TRUE(store->FindJob("job-3").ok());
}

TEST(PruneTest, AJobThatGoesIsSaidWithWhatItIsKnownBy) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::JobRecord asked_for = EndedJob(1, Seconds(200));
  asked_for.request_id = "request";
  ASSERT_TRUE(store->Write({.jobs = {asked_for, EndedJob(2, Seconds(100))}}).ok());
  std::vector<GoneJob> gone;

  ASSERT_TRUE(store->Prune({.age = Seconds(1)}, kNow, gone).ok());

  ASSERT_EQ(gone.size(), 2u);
  EXPECT_EQ(gone[0].id, JobId{1});
  EXPECT_EQ(gone[0].name, "job-1");
  EXPECT_EQ(gone[0].request_id, "request");
  EXPECT_EQ(gone[1].request_id, "");
}

job::ValidationRecord ValidationOf(std::uint64_t job, std::uint64_t rounds) {
  return {.job = JobId{job},
          .rounds = rounds,
          .epoch = 2,
          .trained_samples = 1ull << 40,
          .train_seconds = 12.25,
          .loss = 1.0 / 3,
          .accuracy = 0.75,
          .samples = 1000,
          .seconds = 0.5};
}

std::vector<std::uint64_t> ValidationsOf(Store& store, std::uint64_t job) {
  const auto found = store.ListValidations(JobId{job});
  EXPECT_TRUE(found.ok()) << found.status();
  std::vector<std::uint64_t> rounds;
  for (const job::ValidationRecord& record : *found) rounds.push_back(record.rounds);
  return rounds;
}

TEST(ValidationsTest, TheyAreKeptWholeAndOneOfTheSameRoundTakesItsPlace) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::ValidationRecord first = ValidationOf(1, 5);
  first.loss = 9;
  ASSERT_TRUE(store
                  ->Write({.jobs = {SmallJob(1)},
                           .validations = {ValidationOf(1, 9), first, ValidationOf(2, 1)}})
                  .ok());
  ASSERT_TRUE(store->Write({.validations = {ValidationOf(1, 5)}}).ok());

  const auto found = store->ListValidations(JobId{1});

  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2u);
  const job::ValidationRecord& record = found->front();
  const job::ValidationRecord expected = ValidationOf(1, 5);
  EXPECT_EQ(record.job, expected.job);
  EXPECT_EQ(record.rounds, expected.rounds);
  EXPECT_EQ(record.epoch, expected.epoch);
  EXPECT_EQ(record.trained_samples, expected.trained_samples);
  EXPECT_EQ(record.train_seconds, expected.train_seconds);
  EXPECT_EQ(record.loss, expected.loss);
  EXPECT_EQ(record.accuracy, expected.accuracy);
  EXPECT_EQ(record.samples, expected.samples);
  EXPECT_EQ(record.seconds, expected.seconds);
}

TEST(ValidationsTest, ThoseOfParametersThatAreLostGoWithTheRounds) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  ASSERT_TRUE(
      store->Write({.validations = {ValidationOf(1, 4), ValidationOf(1, 5), ValidationOf(2, 9)}})
          .ok());

  ASSERT_TRUE(store->Write({.forgotten = {{.job = JobId{1}, .from = 4}}}).ok());

  EXPECT_THAT(ValidationsOf(*store, 1), ElementsAre(4));
  EXPECT_THAT(ValidationsOf(*store, 2), ElementsAre(9));
}

TEST(ValidationsTest, OfTooManyEverySecondGoesButTheNewestStays) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::WriteBatch batch;
  const auto most = static_cast<std::uint64_t>(Store::kValidationsMax);
  for (std::uint64_t i = 1; i <= most; ++i) batch.validations.push_back(ValidationOf(1, i));
  ASSERT_TRUE(store->Write(batch).ok());
  ASSERT_EQ(ValidationsOf(*store, 1).size(), most);

  ASSERT_TRUE(store->Write({.validations = {ValidationOf(1, most + 1)}}).ok());

  const std::vector<std::uint64_t> rounds = ValidationsOf(*store, 1);
  EXPECT_EQ(rounds.size(), most / 2 + 1);
  EXPECT_EQ(rounds.front(), 1u);
  EXPECT_EQ(rounds.back(), most + 1);
}

TEST(ValidationsTest, ADeletedJobHasNone) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  ASSERT_TRUE(
      store->Write({.jobs = {EndedJob(1, Seconds(1))}, .validations = {ValidationOf(1, 4)}}).ok());

  ASSERT_TRUE(store->DeleteJob(JobId{1}).ok());

  EXPECT_THAT(ValidationsOf(*store, 1), IsEmpty());
  const auto problems = store->CheckIntegrity();
  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_THAT(*problems, IsEmpty());
}

}  // namespace
}  // namespace tactus::store
