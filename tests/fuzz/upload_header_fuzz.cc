// The first message of an upload, which may carry data too: what it names is checked, and a blob is
// kept only whole and under its own hash.

#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "coordinator/files/artifacts.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/files/folder_blobs.h"
#include "coordinator/shell/job_conversion.h"
#include "runtime/logging.h"
#include "tactus/agent/v1/session.pb.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/scratch_folder.h"

namespace tactus::fuzz {
namespace {

void CheckNames(const agent::v1::UploadArtifactRequest& first) {
  const absl::StatusOr<std::string> id = service::ParseJobName("job_id", first.job_id());
  if (id.ok()) {
    Require(!id->empty() && id->find('/') == std::string::npos && *id != "." && *id != "..",
            "a job's id is one name");
  }
  if (!service::CheckArtifactPath("path", first.path()).ok()) return;
  const std::filesystem::path path = std::filesystem::path(first.path()).lexically_normal();
  Require(path.is_relative() && !path.empty() && *path.begin() != "..",
          "a path stays within the result");
  Require(path.string() == first.path(), "a path has one form");
}

void Upload(service::BlobStore& blobs, const agent::v1::UploadArtifactRequest& first) {
  absl::StatusOr<service::BlobWriter> writer = blobs.Write(
      {.sha256 = first.sha256(), .size_bytes = first.size_bytes(), .offset = first.offset()});
  if (!writer.ok()) return;
  if (!writer->complete()) {
    absl::StatusOr<bool> done = writer->CatchUp();
    while (done.ok() && !*done) done = writer->CatchUp();
    if (!done.ok() || !writer->Append(first.data()).ok()) return;
  }
  const absl::StatusOr<std::string> hash = writer->Commit();
  if (!hash.ok()) return;
  Require(first.sha256().empty() || *hash == first.sha256(), "a blob has the hash that was said");
  const absl::StatusOr<service::BlobStore::State> state = blobs.Find(*hash);
  Require(state.ok() && state->complete, "a blob that was kept is there");
  Require(state->received_bytes == first.size_bytes(), "a blob has the size that was said");
}

void Run(const agent::v1::UploadArtifactRequest& first) {
  const std::string folder = ScratchFolder() + "/blobs";
  CheckNames(first);
  {
    service::FolderBlobs blobs(folder);
    Upload(blobs, first);
    Upload(blobs, first);  // and again, as after a break
  }
  for (const auto& entry : std::filesystem::directory_iterator(ScratchFolder())) {
    Require(entry.path().filename() == "blobs", "nothing is written outside the blobs' folder");
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tactus::agent::v1::UploadArtifactRequest first;
  if (!first.ParseFromArray(data, static_cast<int>(size))) return -1;
  tactus::fuzz::Run(first);
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  google::protobuf::SetLogHandler(nullptr);
  return tactus::runtime::StartLogging({.level = "off"}).ok() ? 0 : 1;
}
