// What Landlock's rules hold of files: of the carved tree, and of the box as a whole.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "agent/box/landlock.h"
#include "agent/box/tree.h"
#include "tests/agent/box/in_child.h"
#include "tests/support/temporary_folder.h"

namespace tactus::box {
namespace {

class FilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (LandlockAbi() < 1) GTEST_SKIP() << "this kernel has no Landlock";
    std::filesystem::create_directories(folder_.File("state/jobs"));
    std::filesystem::create_directories(folder_.File("data"));
    std::filesystem::create_directories(folder_.File("own"));
    for (const char* name : {"state/key", "state/jobs/other", "data/text", "beside"}) {
      std::ofstream(folder_.File(name)) << name;
    }
    std::filesystem::create_symlink(folder_.File("state/key"), folder_.File("own/link"));
  }

  // errno of the call, under rules that hide the state folder and let "own" be written.
  int ErrorOf(const std::function<int()>& call) {
    absl::StatusOr<LandlockRules> rules = LandlockRules::Make(LandlockAbi(), {});
    EXPECT_TRUE(rules.ok()) << rules.status();
    const auto passed = AllowAllBut(*rules, {folder_.File("state")});
    EXPECT_TRUE(passed.ok()) << passed.status();
    EXPECT_TRUE(rules->Allow(folder_.File("own"), Access::kReadWrite).ok());
    return InChild([&] {
      if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 125;
      if (RestrictSelf(rules->descriptor()) != 0) return 125;
      return call() < 0 ? errno : 0;
    });
  }
  int OpenError(const std::string& name, int flags) {
    return ErrorOf([&] { return ::open(folder_.File(name).c_str(), flags, 0600); });
  }

  TemporaryFolder folder_;
};

TEST_F(FilesTest, TheHiddenIsNotReadAndWhatIsBesideItIs) {
  EXPECT_EQ(OpenError("state/key", O_RDONLY), EACCES);
  EXPECT_EQ(OpenError("state/jobs/other", O_RDONLY), EACCES);
  EXPECT_EQ(OpenError("state", O_RDONLY | O_DIRECTORY), EACCES);
  EXPECT_EQ(OpenError("own/link", O_RDONLY), EACCES);
  EXPECT_EQ(OpenError("data/text", O_RDONLY), 0);
  EXPECT_EQ(OpenError("beside", O_RDONLY), 0);
}

TEST_F(FilesTest, NamesOnTheWayToTheHiddenAreNotListed) {
  EXPECT_EQ(ErrorOf([&] { return ::open(folder_.File("").c_str(), O_RDONLY | O_DIRECTORY); }),
            EACCES);
  EXPECT_EQ(OpenError("data", O_RDONLY | O_DIRECTORY), 0);
}

TEST_F(FilesTest, OnlyItsOwnIsWritten) {
  EXPECT_EQ(OpenError("data/text", O_WRONLY), EACCES);
  EXPECT_EQ(OpenError("data/new", O_WRONLY | O_CREAT), EACCES);
  EXPECT_EQ(OpenError("own/new", O_WRONLY | O_CREAT), 0);
  EXPECT_EQ(ErrorOf([&] { return ::unlink(folder_.File("beside").c_str()); }), EACCES);
  EXPECT_EQ(ErrorOf([&] {
              return ::rename(folder_.File("data/text").c_str(), folder_.File("own/text").c_str());
            }) == 0,
            false);
  EXPECT_EQ(ErrorOf([&] {
              return ::link(folder_.File("state/key").c_str(), folder_.File("own/key").c_str());
            }) == 0,
            false);
}

TEST_F(FilesTest, NothingIsTruncatedByAnAccessModeThatIsNone) {
  if (LandlockAbi() < 3) GTEST_SKIP() << "this kernel's Landlock does not know of truncation";
  EXPECT_NE(OpenError("data/text", O_ACCMODE | O_TRUNC), 0);
  EXPECT_NE(OpenError("state/key", O_ACCMODE | O_TRUNC), 0);
  EXPECT_NE(ErrorOf([&] { return ::truncate(folder_.File("state/key").c_str(), 0); }), 0);

  EXPECT_EQ(std::filesystem::file_size(folder_.File("data/text")), 9u);
  EXPECT_EQ(std::filesystem::file_size(folder_.File("state/key")), 9u);
}

TEST_F(FilesTest, NoDeviceIsMade) {
  EXPECT_NE(ErrorOf([&] {
              return ::mknod(folder_.File("own/disk").c_str(), S_IFBLK | 0600, makedev(254, 0));
            }),
            0);
  EXPECT_EQ(ErrorOf([&] { return ::mkfifo(folder_.File("own/pipe").c_str(), 0600); }), 0);
}

}  // namespace
}  // namespace tactus::box
