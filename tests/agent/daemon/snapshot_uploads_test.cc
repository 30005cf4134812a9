// Snapshots that wait to be brought up.

#include "agent/daemon/snapshot_uploads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "agent/daemon/coordinator_link.h"
#include "agent/daemon/job_folders.h"
#include "protocol/worker_messages.h"
#include "tests/agent/daemon/await.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Of files that are not there, which needs no coordinator.
class SnapshotUploadsTest : public testing::Test {
 protected:
  SnapshotUploadsTest() {
    control_.RunAndWait([this] { uploader_.Pause(true); });
  }
  ~SnapshotUploadsTest() override { control_.Stop(); }

  // Lets them go, and waits for the end of the last one. Returns how many uploads there were.
  std::size_t BringUp() {
    control_.RunAndWait([this] { uploader_.Pause(false); });
    EXPECT_TRUE(done_.Await().has_value());
    std::size_t ended = 0;
    control_.RunAndWait([&] { ended = ended_; });
    return ended;
  }

  TemporaryFolder folder_;
  runtime::ControlThread control_;
  ArtifactUploader uploader_{control_, MakeChannel("127.0.0.1:1"), {}};
  std::size_t ended_ = 0;
  Once<bool> done_;
  SnapshotUploads snapshots_{folder_.path(), uploader_, [this] {
                               ++ended_;
                               if (uploader_.idle()) done_.Set(true);
                             }};
};

TEST_F(SnapshotUploadsTest, ThoseAboveTheBoundAreLeftAndNoneBecauseAnotherIsNotThere) {
  constexpr std::size_t kTaken = protocol::kSnapshotsMax + 1;  // the first is on its way

  control_.RunAndWait([this] {
    for (std::size_t i = 0; i < kTaken + 5; ++i) {
      snapshots_.Add(WorkerId{5}, "long-1", "snapshots/" + std::to_string(i));
    }
  });

  EXPECT_EQ(BringUp(), kTaken);
}

TEST_F(SnapshotUploadsTest, AFolderWhoseSnapshotsWaitIsNeeded) {
  const std::int64_t long_after = std::int64_t{1} << 62;
  std::filesystem::create_directory(folder_.File("long-1"));
  JobFolders folders({.folder = folder_.path()});
  control_.RunAndWait([&] {
    snapshots_.Add(WorkerId{5}, "long-1", "snapshots/1");
    EXPECT_THAT(snapshots_.jobs(), ElementsAre("long-1"));
    EXPECT_EQ(folders.Sweep(snapshots_.jobs(), long_after), 0u);
  });

  BringUp();

  control_.RunAndWait([&] {
    EXPECT_THAT(snapshots_.jobs(), IsEmpty());
    EXPECT_EQ(folders.Sweep(snapshots_.jobs(), long_after), 1u);
  });
}

}  // namespace
}  // namespace tactus::agent
