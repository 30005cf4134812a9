#include "agent/data/npy_file.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "agent/data/npy_header.h"

namespace tactus::data {
namespace {

std::optional<StoredType> TypeFromDescr(const std::string& descr) {
  if (descr == "<f4") return StoredType::kFloat32;
  if (descr == "<f8") return StoredType::kFloat64;
  if (descr == "|u1" || descr == "<u1") return StoredType::kUint8;
  if (descr == "<i4") return StoredType::kInt32;
  if (descr == "<i8") return StoredType::kInt64;
  return std::nullopt;
}

}  // namespace

absl::StatusOr<StoredArray> ReadNpy(const std::string& path) {
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const std::string subject = Quoted(path);
  absl::StatusOr<NpyHeader> header = ParseNpyHeader(file->bytes());
  if (!header.ok()) {
    return absl::InvalidArgumentError(subject + " " + std::string(header.status().message()));
  }
  const std::optional<StoredType> type = TypeFromDescr(header->descr);
  if (!type) {
    return absl::InvalidArgumentError(subject + " has elements of type " + Quoted(header->descr) +
                                      "; '<f4', '<f8', '|u1', '<i4' and '<i8' are read");
  }
  if (header->fortran_order) {
    return absl::InvalidArgumentError(subject +
                                      " is in Fortran order; save numpy.ascontiguousarray of it");
  }
  StoredArray array = {.file = *std::move(file),
                       .type = *type,
                       .shape = std::move(header->shape),
                       .offset = header->bytes};
  if (absl::Status checked = CheckShape(array); !checked.ok()) return checked;
  return array;
}

}  // namespace tactus::data
