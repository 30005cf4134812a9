#include "agent/data/npy_file.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "agent/data/npy_header.h"

namespace tactus::data {
namespace {

struct Named {
  const char* descr;
  StoredType type;
};

constexpr Named kTypes[] = {
    {"<f4", StoredType::kFloat32}, {"<f8", StoredType::kFloat64}, {"<f2", StoredType::kFloat16},
    {"|u1", StoredType::kUint8},   {"<u1", StoredType::kUint8},   {"|i1", StoredType::kInt8},
    {"<i1", StoredType::kInt8},    {"<u2", StoredType::kUint16},  {"<i2", StoredType::kInt16},
    {"<i4", StoredType::kInt32},   {"<i8", StoredType::kInt64},   {"|b1", StoredType::kBool},
};

std::optional<StoredType> TypeFromDescr(const std::string& descr) {
  for (const Named& named : kTypes) {
    if (descr == named.descr) return named.type;
  }
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
                                      "; '<f2', '<f4', '<f8', '|i1', '|u1', '<i2', '<u2', "
                                      "'<i4', '<i8' and '|b1' are read");
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
