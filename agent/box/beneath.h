// Files below a folder, whatever links others have put there.

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "runtime/beneath.h"

namespace tactus::box {

using runtime::OpenBeneath;

// The same of a folder's path, for a regular file that is to be read and belongs to the folder's
// owner: a name that was given to somebody else's file is none of that one's files. Error besides:
// PermissionDenied.
absl::StatusOr<Descriptor> OpenFileBeneath(const std::string& folder, const std::string& path);

// Removes a file below the folder, on whose way there is no link; a link itself goes, and not where
// it leads. What is not there, or cannot be removed so, is left.
void RemoveBeneath(const std::string& folder, const std::string& path);

// Where the descriptor's file is now: without links.
absl::StatusOr<std::string> PathOf(int descriptor);

// Whether `path` is `folder` or below; both without links and "..".
bool IsBeneath(const std::string& path, const std::string& folder);

// Sees that the file or folder at `path`, absolute, or the part of a pattern that is before its
// first wild card, is below one of `roots`, which are absolute and without links: relative links on
// the way may lead anywhere below that root, and not out of it. Errors: PermissionDenied, it is
// not, in words that name the roots; NotFound, ..., as runtime::FileError.
absl::Status CheckBelowRoots(const std::string& path, const std::vector<std::string>& roots);

}  // namespace tactus::box
