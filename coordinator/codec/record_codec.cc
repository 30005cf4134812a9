#include "coordinator/codec/record_codec.h"

#include <nlohmann/json.hpp>

#include "coordinator/codec/archive.h"
#include "coordinator/codec/record_fields.h"

namespace tactus::codec {
namespace {

using nlohmann::json;

// Grows when a field changes its meaning; a new field does not need it.
constexpr int kEncodingVersion = 1;

std::string PackRecord(json record) {
  record["encoding"] = kEncodingVersion;
  return Pack(record);
}

absl::Status CheckEncoding(const json& in) {
  if (!in.is_object()) return absl::DataLossError("store: a record is damaged");
  const auto version = in.find("encoding");
  if (version == in.end() || !version->is_number_integer()) {
    return absl::DataLossError("store: a record lacks its encoding version");
  }
  if (*version <= kEncodingVersion) return absl::OkStatus();
  return absl::FailedPreconditionError("store: a record has encoding " + version->dump() +
                                       "; this program knows up to " +
                                       std::to_string(kEncodingVersion));
}

template <typename T>
absl::StatusOr<T> DecodeRecord(std::string_view bytes) {
  T record;
  const absl::Status status = Unpack(bytes, "store: a record", [&](const json& in) {
    absl::Status checked = CheckEncoding(in);
    if (checked.ok()) Reader::Decode(in, record);
    return checked;
  });
  if (!status.ok()) return status;
  return record;
}

}  // namespace

std::string EncodeJob(const job::JobRecord& record) {
  json fields = Writer::Encode(record);
  fields.erase("spec");
  return PackRecord(std::move(fields));
}

std::string EncodeRound(const job::RoundRecord& record) {
  return PackRecord(Writer::Encode(record));
}

absl::StatusOr<job::JobRecord> DecodeJob(std::string_view bytes) {
  return DecodeRecord<job::JobRecord>(bytes);
}

absl::StatusOr<job::RoundRecord> DecodeRound(std::string_view bytes) {
  return DecodeRecord<job::RoundRecord>(bytes);
}

}  // namespace tactus::codec
