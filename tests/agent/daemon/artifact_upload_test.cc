// An upload that nobody needs any more.

#include "agent/daemon/artifact_upload.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "agent/daemon/coordinator_link.h"
#include "tests/agent/daemon/await.h"
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

}  // namespace
}  // namespace tactus::agent
