// IDX files, as MNIST and its kin are published.

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/data/array.h"

namespace tactus::data {

// Reads an IDX file, plain (mapped) or compressed by gzip (told by its first bytes, not by its
// name; decompressed into memory, at most kInflatedBytesMax).
//
//   byte 0, 1   0
//   byte 2      type of the elements: 0x08 unsigned byte, 0x0d float32 big-endian
//   byte 3      number of dimensions, 1 to 8
//   then        a dimension each, 4 bytes, big-endian; then the elements, C order
//
// Errors: MappedFile::Open's, Inflate's, CheckShape's; InvalidArgument, not an IDX file, another
//         type of elements, or more dimensions.
absl::StatusOr<StoredArray> ReadIdx(const std::string& path);

}  // namespace tactus::data
