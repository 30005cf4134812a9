#include "agent/box/worker_user.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/box/confinement.h"
#include "tests/agent/box/in_child.h"
#include "tests/support/temporary_folder.h"

namespace tactus::box {
namespace {

using testing::HasSubstr;

TEST(WorkerUserTest, RootAndUnknownNamesAreRefused) {
  for (const char* text : {"root", "0"}) {
    EXPECT_THAT(std::string(FindWorkerUser(text).status().message()), HasSubstr("is root"));
  }
  for (const char* text : {"nobody-has-this-name", "-1", "4294967295", "12x"}) {
    EXPECT_THAT(std::string(FindWorkerUser(text).status().message()), HasSubstr("no user"));
  }
}

class OfRootTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }
};

TEST_F(OfRootTest, ANumberNeedsNoName) {
  const absl::StatusOr<WorkerUser> user = FindWorkerUser("31337");

  ASSERT_TRUE(user.ok()) << user.status();
  EXPECT_EQ(user->uid, 31337u);
  EXPECT_EQ(user->gid, 31337u);
}

TEST_F(OfRootTest, AProcessBecomesItForGoodAndWithoutPrivileges) {
  Confinement confinement;
  confinement.user = WorkerUser{.uid = 31337, .gid = 31338, .groups = {31339}};

  const int result = InChild([&] {
    if (Enter(confinement) != Step::kNone) return 1;
    if (::getuid() != 31337 || ::geteuid() != 31337 || ::getegid() != 31338) return 2;
    gid_t groups[4] = {};
    if (::getgroups(4, groups) != 1 || groups[0] != 31339) return 3;
    if (::setuid(0) == 0 || ::seteuid(0) == 0 || ::setgroups(0, nullptr) == 0) return 4;
    return 0;
  });

  EXPECT_EQ(result, 0);
}

TEST_F(OfRootTest, RootWithoutAUserOfItsWorkersHasNoPrivilegesEither) {
  TemporaryFolder folder;
  const int result = InChild([&] {
    if (Enter({}) != Step::kNone) return 1;
    if (::setuid(31337) == 0) return 2;
    if (::chroot(folder.path().c_str()) == 0) return 3;
    // A program that is run does not get them back.
    return ::execl("/bin/sh", "sh", "-c", "grep -q 'CapEff:.*0000000000000000' /proc/self/status",
                   nullptr);
  });

  EXPECT_EQ(result, 0);
}

TEST_F(OfRootTest, AFolderOnTheWayThatIsClosedIsNamed) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkdir(folder.File("state").c_str(), 0711), 0);
  const WorkerUser user{.uid = 31337, .gid = 31337};

  EXPECT_THAT(std::string(CheckReachable(folder.File("state"), user).message()),
              HasSubstr(folder.path() + " is closed to the workers' user 31337"));
  ASSERT_EQ(::chmod(folder.path().c_str(), 0711), 0);
  EXPECT_TRUE(CheckReachable(folder.File("state"), user).ok());
}

}  // namespace
}  // namespace tactus::box
