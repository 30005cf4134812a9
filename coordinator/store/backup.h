// A copy of an open database.

#pragma once

#include <sqlite3.h>

#include <string>

#include "absl/status/status.h"

namespace tactus::store {

// Writes the copy beside `path` first ("PATH.partial", replaced when it is there), makes it durable
// and gives it its name then: a file called `path` is always whole. The connection is not held up
// for other processes; within it, nothing is written meanwhile.
//
// Errors: AlreadyExists, `path` is there; NotFound or PermissionDenied, its folder;
// ResourceExhausted, the disk is full.
absl::Status BackUp(sqlite3* connection, const std::string& path);

}  // namespace tactus::store
