// Files below a folder, whatever links others have put there.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace tactus::runtime {

// openat2(2) with O_CLOEXEC; tried again where something is moved at the moment. -1, and errno:
// what it says.
int OpenAt2(int folder, const std::string& path, int flags, unsigned resolve);

// Opens `path`, relative, below the folder that is open as `folder`; neither it nor a folder on its
// way may be a link, nor "..", where this process has no openat2. `flags` as of open(2), but for
// those that make files; O_CLOEXEC is added. Errors: PermissionDenied, a link is
// on the way or it leads out; NotFound; as FileError.
absl::StatusOr<Descriptor> OpenBeneath(int folder, const std::string& path, int flags);

}  // namespace tactus::runtime
