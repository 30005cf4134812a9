// What a daemon asks of its operating system: exit codes, locks, files that are whole or absent.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace tactus::runtime {

// Exit codes of the daemons, as sysexits.h numbers them.
enum class Exit {
  kOk = 0,
  kFailure = 1,
  kUsage = 64,          // the command line is wrong
  kUnavailable = 69,    // an address is taken, another process holds the state folder
  kSoftware = 70,       // our bug
  kCannotCreate = 73,   // the state folder is not writable
  kConfiguration = 78,  // an option's value is wrong
};

// Sends this process SIGTERM when the thread that started it ends. A parent that was gone before
// the call is not noticed: a starter that cares sets the signal itself between fork and exec.
void EndWithParent();

// Lets this process open as many files as it may: a shell's usual 1,024 are soon used up by agents
// and watchers, each of which is one.
void RaiseFileLimit();

// Creates `folder` and its parents, private to the user, and sees that a file can be made in it.
// Errors: PermissionDenied, FailedPrecondition (not a folder), ResourceExhausted (disk full).
absl::Status MakeWritableFolder(const std::string& folder);

// Where the worker's program is for a program in `folder`: beside it, as in a build's folder; else
// where an installation has what nobody calls by name. Beside it where there is none.
std::string WorkerProgramFor(const std::string& folder);

// The names in a folder, in no order; none when there is no such folder.
std::vector<std::string> NamesIn(const std::string& folder);

// Writes a file beside `path`, syncs it and renames it, so that a reader sees all of it or nothing.
// Errors: as the file system has them, beginning with the path.
absl::Status WriteFileWhole(const std::string& path, const std::string& content);

// A status for errno's `error`, "path: what: text of the error".
absl::Status FileError(int error, const std::string& path, const std::string& what);

// An exclusive lock on a file, held until destruction or the end of the process, however that
// comes.
class LockFile {
 public:
  // Errors: Unavailable, another process holds it ("... is held by process 4711"); as FileError.
  static absl::StatusOr<LockFile> Acquire(const std::string& path);

 private:
  explicit LockFile(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace tactus::runtime
