#include "agent/daemon/worker_box.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "agent/box/landlock.h"
#include "agent/daemon/box_flags.h"
#include "tests/agent/box/in_child.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

TEST(WorkerBoxTest, APrivatePlaceIsHiddenWhereItIsWhateverItWasCalled) {
  TemporaryFolder folder;
  const std::string real = std::filesystem::canonical(folder.path()).string();
  for (const char* name : {"state/jobs", "state/blobs", "state/run", "keys", "linked"}) {
    std::filesystem::create_directories(folder.File(name));
  }
  std::filesystem::create_directory_symlink(folder.File("linked"), folder.File("link"));
  const auto places =
      ResolveBox({.private_places = {std::filesystem::relative(folder.File("keys")).string(),
                                     folder.File("link"), folder.File("none")}},
                 {});
  ASSERT_TRUE(places.ok()) << places.status();
  WorkerBox::Options options{.box = *places,
                             .state_folder = real + "/state",
                             .socket_folder = folder.File("state/run"),
                             .worker_binary = "/bin/true"};

  const auto box = WorkerBox::Open(options);

  ASSERT_TRUE(box.ok()) << box.status();
  EXPECT_THAT((*box)->PlaceOf("job").private_places,
              testing::IsSupersetOf({real + "/keys", real + "/linked", real + "/state"}));
}

TEST(WorkerBoxTest, AProgramThatTheWorkersUserMayNotRunIsToldBeforeThereAreWorkers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has workers of another user";
  const TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0711));
  for (const char* name : {"state/jobs", "state/blobs", "state/run", "closed"}) {
    std::filesystem::create_directories(folder.File(name));
  }
  std::filesystem::copy("/bin/true", folder.File("closed/worker"));
  std::filesystem::permissions(folder.File("closed"), std::filesystem::perms(0700));
  WorkerBox::Options options{.state_folder = folder.File("state"),
                             .socket_folder = folder.File("state/run"),
                             .worker_binary = folder.File("closed/worker")};
  options.box.user = box::WorkerUser{.uid = 31337, .gid = 31337};

  const absl::Status status = WorkerBox::Open(options).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("worker-binary: "),
                             testing::HasSubstr(folder.File("closed") + " is closed to")));
  std::filesystem::permissions(folder.File("closed"), std::filesystem::perms(0711));
  EXPECT_TRUE(WorkerBox::Open(options).ok()) << WorkerBox::Open(options).status();
}

// Keys may come after the agent: somebody logs in, a secret is mounted.
TEST(WorkerBoxTest, APrivatePlaceThatIsMadeLaterIsNotReadByAWorker) {
  if (box::LandlockAbi() < 1) GTEST_SKIP() << "this kernel has no Landlock";
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.File("state"));
  std::filesystem::create_directories(folder.File("data"));
  std::filesystem::create_directories(folder.File("home"));
  absl::StatusOr<box::BoxOptions> options =
      ResolveBox({.private_places = {folder.File("secret")}}, {.home = folder.File("home")});
  ASSERT_TRUE(options.ok()) << options.status();
  options->state_folder = folder.File("state");
  const auto box = box::Box::Open(*options);
  ASSERT_TRUE(box.ok()) << box.status();

  std::filesystem::create_directories(folder.File("secret"));
  std::filesystem::create_directories(folder.File("home/.aws"));
  for (const char* name : {"secret/key", "home/.aws/key", "data/text"}) {
    std::ofstream(folder.File(name)) << name;
  }
  const auto held = (*box)->Confine({.name = "1"});
  ASSERT_TRUE(held.ok()) << held.status();
  const auto error = [&](const std::string& name) {
    return box::InChild([&] {
      if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 125;
      if (box::RestrictSelf(held->confinement.rules->descriptor()) != 0) return 125;
      return ::open(folder.File(name).c_str(), O_RDONLY) < 0 ? errno : 0;
    });
  };
  EXPECT_EQ(error("data/text"), 0);
  EXPECT_EQ(error("secret/key"), EACCES);
  EXPECT_EQ(error("home/.aws/key"), EACCES);
}

}  // namespace
}  // namespace tactus::agent
