// The record of an embedded store, taken over by a database that coordinators share.

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/store/shared_store.h"

namespace tactus::store {

// Copies an embedded database, of whichever version, to a new file; what is committed in its log is
// in the copy. Nothing of what it holds changes. Errors: as Store::BeginCopy; Unavailable, a
// coordinator has it open; NotFound.
absl::Status CopyEmbedded(const std::string& from, const std::string& to);

struct Imported {
  std::uint64_t jobs = 0;
  std::uint64_t rounds = 0;
  std::uint64_t rows = 0;  // of all tables, with those
};

// Puts every row of the embedded database `from`, whose tables are as they are now and which nobody
// else has open, into a database that has none, and reads all of them back beside it. It is one
// transaction: all is there, or nothing is. The record goes on as the same one: its server id is
// that of `from`, and whoever leads next has an epoch above those of `from`.
// Errors: FailedPrecondition, there are records already, somebody leads, or a newer program's
// tables; DataLoss, what was read back differs; as TryToLead has them.
absl::StatusOr<Imported> ImportIntoShared(const std::string& from, const SharedStoreOptions& to);

}  // namespace tactus::store
