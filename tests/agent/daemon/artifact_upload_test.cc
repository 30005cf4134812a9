// The order of uploads, and one that nobody needs any more.

#include "agent/daemon/artifact_upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "agent/daemon/coordinator_link.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

TEST(ArtifactUploaderTest, WhatIsGivenUpIsNotHashedToItsEnd) {
  const TemporaryFolder folder;
  std::ofstream(folder.File("long")) << "begins";
  // An hour of hashing, and no room on the disk.
  std::filesystem::resize_file(folder.File("long"), std::uintmax_t{4} << 40);
  runtime::ControlThread control;
  ArtifactUploader uploader(control, MakeChannel("127.0.0.1:1"), {});
  Once<absl::Status> done;

  control.RunAndWait([&] {
    uploader.Upload(
        {.job_id = "job-1", .worker = WorkerId{5}, .folder = folder.File("."), .path = "long"},
        [&done](const absl::StatusOr<UploadedFile>& file) { done.Set(file.status()); });
  });
  control.RunAndWait([&] { uploader.GiveUp(WorkerId{5}, "long"); });

  const auto status = done.Await();
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(absl::IsCancelled(*status)) << *status;
  control.Stop();
}

// The second one is on its way when the others come.
TEST(ArtifactUploaderTest, WhatGivesWayComesAfterAllOthersInItsOrder) {
  const TemporaryFolder folder;
  FakeCoordinator coordinator({.held_upload = "job-1/b"});
  runtime::ControlThread control;
  ArtifactUploader uploader(control, MakeChannel(coordinator.address()), {});
  const auto upload = [&](const std::string& path, bool gives_way) {
    std::ofstream(folder.File(path)) << "content of " << path;
    uploader.Upload({.job_id = "job-1",
                     .worker = WorkerId{5},
                     .folder = folder.path(),
                     .path = path,
                     .gives_way = gives_way},
                    [](const absl::StatusOr<UploadedFile>& file) { EXPECT_TRUE(file.ok()); });
  };
  control.RunAndWait([&] {
    for (const char* path : {"a", "b", "c"}) upload(path, true);
  });
  ASSERT_TRUE(coordinator.AwaitHeldUpload());

  control.RunAndWait([&] {
    for (const char* path : {"d", "e"}) upload(path, false);
  });

  ASSERT_TRUE(coordinator.AwaitUpload("job-1/e"));
  coordinator.Become({});
  ASSERT_TRUE(coordinator.AwaitUpload("job-1/c"));
  EXPECT_THAT(coordinator.upload_order(),
              testing::ElementsAre("job-1/a", "job-1/d", "job-1/e", "job-1/b", "job-1/c"));
  control.Stop();
}

TEST(ArtifactUploaderTest, WhatWaitsForTheCoordinatorGivesWayToo) {
  const TemporaryFolder folder;
  std::ofstream(folder.File("file")) << "content";
  FakeCoordinator coordinator({});
  runtime::ControlThread control;
  ArtifactUploader uploader(control, MakeChannel(coordinator.address()), {});
  std::vector<std::string> ended;
  Once<bool> done;
  const auto upload = [&](const std::string& job, bool gives_way) {
    uploader.Upload({.job_id = job,
                     .worker = WorkerId{5},
                     .folder = folder.path(),
                     .path = "file",
                     .gives_way = gives_way},
                    [&, job](const absl::StatusOr<UploadedFile>&) {
                      ended.push_back(job);
                      if (ended.size() == 3) done.Set(true);
                    });
  };

  control.RunAndWait([&] {
    uploader.Pause(true);
    upload("job-1", true);
    upload("job-2", false);
    upload("job-3", false);
    uploader.Pause(false);
  });

  EXPECT_TRUE(done.Await().has_value());
  control.RunAndWait([&] { EXPECT_THAT(ended, testing::ElementsAre("job-2", "job-3", "job-1")); });
  control.Stop();
}

}  // namespace
}  // namespace tactus::agent
