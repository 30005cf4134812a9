// An array as a file holds it, before its elements become what a model takes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/data/mapped_file.h"

namespace tactus::data {

// Elements in a file. Little-endian unless the name says otherwise.
enum class StoredType {
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat32BigEndian,
  kFloat64,
};

// Bytes of one element.
std::size_t SizeOf(StoredType type);

// An array in C order; its first dimension counts the samples.
struct StoredArray {
  MappedFile file;  // owns the bytes
  StoredType type = StoredType::kUint8;
  std::vector<std::int64_t> shape;  // at least one dimension, each >= 1
  std::size_t offset = 0;           // of the elements in the file [bytes]; they reach to its end

  std::uint64_t samples() const { return static_cast<std::uint64_t>(shape.front()); }
  const std::uint8_t* elements() const { return file.bytes().data() + offset; }
};

// Holds `array` to what StoredArray promises.
// Errors: InvalidArgument, no dimensions, one that is 0, or a shape that takes more or fewer bytes
//         than the file has after `offset`.
absl::Status CheckShape(const StoredArray& array);

// "[60000, 28, 28]"
std::string ShapeText(std::span<const std::int64_t> shape);

}  // namespace tactus::data
