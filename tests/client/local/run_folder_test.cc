#include "client/local/run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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
  EXPECT_NE(*first, *second);
  EXPECT_TRUE(fs::is_directory(*first));
}

TEST(RunFolderTest, NamesCannotLeaveTheFolder) {
  const TemporaryFolder state;

  const auto folder = MakeRunFolder(state.path(), "../../" + std::string(200, 'x'));

  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(fs::path(*folder).parent_path(), state.path() + "/runs");
  EXPECT_LT(fs::path(*folder).filename().string().size(), 48u);
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

TEST(RunFolderTest, TheAddressFileHasALineAnAddress) {
  const ClusterAddresses addresses =
      ParseAddressFile("grpc=127.0.0.1:5\nmetrics=127.0.0.1:6\nx=y\n");

  EXPECT_EQ(addresses.grpc, "127.0.0.1:5");
  EXPECT_EQ(addresses.metrics, "127.0.0.1:6");
  EXPECT_EQ(ParseAddressFile("").grpc, "");
}

}  // namespace
}  // namespace tactus::client
