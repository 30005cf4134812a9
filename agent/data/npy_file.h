// NumPy .npy files.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/data/array.h"

namespace tactus::data {

// Reads a .npy file, memory-mapped: C order, elements <f4, <f8, |u1, <i4 or <i8.
//
// Errors: MappedFile::Open's, ParseNpyHeader's, CheckShape's; InvalidArgument, Fortran order or
//         another type of elements.
absl::StatusOr<StoredArray> ReadNpy(const std::string& path);

}  // namespace tactus::data
