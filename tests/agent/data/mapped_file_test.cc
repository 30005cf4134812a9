#include "agent/data/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "tests/agent/data/scratch.h"

namespace tactus::data {
namespace {

using ::testing::HasSubstr;

std::size_t OpenDescriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(descriptors), end(descriptors)));
}

// Sizes on both sides of the border between reading and mapping.
class MappedFileSizeTest : public ::testing::TestWithParam<std::size_t> {};

TEST_P(MappedFileSizeTest, HoldsTheBytesOfTheFile) {
  const ScratchFolder folder;
  Bytes content(GetParam());
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::uint8_t>(i * 7);

  const absl::StatusOr<MappedFile> file = MappedFile::Open(folder.Write("file", content));

  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(std::ranges::equal(file->bytes(), content));
}

TEST_P(MappedFileSizeTest, KeepsItsBytesWhenMoved) {
  const ScratchFolder folder;
  const Bytes content(GetParam(), 5);
  absl::StatusOr<MappedFile> file = MappedFile::Open(folder.Write("file", content));
  ASSERT_TRUE(file.ok()) << file.status();

  const MappedFile moved = *std::move(file);

  EXPECT_TRUE(std::ranges::equal(moved.bytes(), content));
}

INSTANTIATE_TEST_SUITE_P(Sizes, MappedFileSizeTest,
                         ::testing::Values(0, 1, MappedFile::kMappedBytesMin - 1,
                                           MappedFile::kMappedBytesMin,
                                           MappedFile::kMappedBytesMin + 1, 100'003));

TEST(MappedFileTest, HoldsNoDescriptorOnceItIsOpen) {
  const ScratchFolder folder;
  const std::string path = folder.Write("file", Bytes(MappedFile::kMappedBytesMin, 1));
  const std::size_t before = OpenDescriptors();

  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);

  ASSERT_TRUE(file.ok());
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(MappedFileTest, MissingFileIsNotFound) {
  const ScratchFolder folder;

  const absl::Status status = MappedFile::Open(folder.PathOf("none")).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "'" + folder.PathOf("none") + "' was not found");
}

TEST(MappedFileTest, FileBelowAFileIsNotFound) {
  const ScratchFolder folder;
  folder.Write("file", "x");

  EXPECT_EQ(MappedFile::Open(folder.PathOf("file/below")).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(MappedFileTest, UnreadableFileIsPermissionDenied) {
  const ScratchFolder folder;
  const std::string path = folder.Write("file", "x");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  const OrdinaryUser user;

  const absl::Status status = MappedFile::Open(path).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(status.message(), "'" + path + "' may not be read by this user");
}

TEST(MappedFileTest, FolderIsRefused) {
  const ScratchFolder folder;

  const absl::Status status = MappedFile::Open(folder.path()).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "'" + folder.path() + "' is a folder, not a file");
}

TEST(MappedFileTest, PipeIsRefusedWithoutWaitingForAWriter) {
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo(folder.PathOf("pipe").c_str(), 0600), 0);

  const absl::Status status = MappedFile::Open(folder.PathOf("pipe")).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a pipe or a device"));
}

TEST(MappedFileTest, LinkToItselfIsRefused) {
  const ScratchFolder folder;
  std::filesystem::create_symlink("loop", folder.PathOf("loop"));

  EXPECT_EQ(MappedFile::Open(folder.PathOf("loop")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(QuotedTest, KeepsAMessageOnOneLine) { EXPECT_EQ(Quoted("a\nb\x7f"), "'a\\x0ab\\x7f'"); }

TEST(QuotedTest, KeepsLettersOfOtherAlphabets) { EXPECT_EQ(Quoted("données"), "'données'"); }

}  // namespace
}  // namespace tactus::data
