// The safetensors format, written.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tactus::model {

// One tensor of a file.
struct NamedTensor {
  std::string name = {};
  std::string type;                      // "F32", "I64", ...: the format's name of the element type
  std::size_t element_bytes = 4;         // 1, 2, 4 or 8
  std::vector<std::int64_t> shape = {};  // row-major
  std::span<const std::byte> bytes = {};
};

// Writes a file beside `path` and renames it: 8 bytes little-endian length of the header, the
// header as JSON padded with spaces to a multiple of 8, then the tensors without gaps, wider
// elements first and names in order among equals, so that each stands aligned. Names must differ.
// Errors: see AtomicFile.
//
// Source: memory, unverified: the format's README in huggingface/safetensors.
absl::Status WriteSafetensors(const std::string& path, std::vector<NamedTensor> tensors);

}  // namespace tactus::model
