#include "coordinator/backup/backup_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "tests/coordinator/backup/state_to_back_up.h"

namespace tactus::backup {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// 2026-11-23T01:45:00Z and `seconds` later.
job::WallTime At(int seconds) { return (job::WallTime{1795398300} + seconds) * 1'000'000'000; }

class BackupFolderTest : public testing::Test {
 protected:
  absl::StatusOr<BackupFolder::Report> Write(int seconds, std::size_t keep = 7) {
    state_.CopyDatabase();
    return BackupFolder(to_.path(), keep)
        .Write({.now = At(seconds),
                .state_folder = state_.path(),
                .copy_read = [this] { ++copy_read_; },
                .cancelled = [this] { return cancelled_; }});
  }

  std::string BlobIn(const std::string& backup, const std::string& content) const {
    return service::BlobPath(to_.File(backup) + "/" + service::kBlobsName, HashOf(content));
  }

  StateToBackUp state_;
  const TemporaryFolder to_;
  bool cancelled_ = false;
  int copy_read_ = 0;
};

TEST_F(BackupFolderTest, ABackupHasTheDatabaseAndWhatItsJobsNameAndNothingElse) {
  state_.AddJob(1, "one");
  WriteFile(state_.BlobOf("nobody's"), "nobody's");

  const auto report = Write(0);

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->name, "tactus-20261123T014500Z");
  EXPECT_EQ(report->files_copied, 1u);
  EXPECT_EQ(report->bytes_copied, 3u);
  EXPECT_EQ(copy_read_, 1);
  const std::string backup = to_.File(report->name);
  EXPECT_THAT(NamesSorted(backup), ElementsAre("SHA256SUMS", "blobs", "coordinator.db"));
  EXPECT_THAT(NamesSorted(backup + "/blobs"), SizeIs(1));
  EXPECT_EQ(ReadFile(BlobIn(report->name, "one")), "one");
  EXPECT_EQ(ReadFile(backup + "/SHA256SUMS"), HashOf(ReadFile(backup + "/coordinator.db")) +
                                                  "  coordinator.db\n" + HashOf("one") + "  " +
                                                  service::BlobPath("blobs", HashOf("one")) + "\n");
  const auto store = store::Store::Open(backup + "/coordinator.db");
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->FindJob("job-1").ok());
}

TEST_F(BackupFolderTest, AFileThatHasLeftTheFolderIsFetchedAndNoOther) {
  state_.AddJob(1, "here");
  state_.AddJob(2, "gone");
  std::filesystem::remove_all(std::filesystem::path(state_.BlobOf("gone")).parent_path());
  std::vector<std::string> fetched;
  state_.CopyDatabase();

  const auto report = BackupFolder(to_.path(), 7)
                          .Write({.now = At(0),
                                  .state_folder = state_.path(),
                                  .fetch =
                                      [&](const std::string& sha256, const auto& take) {
                                        fetched.push_back(sha256);
                                        return take("gone");
                                      },
                                  .copy_read = [] {},
                                  .cancelled = [] { return false; }});

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(fetched, ElementsAre(HashOf("gone")));
  EXPECT_THAT(report->missing, IsEmpty());
  EXPECT_EQ(ReadFile(BlobIn(report->name, "here")), "here");
  EXPECT_EQ(ReadFile(BlobIn(report->name, "gone")), "gone");
}

// What is about to leave the folder for a bucket is still there when the copy begins, or is in the
// bucket by then: there is no moment between.
TEST_F(BackupFolderTest, FilesThatLeaveTheFolderMeanwhileAreAllThere) {
  constexpr int kFiles = 300;
  for (int i = 0; i < kFiles; ++i) state_.AddJob(i + 1, std::to_string(i));
  state_.CopyDatabase();
  std::mutex mutex;
  std::map<std::string, std::string> bucket;
  std::atomic<bool> began = false;
  std::thread leaving([&] {
    while (!began) std::this_thread::yield();
    for (int i = 0; i < kFiles; ++i) {
      {
        const std::lock_guard lock(mutex);
        bucket[HashOf(std::to_string(i))] = std::to_string(i);
      }
      std::filesystem::remove(state_.BlobOf(std::to_string(i)));
    }
  });

  const auto report = BackupFolder(to_.path(), 7)
                          .Write({.now = At(0),
                                  .state_folder = state_.path(),
                                  .fetch =
                                      [&](const std::string& sha256, const auto& take) {
                                        const std::lock_guard lock(mutex);
                                        const auto found = bucket.find(sha256);
                                        if (found == bucket.end())
                                          return absl::NotFoundError("not there");
                                        return take(found->second);
                                      },
                                  .copy_read = [&] { began = true; },
                                  .cancelled = [] { return false; }});
  began = true;
  leaving.join();

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing, IsEmpty());
  EXPECT_EQ(report->files_copied, std::size_t{kFiles});
}

TEST_F(BackupFolderTest, TheSecondOneCopiesWhatIsNewAndSharesTheRest) {
  state_.AddJob(1, "one");
  ASSERT_TRUE(Write(0).ok());
  state_.AddJob(2, "two");
  // It is not even looked at: the backup has it.
  std::filesystem::remove(state_.BlobOf("one"));

  const auto report = Write(1);

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->files_kept, 1u);
  EXPECT_EQ(report->files_copied, 1u);
  EXPECT_EQ(report->bytes_copied, 3u);
  EXPECT_THAT(report->missing, IsEmpty());
  struct stat first = {}, second = {};
  ASSERT_EQ(::stat(BlobIn("tactus-20261123T014500Z", "one").c_str(), &first), 0);
  ASSERT_EQ(::stat(BlobIn("tactus-20261123T014501Z", "one").c_str(), &second), 0);
  EXPECT_EQ(first.st_ino, second.st_ino);
  ASSERT_EQ(::stat(state_.BlobOf("two").c_str(), &first), 0);
  ASSERT_EQ(::stat(BlobIn("tactus-20261123T014501Z", "two").c_str(), &second), 0);
  EXPECT_NE(first.st_ino, second.st_ino) << "the state folder's damage would be the backup's";
}

TEST_F(BackupFolderTest, TheOldestGoBeyondKeepWithBlobsThatOnlyTheyHave) {
  state_.AddJob(1, "one");
  ASSERT_TRUE(Write(0, 2).ok());
  state_.AddJob(1, "another");
  ASSERT_TRUE(Write(1, 2).ok());
  EXPECT_EQ(ReadFile(BlobIn("tactus-20261123T014500Z", "one")), "one");

  const auto report = Write(2, 2);

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->removed.ok()) << report->removed;
  EXPECT_THAT(NamesSorted(to_.path()),
              ElementsAre("tactus-20261123T014501Z", "tactus-20261123T014502Z"));
  struct stat found = {};
  ASSERT_EQ(::stat(BlobIn("tactus-20261123T014502Z", "another").c_str(), &found), 0);
  EXPECT_EQ(found.st_nlink, 2u);
  EXPECT_FALSE(std::filesystem::exists(BlobIn("tactus-20261123T014502Z", "one")));
}

TEST_F(BackupFolderTest, TheOneJustMadeStaysAlthoughOthersSeemNewer) {
  ASSERT_TRUE(Write(100, 2).ok());
  ASSERT_TRUE(Write(101, 2).ok());

  ASSERT_TRUE(Write(0, 2).ok());

  EXPECT_THAT(NamesSorted(to_.path()),
              ElementsAre("tactus-20261123T014500Z", "tactus-20261123T014641Z"));
}

TEST_F(BackupFolderTest, WhatACrashLeftGoesAndNothingElse) {
  WriteFile(to_.File("tactus-20261123T014400Z.partial/coordinator.db"), "half");
  WriteFile(to_.File("mine.partial/file"), "mine");
  WriteFile(to_.File("tactus-notes"), "mine");
  const BackupFolder folder(to_.path(), 1);
  EXPECT_EQ(folder.NewestTime(), std::nullopt);

  folder.RemoveLeftovers();

  EXPECT_THAT(NamesSorted(to_.path()), ElementsAre("mine.partial", "tactus-notes"));
  ASSERT_TRUE(Write(0, 1).ok());
  EXPECT_EQ(folder.NewestTime(), At(0));
  EXPECT_EQ(folder.NewestCompleteTime(), At(0));
}

TEST_F(BackupFolderTest, ADamagedOrMissingBlobIsNamedAndTheRestIsThere) {
  for (const char* content : {"whole", "damaged", "gone"}) state_.AddJob(content[0], content);
  ASSERT_TRUE(std::filesystem::exists(state_.BlobOf("damaged")));
  WriteFile(state_.BlobOf("damaged"), "dam4ged");
  std::filesystem::remove(state_.BlobOf("gone"));

  const auto report = Write(0);

  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(
      report->missing,
      testing::UnorderedElementsAre(
          state_.BlobOf("damaged") + ": is damaged: its content has the hash " + HashOf("dam4ged"),
          testing::AllOf(HasSubstr(state_.BlobOf("gone")), HasSubstr("No such file"))));
  EXPECT_THAT(ReadFile(to_.File(report->name) + "/MISSING"), HasSubstr(HashOf("gone")));
  EXPECT_EQ(ReadFile(BlobIn(report->name, "whole")), "whole");
  EXPECT_FALSE(std::filesystem::exists(BlobIn(report->name, "damaged")));
  const BackupFolder folder(to_.path(), 7);
  EXPECT_EQ(folder.NewestTime(), At(0));
  EXPECT_EQ(folder.NewestCompleteTime(), std::nullopt);
}

TEST_F(BackupFolderTest, AFolderThatIsNotThereIsNotMade) {
  state_.CopyDatabase();
  const std::string absent = to_.File("mnt/backups");

  const auto report = BackupFolder(absent, 7).Write({.now = At(0),
                                                     .state_folder = state_.path(),
                                                     .copy_read = [] {},
                                                     .cancelled = [] { return false; }});

  EXPECT_TRUE(absl::IsNotFound(report.status())) << report.status();
  EXPECT_EQ(report.status().message(), absent + ": is no folder; is its disk mounted?");
  EXPECT_FALSE(std::filesystem::exists(absent));
}

TEST_F(BackupFolderTest, AFullDiskLeavesNothingAndWhatWasThere) {
  state_.AddJob(1, "one");
  ASSERT_TRUE(Write(0, 1).ok());
  state_.AddJob(2, std::string(1u << 20, 'x'));
  state_.CopyDatabase();
  // Writes beyond it fail, as on a disk that is full.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little = {.rlim_cur = 1u << 19, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);

  const auto report = Write(1, 1);

  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(std::string(report.status().message()), HasSubstr(to_.path()));
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("cannot write"));
  EXPECT_THAT(NamesSorted(to_.path()), ElementsAre("tactus-20261123T014500Z"));
  EXPECT_TRUE(Write(2, 1).ok());
}

TEST_F(BackupFolderTest, OneThatIsGivenUpLeavesNothing) {
  state_.AddJob(1, "one");
  cancelled_ = true;

  EXPECT_TRUE(absl::IsCancelled(Write(0).status()));

  EXPECT_THAT(NamesSorted(to_.path()), IsEmpty());
}

TEST_F(BackupFolderTest, ASecondOneOfTheSameSecondIsRefused) {
  ASSERT_TRUE(Write(0).ok());

  EXPECT_TRUE(absl::IsAlreadyExists(Write(0).status()));

  EXPECT_THAT(NamesSorted(to_.path()), SizeIs(1));
}

}  // namespace
}  // namespace tactus::backup
