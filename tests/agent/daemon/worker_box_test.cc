#include "agent/daemon/worker_box.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "agent/daemon/box_flags.h"
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

}  // namespace
}  // namespace tactus::agent
