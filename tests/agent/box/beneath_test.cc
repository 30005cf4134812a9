#include "agent/box/beneath.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace tactus::box {
namespace {

using testing::HasSubstr;

class BeneathTest : public testing::Test {
 protected:
  BeneathTest() {
    std::filesystem::create_directories(folder_.File("root/deep"));
    std::ofstream(folder_.File("root/deep/file")) << "text";
    std::ofstream(folder_.File("secret")) << "secret";
    std::filesystem::create_symlink("../secret", folder_.File("root/out"));
    std::filesystem::create_symlink(folder_.File("secret"), folder_.File("root/far"));
    std::filesystem::create_directory_symlink("..", folder_.File("root/up"));
    std::filesystem::create_symlink("deep/file", folder_.File("root/within"));
  }
  absl::Status Check(const std::string& name) const {
    return CheckBelowRoots(folder_.File(name), {folder_.File("root")});
  }

  TemporaryFolder folder_;
};

TEST_F(BeneathTest, FilesOfAFolderAreOpenedAndLinksAreNot) {
  const std::string root = folder_.File("root");

  EXPECT_TRUE(OpenFileBeneath(root, "deep/file").ok());
  for (const char* name : {"out", "far", "up/secret", "within", "../secret", "/etc/passwd"}) {
    EXPECT_EQ(OpenFileBeneath(root, name).status().code(), absl::StatusCode::kPermissionDenied)
        << name;
  }
  EXPECT_EQ(OpenFileBeneath(root, "none").status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(::mkfifo(folder_.File("root/pipe").c_str(), 0600), 0);
  EXPECT_THAT(std::string(OpenFileBeneath(root, "pipe").status().message()),
              HasSubstr("no regular file"));
  EXPECT_FALSE(OpenFileBeneath(root, "deep").ok());
}

TEST_F(BeneathTest, AFileOfAnotherUserIsNoneOfTheFolders) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const std::string file = folder_.File("root/deep/file");
  ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);

  EXPECT_THAT(std::string(OpenFileBeneath(folder_.File("root"), "deep/file").status().message()),
              HasSubstr("belongs to another user"));
}

TEST_F(BeneathTest, DataIsBelowARootWhateverLinksSay) {
  EXPECT_TRUE(Check("root/deep/file").ok());
  EXPECT_TRUE(Check("root").ok());
  EXPECT_TRUE(Check("root/within").ok());
  EXPECT_TRUE(Check("root/deep/*.txt").ok());
  EXPECT_TRUE(Check("root/*").ok());
  for (const char* name : {"root/out", "root/far", "root/up/secret", "secret", "root/../secret",
                           "root/up/*", "rootless", "root/../*"}) {
    EXPECT_EQ(Check(name).code(), absl::StatusCode::kPermissionDenied) << name;
  }
  EXPECT_EQ(Check("root/none").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(CheckBelowRoots("relative", {folder_.File("root")}).code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(BeneathTest, AFolderBeginsWithAWholeName) {
  EXPECT_TRUE(IsBeneath("/a/b", "/a"));
  EXPECT_TRUE(IsBeneath("/a", "/a"));
  EXPECT_TRUE(IsBeneath("/a", "/"));
  EXPECT_FALSE(IsBeneath("/ab", "/a"));
}

TEST_F(BeneathTest, WhatIsRemovedIsBelowTheFolder) {
  const std::string root = folder_.File("root");

  for (const char* name : {"up/secret", "../secret", "out", "", "..", "deep/.."}) {
    RemoveBeneath(root, name);
  }
  EXPECT_TRUE(std::filesystem::exists(folder_.File("secret")));
  EXPECT_FALSE(std::filesystem::is_symlink(folder_.File("root/out"))) << "the link itself goes";
  EXPECT_TRUE(std::filesystem::exists(folder_.File("root/deep/file")));

  RemoveBeneath(root, "deep/file");
  EXPECT_FALSE(std::filesystem::exists(folder_.File("root/deep/file")));
}

}  // namespace
}  // namespace tactus::box
