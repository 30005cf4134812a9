// `tactus doctor --blobs`: whether a coordinator's bucket will do.

#pragma once

#include "absl/status/statusor.h"
#include "client/local/doctor.h"
#include "coordinator/bucket/bucket.h"

namespace tactus::client {

// Writes, reads, lists and removes an object. Blocking. Errors: InvalidArgument, the options are
// wrong; as bucket::Bucket has them.
absl::StatusOr<bucket::Bucket::Probed> LookAtBlobs(const bucket::BucketOptions& options);

Finding JudgeBlobs(const bucket::BucketOptions& options,
                   const absl::StatusOr<bucket::Bucket::Probed>& probed);

}  // namespace tactus::client
