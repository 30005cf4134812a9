// The header of a NumPy .npy file.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::data {

struct NpyHeader {
  std::string descr;  // such as "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;  // empty for a single value
  std::size_t bytes = 0;            // of the whole header: where the elements begin
};

// Parses the header at the start of `bytes`: the magic string, format version 1, 2 or 3, the length
// of the text, and the text, a Python dictionary with the keys descr, fortran_order and shape in
// any order.
//
// Errors: InvalidArgument, with a message that continues the name of the file: "is not a NumPy file
// ...".
//
// Source: design
absl::StatusOr<NpyHeader> ParseNpyHeader(std::span<const std::uint8_t> bytes);

}  // namespace tactus::data
