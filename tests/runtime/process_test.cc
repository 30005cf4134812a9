#include "runtime/process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/logging.h"

namespace tactus::runtime {
namespace {

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tactus-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

std::string Read(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

TEST_F(ProcessTest, AWholeFileReplacesTheFormerOneAndLeavesNothingBeside) {
  ASSERT_TRUE(WriteFileWhole(folder_ + "/a", "one").ok());
  ASSERT_TRUE(WriteFileWhole(folder_ + "/a", "two").ok());

  EXPECT_EQ(Read(folder_ + "/a"), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(ProcessTest, AFileWithoutItsFolderIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(WriteFileWhole(folder_ + "/no/a", "x")));
}

TEST_F(ProcessTest, AWritableFolderIsMadeWithItsParents) {
  EXPECT_TRUE(MakeWritableFolder(folder_ + "/a/b").ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/a/b"));
}

TEST_F(ProcessTest, AFileInTheFoldersPlaceIsRefused) {
  std::ofstream(folder_ + "/a") << "x";

  const absl::Status status = MakeWritableFolder(folder_ + "/a");

  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find(folder_ + "/a"), std::string::npos);
}

TEST_F(ProcessTest, ALockIsHeldOnceAndFreedAtItsEnd) {
  {
    const auto held = LockFile::Acquire(folder_ + "/lock");
    ASSERT_TRUE(held.ok()) << held.status();

    const auto second = LockFile::Acquire(folder_ + "/lock");

    EXPECT_TRUE(absl::IsUnavailable(second.status()));
    EXPECT_NE(std::string(second.status().message()).find(std::to_string(::getpid())),
              std::string::npos);
  }
  EXPECT_TRUE(LockFile::Acquire(folder_ + "/lock").ok());
}

TEST(LoggingTest, QuotedValuesStayOnOneLine) {
  EXPECT_EQ(Quoted("a \"b\"\\\nc\t"), R"("a \"b\"\\\nc ")");
  EXPECT_EQ(Quoted(""), "\"\"");
}

TEST(LoggingTest, UnknownLevelsAreRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(StartLogging({.level = "loud"})));
}

TEST_F(ProcessTest, TheFileLimitIsRaisedToWhatIsAllowed) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit lowered{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lowered), 0);

  RaiseFileLimit();

  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace tactus::runtime
