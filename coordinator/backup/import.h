// Takes an embedded store over into a database that coordinators share.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/bucket/bucket_options.h"
#include "coordinator/store/shared_store.h"
#include "coordinator/store/store_import.h"

namespace tactus::backup {

struct ImportOrder {
  std::string from{};             // a state folder that no coordinator has, or a backup
  std::string state_folder{};     // of the coordinator to be: has a copy of the database meanwhile
  std::string files_folder{};     // where its blobs are to be, or to come by
  bucket::BucketOptions blobs{};  // or are; no place: in the folder alone
  store::SharedStoreOptions to{};
};

struct ImportReport {
  store::Imported rows{};
  std::size_t files = 0;               // that jobs name
  std::size_t missing = 0;             // of those, neither in the files' folder nor in the bucket
  bool from_backup = false;            // and not from a folder that a coordinator had
  std::vector<std::string> to_copy{};  // names in `from` that are not in the files' folder
};

// All records, or none. What is wrong with the store is found before anything is written, and what
// was written is read back. Files are not copied: they may be terabytes, or be there already.
// Nothing of `from` changes. Blocking.
// Errors: NotFound, `from` is neither; Unavailable, a coordinator has one of the folders; DataLoss,
// the store is damaged; as store::ImportIntoShared, and bucket::Bucket; what writing the copy fails
// with.
absl::StatusOr<ImportReport> Import(const ImportOrder& order);

}  // namespace tactus::backup
