#include "coordinator/service/open_blobs.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "coordinator/files/bucket_blobs.h"
#include "coordinator/files/folder_blobs.h"
#include "coordinator/files/state_folder.h"
#include "coordinator/shell/mesh_secrets.h"
#include "identity/secret_file.h"
#include "runtime/logging.h"

namespace tactus::service {
namespace {

// This folder's key, made where there is none, unless another coordinator's is there by now.
absl::Status OfferMeshKey(bucket::Bucket& bucket, const std::string& folder) {
  const absl::StatusOr<MeshSecrets> made = MeshSecrets::Open(folder);
  if (!made.ok()) return made.status();
  const absl::StatusOr<std::string> key = identity::ReadKeyFile(folder + "/" + kMeshKeyName);
  if (!key.ok()) return key.status();
  return bucket.PutNew(kMeshKeyName, *key);
}

// Members of a group are told its secret by whoever leads: all have to have one key, which is the
// bucket's, also where two begin at once.
absl::Status ShareMeshKey(bucket::Bucket& bucket, const std::string& folder) {
  const std::string path = folder + "/" + kMeshKeyName;
  absl::StatusOr<std::uint64_t> size = bucket.SizeOf(kMeshKeyName);
  if (absl::IsNotFound(size.status())) {
    if (absl::Status offered = OfferMeshKey(bucket, folder); !offered.ok()) return offered;
    size = bucket.SizeOf(kMeshKeyName);
  }
  if (!size.ok()) return size.status();
  if (*size != MeshSecrets::kKeyBytes) {
    return absl::FailedPreconditionError("blobs: " + NameOf(bucket.options()) + ": " +
                                         kMeshKeyName + ": found " + std::to_string(*size) +
                                         " bytes, allowed are 32; remove it, and another is made");
  }
  const absl::StatusOr<std::string> shared =
      bucket.Get(kMeshKeyName, {.offset = 0, .count = MeshSecrets::kKeyBytes});
  if (!shared.ok()) return shared.status();
  const absl::StatusOr<std::string> own = identity::ReadKeyFile(path);
  if (own.ok() && *own == *shared) return absl::OkStatus();
  return identity::ReplaceFile(path, *shared, 0600);
}

}  // namespace

absl::StatusOr<std::unique_ptr<BlobStore>> OpenBlobs(const ServerOptions& options) {
  const std::string folder = options.files_folder() + "/" + kBlobsName;
  if (options.blobs.place.empty()) return std::make_unique<FolderBlobs>(folder);
  absl::StatusOr<std::unique_ptr<BucketBlobs>> blobs =
      BucketBlobs::Open({.folder = folder, .bucket = options.blobs});
  if (!blobs.ok()) return blobs.status();
  if (!options.store.empty()) {
    const absl::Status shared = ShareMeshKey((*blobs)->bucket(), options.files_folder());
    if (!shared.ok()) return shared;
  }
  const auto log = runtime::Logger("files");
  log->info("blobs are in a bucket place={} endpoint={} files={} clock_ahead_seconds={:.0f}",
            options.blobs.place, EndpointOf(options.blobs), (*blobs)->count(),
            (*blobs)->probed().clock_seconds);
  if (IsExposed(options.blobs)) {
    log->warn("files go to the bucket in clear, as its endpoint is plain HTTP endpoint={}",
              EndpointOf(options.blobs));
  }
  return std::unique_ptr<BlobStore>(*std::move(blobs));
}

absl::Status ProbeBlobs(const bucket::BucketOptions& options) {
  const absl::StatusOr<std::unique_ptr<bucket::Bucket>> bucket = bucket::Bucket::Open(options);
  if (!bucket.ok()) return bucket.status();
  return (*bucket)->Probe().status();
}

}  // namespace tactus::service
