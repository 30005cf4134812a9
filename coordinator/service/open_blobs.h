// Opens the blobs of a coordinator, wherever its options say that they lie.

#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/files/blob_store.h"
#include "coordinator/service/server.h"

namespace tactus::service {

// Of the files' folder, or of `options.blobs`; of several coordinators with one bucket, the key of
// the groups' secrets lies there, too, and comes to the files' folder from there. Blocking. Errors:
// as BucketBlobs::Open.
absl::StatusOr<std::unique_ptr<BlobStore>> OpenBlobs(const ServerOptions& options);

// Whether there will be blobs to open: for whoever stands by, and would find out at a takeover.
// Blocking. Errors: as bucket::Bucket::Probe.
absl::Status ProbeBlobs(const bucket::BucketOptions& options);

}  // namespace tactus::service
