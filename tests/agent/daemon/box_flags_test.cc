#include "agent/daemon/box_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::StartsWith;

TEST(BoxFlagsTest, BytesAreReadWithTheirUnits) {
  EXPECT_EQ(*ParseBytes("16G"), std::uint64_t{16} << 30);
  EXPECT_EQ(*ParseBytes("512M"), 512u << 20);
  EXPECT_EQ(*ParseBytes("1024"), 1024u);
  for (const char* text : {"", "G", "1.5G", "16GB", "-1", "99999999999999999999", "99999999999T"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(BoxFlagsTest, ItIsOnUnlessSaidOtherwise) {
  EXPECT_TRUE(ResolveBox({}, {})->on);
  EXPECT_FALSE(ResolveBox({.sandbox = "off"}, {})->on);
}

TEST(BoxFlagsTest, FoldersAreTakenWithoutLinksAndKeysArePrivateBeforeTheyAreThere) {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder.File("home/.ssh"));
  std::filesystem::create_directories(folder.File("data"));
  std::filesystem::create_directory_symlink("data", folder.File("link"));
  const absl::StatusOr<box::BoxOptions> options =
      ResolveBox({.data_roots = {folder.File("link")}, .private_places = {folder.File("none")}},
                 {.home = folder.File("home")});
  ASSERT_TRUE(options.ok()) << options.status();

  EXPECT_THAT(options->data_roots, ElementsAre(folder.File("data")));
  EXPECT_THAT(options->private_places, Contains(folder.File("home/.ssh")));
  EXPECT_THAT(options->private_places, Contains(folder.File("home/.aws")));
  EXPECT_THAT(options->private_places, Contains(folder.File("none")));
}

TEST(BoxFlagsTest, WrongValuesAreSaidWithTheirFlag) {
  struct Case {
    std::string flag;
    std::function<void(BoxFlags&)> change;
  };
  const Case cases[] = {
      {"sandbox", [](BoxFlags& flags) { flags.sandbox = "maybe"; }},
      {"worker-user", [](BoxFlags& flags) { flags.worker_user = "root"; }},
      {"worker-user", [](BoxFlags& flags) { flags.worker_user = "nobody-has-this-name"; }},
      {"data-roots", [](BoxFlags& flags) { flags.data_roots = {"/nowhere"}; }},
      {"writable", [](BoxFlags& flags) { flags.writable = {"/dev/null"}; }},
      {"worker-memory", [](BoxFlags& flags) { flags.worker_memory = "1M"; }},
      {"worker-memory", [](BoxFlags& flags) { flags.worker_memory = "9T"; }},
      {"worker-memory", [](BoxFlags& flags) { flags.worker_memory = "much"; }},
      {"worker-tasks", [](BoxFlags& flags) { flags.worker_tasks = 3; }},
      {"require-sandbox",
       [](BoxFlags& flags) {
         flags.sandbox = "off";
         flags.require_sandbox = true;
       }},
      {"data-roots",
       [](BoxFlags& flags) {
         flags.sandbox = "off";
         flags.data_roots = {"/tmp"};
       }},
  };
  for (const Case& one : cases) {
    BoxFlags flags;
    one.change(flags);
    const absl::Status status =
        ResolveBox(flags, {.memory_bytes = std::uint64_t{1} << 36}).status();
    EXPECT_THAT(std::string(status.message()), StartsWith(one.flag + ": ")) << status;
  }
}

}  // namespace
}  // namespace tactus::agent
