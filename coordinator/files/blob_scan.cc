#include "coordinator/files/blob_scan.h"

#include <memory>
#include <optional>

namespace tactus::service {
namespace {

constexpr int kJobsAtOnce = 1000;  // some 5 ms

void Continue(const std::shared_ptr<const BlobScan>& scan, JobId after) {
  scan->storage.Post([scan, after] {
    const absl::StatusOr<store::NamedBlobs> named = scan->store.BlobsInUse(after, kJobsAtOnce);
    if (!named.ok()) return scan->done(named.status());
    scan->names(named->sha256);
    named->last ? Continue(scan, *named->last) : scan->done(absl::OkStatus());
  });
}

}  // namespace

absl::StatusOr<std::set<std::string>> ReadBlobs(store::Store& store) {
  std::set<std::string> all;
  for (std::optional<JobId> after = JobId{0}; after.has_value();) {
    const absl::StatusOr<store::NamedBlobs> named = store.BlobsInUse(*after, kJobsAtOnce);
    if (!named.ok()) return named.status();
    all.insert(named->sha256.begin(), named->sha256.end());
    after = named->last;
  }
  return all;
}

void ScanBlobs(const BlobScan& scan) { Continue(std::make_shared<const BlobScan>(scan), JobId{0}); }

}  // namespace tactus::service
