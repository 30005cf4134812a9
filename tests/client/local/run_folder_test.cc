#include "client/local/run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client/local/local_cluster.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;

TEST(RunFolderTest, TwoRunsOfOneNameHaveTwoFolders) {
  const TemporaryFolder state;

  const auto first = MakeRunFolder(state.path() + "/deep/tactus", "demo");
  const auto second = MakeRunFolder(state.path() + "/deep/tactus", "demo");

  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(first->path, second->path);
  EXPECT_TRUE(fs::is_directory(first->path));
  EXPECT_EQ(runtime::NamesIn(state.path() + "/deep/tactus/runs").size(), 2u);
}

TEST(RunFolderTest, NamesCannotLeaveTheFolder) {
  const TemporaryFolder state;

  const auto folder = MakeRunFolder(state.path(), "../../" + std::string(200, 'x'));

  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(fs::path(folder->path).parent_path(), state.path() + "/runs");
  EXPECT_LT(fs::path(folder->path).filename().string().size(), 48u);
}

TEST(RunFolderTest, AStateFolderThatCannotBeMadeIsAnError) {
  const TemporaryFolder state;
  std::ofstream(state.path() + "/file") << "x";

  EXPECT_FALSE(MakeRunFolder(state.path() + "/file", "demo").ok());
}

void Fill(const std::string& folder) {
  fs::create_directories(folder + "/agent/workers");
  fs::create_directories(folder + "/coordinator");
  fs::create_directories(folder + "/result");
  for (const char* file : {"/agent.log", "/address", "/agent/workers/0.log",
                           "/agent/workers/0.sock", "/coordinator/tactus.db", "/result/model.pt"}) {
    std::ofstream(folder + file) << "x";
  }
}

TEST(RunFolderTest, AfterSuccessTheResultRemains) {
  const TemporaryFolder folder;
  Fill(folder.path());

  CleanRunFolder(folder.path(), RunRemains::kResult);

  EXPECT_TRUE(fs::exists(folder.path() + "/result/model.pt"));
  EXPECT_FALSE(fs::exists(folder.path() + "/agent"));
  EXPECT_FALSE(fs::exists(folder.path() + "/agent.log"));
  EXPECT_FALSE(fs::exists(folder.path() + "/address"));
}

TEST(RunFolderTest, AfterFailureTheLogsRemain) {
  const TemporaryFolder folder;
  Fill(folder.path());

  CleanRunFolder(folder.path(), RunRemains::kLogs);

  EXPECT_TRUE(fs::exists(folder.path() + "/agent.log"));
  EXPECT_TRUE(fs::exists(folder.path() + "/agent/workers/0.log"));
  EXPECT_FALSE(fs::exists(folder.path() + "/agent/workers/0.sock"));
  EXPECT_FALSE(fs::exists(folder.path() + "/coordinator"));
}

TEST(RunFolderTest, NothingRemainsOfAnEmptyRun) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() + "/run/result");

  CleanRunFolder(folder.path() + "/run", RunRemains::kResult);

  EXPECT_FALSE(fs::exists(folder.path() + "/run"));
}

TEST(FormerRunsTest, ARunThatGoesOnIsInUseAndIsNotRemoved) {
  const TemporaryFolder state;
  std::string path;
  {
    const auto running = MakeRunFolder(state.path(), "demo");
    ASSERT_TRUE(running.ok()) << running.status();
    path = running->path;
    Fill(path);

    ASSERT_EQ(FormerRuns(state.path()).size(), 1u);
    EXPECT_TRUE(FormerRuns(state.path())[0].in_use);
    EXPECT_TRUE(absl::IsUnavailable(RemoveRun(path, true)));
    EXPECT_TRUE(fs::exists(path + "/agent.log"));
  }
  EXPECT_FALSE(FormerRuns(state.path())[0].in_use);
  const auto coordinator = runtime::LockFile::Acquire(path + "/coordinator/lock");
  EXPECT_TRUE(FormerRuns(state.path())[0].in_use);
}

TEST(FormerRunsTest, AResultStaysUnlessItIsAskedFor) {
  const TemporaryFolder state;
  const std::string path = state.path() + "/runs/20260101-000000-demo";
  Fill(path);
  EXPECT_EQ(FormerRuns(state.path())[0].bytes, 6u);
  EXPECT_EQ(FormerRuns(state.path())[0].result_bytes, 1u);

  EXPECT_TRUE(RemoveRun(path, false).ok());
  EXPECT_TRUE(fs::exists(path + "/result/model.pt"));
  EXPECT_EQ(FormerRuns(state.path())[0].bytes, 1u);

  EXPECT_TRUE(RemoveRun(path, true).ok());
  EXPECT_TRUE(FormerRuns(state.path()).empty());
}

TEST(FormerRunsTest, OfAFormerResultAllGoesWhenTheNewOneIsThereAndNothingElse) {
  const TemporaryFolder folder;
  fs::create_directories(folder.File("tensorboard"));
  std::ofstream(folder.File("tensorboard/events.out")) << "x";
  std::ofstream(folder.File("model.pt")) << "x";
  std::ofstream(folder.File("notes.txt")) << "mine";
  EXPECT_EQ(FormerResult(folder.path()), (std::vector<std::string>{"model.pt", "tensorboard"}));

  {
    const NewResult broken(folder.path());
    fs::create_directories(broken.folder());
    std::ofstream(broken.folder() + "/model.pt.part") << "half";
  }
  EXPECT_EQ(FormerResult(folder.path()), (std::vector<std::string>{"model.pt", "tensorboard"}));
  {
    const NewResult fresh(folder.path());
    fs::create_directories(fresh.folder() + "/snapshots");
    std::ofstream(fresh.folder() + "/snapshots/1.000.safetensors") << "new";
    std::ofstream(fresh.folder() + "/model.pt") << "new model";
    EXPECT_TRUE(fresh.Take().ok());
  }

  EXPECT_EQ(FormerResult(folder.path()), (std::vector<std::string>{"model.pt", "snapshots/"}));
  EXPECT_EQ(fs::file_size(folder.File("model.pt")), 9u);
  EXPECT_TRUE(fs::exists(folder.File("notes.txt")));
  EXPECT_EQ(runtime::NamesIn(folder.path()).size(), 3u);
}

TEST(RunFolderTest, TheAddressFileHasALineAnAddress) {
  const ClusterAddresses addresses =
      ParseAddressFile("grpc=127.0.0.1:5\nmetrics=127.0.0.1:6\nx=y\n");

  EXPECT_EQ(addresses.grpc, "127.0.0.1:5");
  EXPECT_EQ(addresses.metrics, "127.0.0.1:6");
  EXPECT_EQ(ParseAddressFile("").grpc, "");
}

}  // namespace
}  // namespace tactus::client
