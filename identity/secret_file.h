// Files that are made once, and keys that nobody else may read at any moment.

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tactus::identity {

// Makes `folder`, 0700, if it is not there; what is above it has to be. Errors: as the file system
// has them.
absl::Status MakePrivateFolder(const std::string& folder);

// Makes a file with this mode from its first moment, writes and syncs it. Errors: AlreadyExists,
// there is something of this name, which is left as it is; as the file system has them.
absl::Status WriteNewFile(const std::string& path, const std::string& content, unsigned mode);

// Takes the place of what is at `path`, whole or not at all. It has the owner, group and mode of the
// file that was there, but nothing for others where `mode` has nothing for them; where none was, the
// folder's owner and group, and this mode: so what root writes in another user's folder is read by
// that user. Errors: as the file system has them.
absl::Status ReplaceFile(const std::string& path, const std::string& content, unsigned mode);

// Of at most 1 MiB. Errors: NotFound; as the file system has them.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

// The same, of a key. Error, too: FailedPrecondition, everybody may read it.
absl::StatusOr<std::string> ReadKeyFile(const std::string& path);

}  // namespace tactus::identity
