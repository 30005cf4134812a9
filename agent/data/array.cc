#include "agent/data/array.h"

#include "base/check.h"

namespace tactus::data {
namespace {

// Bytes that `shape` takes; false when they are more than 2^64 - 1.
bool CountBytes(std::span<const std::int64_t> shape, std::size_t element_bytes,
                std::uint64_t* bytes) {
  *bytes = element_bytes;
  for (const std::int64_t dimension : shape) {
    if (__builtin_mul_overflow(*bytes, dimension, bytes)) return false;
  }
  return true;
}

}  // namespace

std::size_t SizeOf(StoredType type) {
  switch (type) {
    case StoredType::kBool:
    case StoredType::kInt8:
    case StoredType::kUint8:
      return 1;
    case StoredType::kInt16:
    case StoredType::kUint16:
    case StoredType::kFloat16:
      return 2;
    case StoredType::kInt32:
    case StoredType::kFloat32:
    case StoredType::kFloat32BigEndian:
      return 4;
    case StoredType::kInt64:
    case StoredType::kFloat64:
      return 8;
  }
  TACTUS_CHECK(false);
}

absl::Status CheckShape(const StoredArray& array) {
  const std::string subject = Quoted(array.file.path());
  const std::string shape = ShapeText(array.shape);
  if (array.shape.empty()) {
    return absl::InvalidArgumentError(subject +
                                      " is a single value; its first dimension counts the samples");
  }
  if (array.shape.front() == 0) {
    return absl::InvalidArgumentError(subject + " has no samples: its shape is " + shape);
  }
  for (const std::int64_t dimension : array.shape) {
    if (dimension >= 1) continue;
    return absl::InvalidArgumentError(subject + " has a dimension of 0: its shape is " + shape);
  }
  const std::uint64_t found = array.file.bytes().size() - array.offset;
  std::uint64_t needed = 0;
  const bool countable = CountBytes(array.shape, SizeOf(array.type), &needed);
  if (!countable || found < needed) {
    return absl::InvalidArgumentError(
        subject + " is cut short: shape " + shape + " takes " +
        (countable ? std::to_string(needed) : std::string("more than 2^64")) +
        " bytes after the header, " + std::to_string(found) + " are there");
  }
  if (found > needed) {
    return absl::InvalidArgumentError(subject + " has " + std::to_string(found - needed) +
                                      " bytes after the end of its array of shape " + shape);
  }
  return absl::OkStatus();
}

std::string ShapeText(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t dimension : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(dimension);
  }
  return text + "]";
}

}  // namespace tactus::data
