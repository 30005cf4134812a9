// Which files a job's `data.text` names.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::data {

// More files than this are refused: a folder given by mistake (the whole file system) ends early.
inline constexpr std::size_t kTextFilesMax = 1'000'000;

// The files behind `path`, in the order in which their bytes are joined: by path, byte by byte, so
// that every node has the same order whatever its locale.
//
//   a file    itself
//   a folder  all regular files below it. Names that begin with '.' are skipped, and so is what is
//             neither file nor folder. Symbolic links are followed; a folder reached twice is read
//             once, so links that form a cycle end.
//   else      a pattern of glob(3), with {a,b}; folders that match are skipped
//
// Errors: NotFound, no such path, or nothing matches; PermissionDenied, a folder may not be read;
//         InvalidArgument, the folder holds no file, or more than kTextFilesMax.
absl::StatusOr<std::vector<std::string>> ListTextFiles(const std::string& path);

}  // namespace tactus::data
