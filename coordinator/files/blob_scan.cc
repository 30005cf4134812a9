#include "coordinator/files/blob_scan.h"

#include <memory>

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

void ScanBlobs(const BlobScan& scan) { Continue(std::make_shared<const BlobScan>(scan), JobId{0}); }

}  // namespace tactus::service
