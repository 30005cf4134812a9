#include "agent/daemon/job_folders.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/agent/daemon/await.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::UnorderedElementsAre;

constexpr std::int64_t kSecond = 1'000'000'000;

class JobFoldersTest : public testing::Test {
 protected:
  // A folder of a job that was here last at `touched` [ns since 1970].
  void Leave(const std::string& job, std::int64_t touched) {
    std::filesystem::create_directories(folder_.File(job + "/result"));
    std::ofstream(folder_.File(job + "/result/model.pt")) << "weights";
    SetTime(job, touched);
  }
  void SetTime(const std::string& job, std::int64_t touched) {
    const timespec time = {.tv_sec = touched / kSecond, .tv_nsec = touched % kSecond};
    const timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, folder_.File(job).c_str(), times, 0), 0);
  }
  std::int64_t TimeOf(const std::string& job) const {
    struct stat found = {};
    EXPECT_EQ(::stat(folder_.File(job).c_str(), &found), 0);
    return std::int64_t{found.st_mtim.tv_sec} * kSecond + found.st_mtim.tv_nsec;
  }
  // Those of jobs.
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with('.')) names.push_back(name);
    }
    return names;
  }

  TemporaryFolder folder_;
  JobFolders::Options options_{
      .folder = folder_.path(), .keep = Seconds(100), .keep_unsent = Seconds(1000)};
};

TEST_F(JobFoldersTest, AFolderGoesAfterItsTimeAndNotBefore) {
  JobFolders folders(options_);
  Leave("old-1", 0);
  Leave("young-1", 1);

  EXPECT_EQ(folders.Sweep({}, 100 * kSecond), 1u);

  EXPECT_THAT(Left(), UnorderedElementsAre("young-1"));
}

TEST_F(JobFoldersTest, WhatIsInUseStaysAndItsTimeBeginsAnew) {
  JobFolders folders(options_);
  Leave("used-1", 0);

  EXPECT_EQ(folders.Sweep({"used-1"}, 100 * kSecond), 0u);
  const std::int64_t touched = TimeOf("used-1");

  EXPECT_GT(touched, 1'000'000 * kSecond);  // by the clock of this host
  EXPECT_EQ(folders.Sweep({}, touched + 99 * kSecond), 0u);
  EXPECT_EQ(folders.Sweep({}, touched + 100 * kSecond), 1u);
}

TEST_F(JobFoldersTest, AResultOnItsWayStaysAndIsMarkedForTheNextAgent) {
  Leave("sent-1", 0);
  {
    JobFolders folders(options_);
    folders.BeginSend("sent-1");
    SetTime("sent-1", 0);
    EXPECT_EQ(folders.Sweep({}, 5000 * kSecond), 0u);
  }
  SetTime("sent-1", 0);
  JobFolders folders(options_);

  EXPECT_EQ(folders.Sweep({}, 999 * kSecond), 0u);
  EXPECT_EQ(folders.Sweep({}, 1000 * kSecond), 1u);
}

TEST_F(JobFoldersTest, AResultIsSentWhenAllOfItsFilesHaveArrived) {
  JobFolders folders(options_);
  Leave("sent-1", 0);
  Leave("lost-1", 0);
  for (const std::string job : {"sent-1", "lost-1"}) {
    folders.BeginSend(job);
    folders.BeginSend(job);
    folders.EndSend(job, job == "sent-1");
    folders.EndSend(job, true);
    SetTime(job, 0);
  }

  EXPECT_EQ(folders.Sweep({}, 999 * kSecond), 1u);
  EXPECT_THAT(Left(), UnorderedElementsAre("lost-1"));

  folders.BeginSend("lost-1");
  folders.EndSend("lost-1", true);
  SetTime("lost-1", 0);
  EXPECT_EQ(folders.Sweep({}, 100 * kSecond), 1u);
}

TEST_F(JobFoldersTest, ASentResultIsKeptFromThenOn) {
  JobFolders folders(options_);
  Leave("sent-1", 0);

  folders.BeginSend("sent-1");
  SetTime("sent-1", 0);
  folders.EndSend("sent-1", true);

  EXPECT_EQ(folders.Sweep({}, TimeOf("sent-1") + 99 * kSecond), 0u);
}

TEST_F(JobFoldersTest, WhatTheFormerAgentDidNotGetToRemoveIsRemoved) {
  Leave(".removed-old-1", 0);
  Leave(".removed-other-1", 0);

  JobFolders folders(options_);

  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (!std::filesystem::is_empty(folder_.path()) &&
         std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(JobFoldersTest, CheckpointsOfAFormerGroupAreRemovedAndNothingElse) {
  JobFolders folders(options_);
  const std::filesystem::path result = std::filesystem::path(folder_.path()) / "lost-1/result";
  std::filesystem::create_directories(result / "checkpoints");
  std::ofstream(result / "checkpoints/70.safetensors") << "never sent";
  std::ofstream(result / "curves") << "kept";

  folders.RemoveCheckpoints("lost-1");
  folders.RemoveCheckpoints("none-1");

  EXPECT_FALSE(std::filesystem::exists(result / "checkpoints"));
  EXPECT_TRUE(std::filesystem::exists(result / "curves"));
  const std::string gone = folder_.File(".removed-lost-1-checkpoints");
  const auto patience = std::chrono::steady_clock::now() + kPatience;
  while (std::filesystem::exists(gone) && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(std::filesystem::exists(gone));
}

TEST_F(JobFoldersTest, FilesAreLeftAlone) {
  JobFolders folders(options_);
  std::ofstream(folder_.File("notes")) << "mine";
  SetTime("notes", 0);

  EXPECT_EQ(folders.Sweep({}, 5000 * kSecond), 0u);
}

}  // namespace
}  // namespace tactus::agent
