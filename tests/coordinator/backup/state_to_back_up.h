// A small state folder: a store whose jobs name blobs.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/files/blob_store.h"
#include "coordinator/files/state_folder.h"
#include "coordinator/store/store.h"
#include "runtime/sha256.h"
#include "tests/support/temporary_folder.h"

namespace tactus::backup {

inline std::string HashOf(const std::string& content) {
  runtime::Sha256 hash;
  hash.Update(content);
  return hash.Finish();
}

inline void WriteFile(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> NamesSorted(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class StateToBackUp {
 public:
  // A paused job with a checkpoint, which is there.
  void AddJob(std::uint64_t id, const std::string& checkpoint) {
    WriteFile(BlobOf(checkpoint), checkpoint);
    job::JobRecord record;
    record.id = JobId{id};
    record.name = record.uid = record.request_id = "job-" + std::to_string(id);
    record.state = job::JobState::kPaused;
    record.checkpoint =
        job::CheckpointRecord{.sha256 = HashOf(checkpoint), .size_bytes = checkpoint.size()};
    const absl::Status status = store_->Write({.jobs = {record}});
    ASSERT_TRUE(status.ok()) << status;
  }

  // What a backup begins with.
  void CopyDatabase() {
    std::filesystem::remove(folder_.File(service::kCopyName));
    auto copy = store_->BeginCopy(folder_.File(service::kCopyName));
    ASSERT_TRUE(copy.ok()) << copy.status();
    absl::StatusOr<bool> whole = false;
    while (whole.ok() && !*whole) whole = (*copy)->Step();
    ASSERT_TRUE(whole.ok()) << whole.status();
  }

  std::string BlobOf(const std::string& content) const {
    return service::BlobPath(folder_.File(service::kBlobsName), HashOf(content));
  }
  const std::string& path() const { return folder_.path(); }
  store::Store& store() { return *store_; }

 private:
  const TemporaryFolder folder_;
  const std::unique_ptr<store::Store> store_ =
      *store::Store::Open(folder_.File(service::kDatabaseName));
};

}  // namespace tactus::backup
