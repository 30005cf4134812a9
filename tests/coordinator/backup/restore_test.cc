#include "coordinator/backup/restore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/backup/backup_folder.h"
#include "tests/coordinator/backup/state_to_back_up.h"

namespace tactus::backup {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RestoreTest : public testing::Test {
 protected:
  RestoreTest() {
    state_.AddJob(1, "one");
    state_.AddJob(2, "two");
    state_.CopyDatabase();
    const auto report = BackupFolder(backups_.path(), 7)
                            .Write({.now = 0,
                                    .state_folder = state_.path(),
                                    .copy_read = [] {},
                                    .cancelled = [] { return false; }});
    EXPECT_TRUE(report.ok()) << report.status();
    if (report.ok()) backup_ = backups_.File(report->name);
  }

  absl::StatusOr<RestoreReport> Run(bool damaged_too = false) {
    return Restore({.backup = backup_, .state_folder = new_, .damaged_too = damaged_too});
  }

  std::string BlobOfBackup(const std::string& content) const {
    return service::BlobPath(backup_ + "/" + service::kBlobsName, HashOf(content));
  }

  StateToBackUp state_;
  const TemporaryFolder backups_;
  const TemporaryFolder around_;
  const std::string new_ = around_.File("state");
  std::string backup_;
};

TEST_F(RestoreTest, AStateFolderHasJobsAndBlobsAgainAndNoneOfTheBackupsFiles) {
  const auto report = Run();

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->files, 2u);
  EXPECT_THAT(report->problems, IsEmpty());
  EXPECT_THAT(NamesSorted(around_.path()), ElementsAre("state"));
  EXPECT_THAT(NamesSorted(new_), ElementsAre("blobs", "coordinator.db"));
  for (const char* content : {"one", "two"}) {
    EXPECT_EQ(ReadFile(service::BlobPath(new_ + "/blobs", HashOf(content))), content);
    // The state folder's files change when they were used last.
    EXPECT_FALSE(std::filesystem::equivalent(service::BlobPath(new_ + "/blobs", HashOf(content)),
                                             BlobOfBackup(content)));
  }
  const auto store = store::Store::Open(new_ + "/coordinator.db");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->FindJob("job-2")->checkpoint->sha256, HashOf("two"));
}

TEST_F(RestoreTest, AFolderThatIsThereAndEmptyServesAlsoWithASlash) {
  std::filesystem::create_directory(new_);

  const auto report = Restore({.backup = backup_ + "/", .state_folder = new_ + "/"});

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(NamesSorted(new_), SizeIs(2));
}

TEST_F(RestoreTest, AFolderWithSomethingInItIsLeftAlone) {
  WriteFile(new_ + "/coordinator.db", "the one in use");

  const auto report = Run();

  EXPECT_TRUE(absl::IsFailedPrecondition(report.status()));
  EXPECT_EQ(report.status().message(),
            "state-dir: " + new_ + ": is not empty; give another one, or move it aside");
  EXPECT_EQ(ReadFile(new_ + "/coordinator.db"), "the one in use");
}

TEST_F(RestoreTest, TheFolderOfAllBackupsIsNoBackup) {
  backup_ = backups_.path();

  EXPECT_TRUE(absl::IsNotFound(Run().status()));

  EXPECT_FALSE(std::filesystem::exists(new_));
}

TEST_F(RestoreTest, DamagedAndMissingBlobsAreAllNamedAndNothingIsMade) {
  WriteFile(BlobOfBackup("one"), "0ne");
  std::filesystem::remove(BlobOfBackup("two"));

  const auto report = Run();

  ASSERT_TRUE(absl::IsDataLoss(report.status())) << report.status();
  const std::string message(report.status().message());
  EXPECT_THAT(message, HasSubstr(BlobOfBackup("one") + ": is damaged"));
  EXPECT_THAT(message, HasSubstr(BlobOfBackup("two") + ": cannot be opened"));
  EXPECT_THAT(message, HasSubstr("--restore-damaged"));
  EXPECT_THAT(NamesSorted(around_.path()), IsEmpty());
}

TEST_F(RestoreTest, WhatIsWholeOfADamagedBackupIsRestoredOnRequest) {
  WriteFile(BlobOfBackup("one"), "0ne");

  const auto report = Run(true);

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->problems, ElementsAre(HasSubstr(HashOf("one"))));
  EXPECT_EQ(report->files, 1u);
  EXPECT_FALSE(std::filesystem::exists(service::BlobPath(new_ + "/blobs", HashOf("one"))));
  EXPECT_TRUE(std::filesystem::exists(service::BlobPath(new_ + "/blobs", HashOf("two"))));
}

TEST_F(RestoreTest, ADatabaseThatChangedSinceIsNotTaken) {
  std::string bytes = ReadFile(backup_ + "/coordinator.db");
  // Within a job's name: SQLite's own check does not see it.
  const std::size_t name = bytes.find("job-2");
  ASSERT_NE(name, std::string::npos);
  bytes[name + 4] = '3';
  WriteFile(backup_ + "/coordinator.db", bytes);

  EXPECT_THAT(std::string(Run().status().message()),
              HasSubstr("coordinator.db: has another hash than in SHA256SUMS"));
}

TEST_F(RestoreTest, ADatabaseThatIsNoneIsRefusedEvenOnRequest) {
  WriteFile(backup_ + "/coordinator.db", std::string(8192, 'x'));

  EXPECT_TRUE(absl::IsDataLoss(Run(true).status()));

  EXPECT_THAT(NamesSorted(around_.path()), IsEmpty());
}

TEST_F(RestoreTest, WhatAKilledRestoreLeftIsReplaced) {
  WriteFile(new_ + ".restoring/blobs/half", "half");

  ASSERT_TRUE(Run().ok());

  EXPECT_THAT(NamesSorted(new_ + "/blobs"), SizeIs(2));
  EXPECT_THAT(NamesSorted(around_.path()), ElementsAre("state"));
}

}  // namespace
}  // namespace tactus::backup
