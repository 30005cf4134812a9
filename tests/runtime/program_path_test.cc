#include "runtime/program_path.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tactus::runtime {
namespace {

class ProgramPathTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tactus-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    for (const char* folder : {"/one", "/two", "/two/train"}) {
      std::filesystem::create_directory(folder_ + folder);
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Make(const std::string& name, bool may_run = true) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n";
    if (may_run) std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  std::string path() const { return folder_ + "/one:" + folder_ + "/two"; }

  std::string folder_;
};

TEST_F(ProgramPathTest, AWordIsLookedForInTheFoldersInTheirOrder) {
  const std::string second = Make("two/sweep");
  EXPECT_EQ(FindProgram("sweep", {"/", path()}), second);

  const std::string first = Make("one/sweep");
  EXPECT_EQ(FindProgram("sweep", {"/", path()}), first);
}

TEST_F(ProgramPathTest, WhatHasASlashIsInTheFolder) {
  const std::string there = Make("two/sweep");

  EXPECT_EQ(FindProgram("./sweep", {folder_ + "/two", ""}), there);
  EXPECT_EQ(FindProgram("two/sweep", {folder_, path()}), there);
  EXPECT_EQ(FindProgram(there, {"/", ""}), there);
  EXPECT_EQ(FindProgram("./sweep", {folder_, path()}), std::nullopt);
}

TEST_F(ProgramPathTest, FoldersAndWhatMayNotBeRunAreNoPrograms) {
  Make("one/data", false);

  EXPECT_EQ(FindProgram("data", {"/", path()}), std::nullopt);
  EXPECT_EQ(FindProgram("train", {"/", path()}), std::nullopt);
  EXPECT_EQ(FindProgram("absent", {"/", path()}), std::nullopt);
}

TEST_F(ProgramPathTest, AnEmptyFolderOfThePathIsTheOneThatOneIsIn) {
  const std::string here = Make("one/sweep");

  EXPECT_EQ(FindProgram("sweep", {folder_ + "/one", ":/bin"}), here);
}

}  // namespace
}  // namespace tactus::runtime
