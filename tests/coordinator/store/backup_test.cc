// Copies of the database, and what its inspection finds.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "coordinator/store/store.h"
#include "tests/coordinator/store/any_store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/coordinator/store/whole_store.h"
#include "tests/support/temporary_folder.h"

namespace tactus::store {
namespace {

void Fill(Store& store) {
  job::WriteBatch batch{.jobs = {FullJob(), SmallJob(4)},
                        .rounds = {Round(3, 1), Round(4, 2)},
                        .decisions = {DecisionOf(3, 1, policies::Axis::kBatch)},
                        .nodes = {{.name = "a", .cordoned = true}},
                        .memories = {{.job = JobId{3}, .memory = "learned"}}};
  for (std::uint64_t round = 0; round < 3000; ++round) batch.rounds.push_back(Round(4, round));
  ASSERT_TRUE(store.Write(batch).ok());
}

std::set<std::string> FilesOf(const TemporaryFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

TEST(BackupTest, ACopyOfAnOpenStoreIsWholeAndTheStoreGoesOn) {
  const TemporaryFolder folder;
  const TemporaryFolder copies;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
  Fill(*store);

  const absl::Status status = CopyWhole(*store, copies.File("copy"));

  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(FilesOf(copies), std::set<std::string>{"copy"});
  ASSERT_TRUE(store->Write({.jobs = {SmallJob(5)}}).ok());
  const std::unique_ptr<Store> copy = OpenFileOrDie(copies.File("copy"));
  ASSERT_EQ(copy->Memories()->size(), 1u);
  EXPECT_EQ(copy->Memories()->front().memory, "learned");
  ExpectEqual(*copy->FindJob("shakespeare-3"), FullJob());
  EXPECT_EQ(copy->ListRounds(JobId{4}, 10000, "")->items.size(), 3000u);
  EXPECT_EQ(copy->Nodes()->size(), 1u);
  EXPECT_FALSE(copy->FindJob("job-5").ok());
  EXPECT_EQ(*copy->CheckIntegrity(), std::vector<std::string>{});
  ASSERT_TRUE(copy->Write({.jobs = {SmallJob(6)}}).ok());
}

TEST(BackupTest, AFileThatIsThereIsLeftAlone) {
  const TemporaryFolder folder;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
  std::ofstream(folder.File("copy")) << "mine";

  EXPECT_EQ(CopyWhole(*store, folder.File("copy")).code(), absl::StatusCode::kAlreadyExists);

  std::string content;
  std::ifstream(folder.File("copy")) >> content;
  EXPECT_EQ(content, "mine");
}

TEST(BackupTest, WhatACrashLeftIsReplaced) {
  const TemporaryFolder folder;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
  Fill(*store);
  std::ofstream(folder.File("copy.partial")) << std::string(100000, 'x');

  EXPECT_TRUE(CopyWhole(*store, folder.File("copy")).ok());

  EXPECT_FALSE(std::filesystem::exists(folder.File("copy.partial")));
  EXPECT_TRUE(OpenFileOrDie(folder.File("copy"))->FindJob("job-4").ok());
}

TEST(BackupTest, AMissingFolderIsNotFound) {
  const TemporaryFolder folder;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));

  EXPECT_EQ(CopyWhole(*store, folder.File("missing/copy")).code(), absl::StatusCode::kNotFound);
}

// Some 8 MiB: several pieces.
void FillMuch(Store& store) {
  Fill(store);
  for (std::uint64_t id = 10; id < 18; ++id) {
    job::JobRecord record = SmallJob(id);
    record.spec.assign(1 << 20, static_cast<char>('a' + id % 8));
    ASSERT_TRUE(store.Write({.jobs = {record}}).ok());
  }
}

TEST(BackupTest, WhatIsWrittenBetweenPiecesIsInTheCopyWhichIsSound) {
  if (OnPostgres()) GTEST_SKIP() << "a copy of PostgreSQL is of one moment";
  const TemporaryFolder folder;
  const TemporaryFolder copies;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
  FillMuch(*store);
  const auto copying = store->BeginCopy(copies.File("copy"));
  ASSERT_TRUE(copying.ok()) << copying.status();

  std::uint64_t written = 100;
  absl::StatusOr<bool> whole = (*copying)->Step();
  while (whole.ok() && !*whole && written < 200) {
    // What was copied already, what is yet to come, and what grows the file.
    job::JobRecord changed = SmallJob(10 + written % 8);
    changed.spec.assign(1 << 18, 'z');
    const job::JobRecord added = SmallJob(written++);
    ASSERT_TRUE(
        store->Write({.jobs = {changed, added}, .rounds = {Round(4, 5000 + written)}}).ok());
    ASSERT_TRUE(store->DeleteJob(JobId{written - 1}).ok());
    ASSERT_TRUE(store->Write({.jobs = {added}}).ok());
    whole = (*copying)->Step();
  }

  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(*whole);
  EXPECT_GE(written, 103u);  // there were pieces to write between
  const std::unique_ptr<Store> copy = OpenFileOrDie(copies.File("copy"));
  EXPECT_EQ(*copy->CheckIntegrity(), std::vector<std::string>{});
  for (std::uint64_t id = 100; id < written; ++id) {
    EXPECT_TRUE(copy->FindJob("job-" + std::to_string(id)).ok()) << id;
  }
  EXPECT_EQ(copy->ListJobs({.page_size = 1000})->items.size(),
            store->ListJobs({.page_size = 1000})->items.size());
  EXPECT_EQ(copy->FindJob("job-14")->spec, store->FindJob("job-14")->spec);
}

TEST(BackupTest, AWriteThatFailsBetweenPiecesSpoilsNothing) {
  const TemporaryFolder folder;
  const TemporaryFolder copies;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
  FillMuch(*store);
  const auto copying = store->BeginCopy(copies.File("copy"));
  ASSERT_TRUE(copying.ok()) << copying.status();
  ASSERT_FALSE(*(*copying)->Step());
  job::WriteBatch refused;
  for (std::uint64_t id = 1000; id < 1100; ++id) {
    refused.jobs.push_back(SmallJob(id));
    refused.jobs.back().spec.assign(1 << 19, 'r');  // more than the cache holds
  }
  refused.jobs.push_back(SmallJob(2000));
  refused.jobs.back().name = "job-4";  // taken

  EXPECT_EQ(store->Write(refused).code(), absl::StatusCode::kAlreadyExists);

  absl::StatusOr<bool> whole = false;
  while (whole.ok() && !*whole) whole = (*copying)->Step();
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::unique_ptr<Store> copy = OpenFileOrDie(copies.File("copy"));
  EXPECT_EQ(*copy->CheckIntegrity(), std::vector<std::string>{});
  EXPECT_FALSE(copy->FindJob("job-1000").ok());
  EXPECT_TRUE(copy->FindJob("job-17").ok());
}

TEST(BackupTest, ACopyThatIsGivenUpLeavesNothing) {
  const TemporaryFolder folder;
  const TemporaryFolder copies;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
  FillMuch(*store);
  {
    const auto copying = store->BeginCopy(copies.File("copy"));
    ASSERT_TRUE(copying.ok()) << copying.status();
    ASSERT_FALSE(*(*copying)->Step());
    EXPECT_EQ(FilesOf(copies), std::set<std::string>{"copy.partial"});
  }

  EXPECT_EQ(FilesOf(copies), std::set<std::string>{});
  EXPECT_TRUE(store->Write({.jobs = {SmallJob(5)}}).ok());
}

TEST(IntegrityTest, ASoundStoreHasNoProblems) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  Fill(*store);

  const auto problems = store->CheckIntegrity();

  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_EQ(*problems, std::vector<std::string>{});
}

TEST(IntegrityTest, EveryDamageIsALine) {
  struct Case {
    const char* sql = nullptr;
    const char* line = nullptr;  // how it begins
  };
  const Case cases[] = {
      {"UPDATE jobs SET record = x'00ff' WHERE id = 4", "job 4: store: a record"},
      {"UPDATE jobs SET state = 2 WHERE id = 4", "job 4: the record and the columns"},
      {"UPDATE jobs SET labels = x'' WHERE id = 3", "job 3: the record and the columns"},
      {"UPDATE rounds SET record = x'01' WHERE job = 4 AND round = 7", "round 7 of job 4: store: "},
      {"UPDATE rounds SET round = 9999 WHERE job = 4 AND round = 7", "round 9999 of job 4: the"},
      {"UPDATE decisions SET record = x'01'", "decision 1 of job 3: store: a record"},
      {"UPDATE nodes SET name = 'b'", "node b: the record"},
      {"DELETE FROM jobs WHERE id = 4", "rounds of job 4: there is no such job"},
  };
  for (const Case& one : cases) {
    const TemporaryFolder folder;
    {
      const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
      Fill(*store);
    }
    RunSql(folder.File("db"), one.sql);

    const auto problems = OpenOrDie(folder.File("db"))->CheckIntegrity();

    ASSERT_TRUE(problems.ok()) << problems.status();
    ASSERT_EQ(problems->size(), 1u) << one.sql;
    EXPECT_TRUE(problems->front().starts_with(one.line)) << problems->front();
  }
}

TEST(IntegrityTest, ADamagedPageIsAProblemAndNotTheEnd) {
  if (OnPostgres()) GTEST_SKIP() << "there is no file of ours";
  const TemporaryFolder folder;
  {
    const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
    Fill(*store);
  }
  {
    std::fstream file(folder.File("db"), std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(folder.File("db")));
    for (std::streamoff page = size / 4096 / 2; page < size / 4096 / 2 + 5; ++page) {
      file.seekp(page * 4096);
      file << std::string(200, '\x7f');
    }
  }

  const auto problems = OpenOrDie(folder.File("db"))->CheckIntegrity();

  ASSERT_TRUE(problems.ok()) << problems.status();
  EXPECT_GE(problems->size(), 1u);
  // A copy has the damage as well.
  ASSERT_TRUE(CopyWhole(*OpenOrDie(folder.File("db")), folder.File("copy")).ok());
  EXPECT_EQ(*OpenFileOrDie(folder.File("copy"))->CheckIntegrity(), *problems);
}

TEST(EpochTest, EachStartIsAboveThoseBefore) {
  const TemporaryFolder folder;
  protocol::CoordinatorIdentity last;
  for (int start = 0; start < 3; ++start) {
    const absl::StatusOr<protocol::CoordinatorIdentity> begun =
        OpenOrDie(folder.File("db"))->BeginEpoch(0);

    ASSERT_TRUE(begun.ok()) << begun.status();
    EXPECT_GT(begun->epoch, last.epoch);
    EXPECT_FALSE(begun->server.empty());
    EXPECT_EQ(begun->server, last.server.empty() ? begun->server : last.server);
    last = *begun;
  }
  const TemporaryFolder other;
  EXPECT_NE(OpenOrDie(other.File("db"))->BeginEpoch(0)->server, last.server);
}

TEST(EpochTest, ABackupIsOlderUntilItIsSaidToBeTheRightOne) {
  const TemporaryFolder folder;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
  const protocol::CoordinatorIdentity before = *store->BeginEpoch(0);
  ASSERT_TRUE(CopyWhole(*store, folder.File("copy")).ok());
  ASSERT_TRUE(store->BeginEpoch(0).ok());
  const protocol::CoordinatorIdentity seen = *store->BeginEpoch(0);

  const std::unique_ptr<Store> copy = OpenFileOrDie(folder.File("copy"));

  EXPECT_EQ(copy->BeginEpoch(0)->server, before.server);
  EXPECT_LT(copy->BeginEpoch(0)->epoch, seen.epoch + 1);
  EXPECT_EQ(copy->BeginEpoch(1'000)->epoch, 1'001u);
  EXPECT_EQ(copy->BeginEpoch(0)->epoch, 1'002u);
}

}  // namespace
}  // namespace tactus::store
