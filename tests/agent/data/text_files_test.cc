#include "agent/data/text_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/agent/data/scratch.h"

namespace tactus::data {
namespace {

using ::testing::ElementsAre;

TEST(TextFilesTest, FolderIsReadBelowInOrderOfPathsWithoutHiddenNames) {
  const ScratchFolder folder;
  folder.Write("b/2", "");
  folder.Write("b/1", "");
  folder.Write("a", "");
  folder.Write("c", "");
  folder.Write(".hidden", "");
  folder.Write(".git/config", "");

  const auto files = ListTextFiles(folder.path());

  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(folder.PathOf("a"), folder.PathOf("b/1"), folder.PathOf("b/2"),
                                  folder.PathOf("c")));
}

TEST(TextFilesTest, FolderWithAHiddenNameOfItsOwnIsRead) {
  const ScratchFolder folder;
  folder.Write(".corpus/a", "");

  const auto files = ListTextFiles(folder.PathOf(".corpus/"));

  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(folder.PathOf(".corpus/a")));
}

TEST(TextFilesTest, LinksThatFormACycleEnd) {
  const ScratchFolder folder;
  folder.Write("below/file", "");
  std::filesystem::create_directory_symlink(folder.path(), folder.PathOf("below/up"));
  std::filesystem::create_directory_symlink(".", folder.PathOf("here"));

  const auto files = ListTextFiles(folder.path());

  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(folder.PathOf("below/file")));
}

TEST(TextFilesTest, LinksAreFollowedAndDanglingOnesSkipped) {
  const ScratchFolder elsewhere;
  const ScratchFolder folder;
  std::filesystem::create_symlink(elsewhere.Write("x", ""), folder.PathOf("file"));
  std::filesystem::create_directory_symlink(elsewhere.path(), folder.PathOf("folder"));
  std::filesystem::create_symlink("nowhere", folder.PathOf("dangling"));

  const auto files = ListTextFiles(folder.path());

  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(folder.PathOf("file"), folder.PathOf("folder/x")));
}

TEST(TextFilesTest, PatternGivesMatchingFilesSortedAndOnce) {
  const ScratchFolder folder;
  folder.Write("b.txt", "");
  folder.Write("a.txt", "");
  folder.Write("a.md", "");
  folder.Write("c.bin", "");
  folder.MakeFolder("folder.txt");

  const auto files = ListTextFiles(folder.PathOf("{*.txt,a.*}"));

  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files,
              ElementsAre(folder.PathOf("a.md"), folder.PathOf("a.txt"), folder.PathOf("b.txt")));
}

TEST(TextFilesTest, FileWhoseNameLooksLikeAPatternIsThatFile) {
  const ScratchFolder folder;
  const std::string path = folder.Write("a[1].txt", "");

  const auto files = ListTextFiles(path);

  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(path));
}

TEST(TextFilesTest, PatternWithoutMatchIsNotFound) {
  const ScratchFolder folder;

  const absl::Status status = ListTextFiles(folder.PathOf("*.txt")).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "no file matches '" + folder.PathOf("*.txt") + "'");
}

TEST(TextFilesTest, FolderWithoutFilesIsRefused) {
  const ScratchFolder folder;
  folder.Write(".hidden", "x");

  const absl::Status status = ListTextFiles(folder.path()).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "'" + folder.path() + "' is a folder without files (hidden ones are skipped)");
}

TEST(TextFilesTest, UnreadableFolderBelowIsPermissionDenied) {
  const ScratchFolder folder;
  folder.Write("a", "x");
  const std::string closed = folder.MakeFolder("closed");
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  absl::Status status;
  {
    const OrdinaryUser user;
    status = ListTextFiles(folder.path()).status();
  }
  std::filesystem::permissions(closed, std::filesystem::perms::owner_all);

  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(), "'" + closed + "' may not be read by this user");
}

}  // namespace
}  // namespace tactus::data
