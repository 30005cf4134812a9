// Copies of the database, and what its inspection finds.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "coordinator/store/store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/coordinator/store/temporary_folder.h"

namespace tactus::store {
namespace {

std::unique_ptr<Store> OpenOrDie(const std::string& path) {
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Open(path);
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

void Fill(Store& store) {
  WriteBatch batch{.jobs = {FullJob(), SmallJob(4)},
                   .rounds = {Round(3, 1), Round(4, 2)},
                   .decisions = {DecisionOf(3, 1, policies::Axis::kBatch)},
                   .nodes = {{.name = "a", .cordoned = true}}};
  for (std::uint64_t round = 0; round < 3000; ++round) batch.rounds.push_back(Round(4, round));
  ASSERT_TRUE(store.Write(batch).ok());
}

void RunSql(const std::string& path, const std::string& sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  sqlite3_close(connection);
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

  const absl::Status status = store->Backup(copies.File("copy"));

  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(FilesOf(copies), std::set<std::string>{"copy"});
  ASSERT_TRUE(store->Write({.jobs = {SmallJob(5)}}).ok());
  const std::unique_ptr<Store> copy = OpenOrDie(copies.File("copy"));
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

  EXPECT_EQ(store->Backup(folder.File("copy")).code(), absl::StatusCode::kAlreadyExists);

  std::string content;
  std::ifstream(folder.File("copy")) >> content;
  EXPECT_EQ(content, "mine");
}

TEST(BackupTest, WhatACrashLeftIsReplaced) {
  const TemporaryFolder folder;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
  Fill(*store);
  std::ofstream(folder.File("copy.partial")) << std::string(100000, 'x');

  EXPECT_TRUE(store->Backup(folder.File("copy")).ok());

  EXPECT_FALSE(std::filesystem::exists(folder.File("copy.partial")));
  EXPECT_TRUE(OpenOrDie(folder.File("copy"))->FindJob("job-4").ok());
}

TEST(BackupTest, AMissingFolderIsNotFound) {
  const TemporaryFolder folder;
  const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));

  EXPECT_EQ(store->Backup(folder.File("missing/copy")).code(), absl::StatusCode::kNotFound);
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
}

}  // namespace
}  // namespace tactus::store
