#include "coordinator/codec/record_codec.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "coordinator/codec/cbor_reader.h"
#include "coordinator/codec/cbor_writer.h"
#include "coordinator/codec/document.h"
#include "coordinator/job/record_fields.h"

namespace tactus::codec {
namespace {

using nlohmann::json;

// Grows when a field changes its meaning; a new field does not need it.
constexpr int kEncodingVersion = 2;

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

// Encoding 1 had the batch axis, the only one that there was, among the settings themselves.
void LiftBatchAxis(json& settings) {
  constexpr std::array<std::array<const char*, 2>, 4> kMoves = {{
      {"batch_policy", "/batch_policy"},
      {"batch_per_worker", "/batch/per_worker"},
      {"batch_min", "/batch/batch_min"},
      {"batch_max", "/batch/batch_max"},
  }};
  json adapt = json::object();
  for (const auto& [from, to] : kMoves) {
    if (settings.contains(from)) adapt[json::json_pointer(to)] = settings[from];
  }
  if (settings.contains("batch_per_worker")) adapt["base_batch"] = settings["batch_per_worker"];
  settings["adapt"] = std::move(adapt);
}

json Upgraded(json in) {
  const auto settings = in.find("settings");
  if (in["encoding"] == 1 && settings != in.end() && settings->is_object()) {
    LiftBatchAxis(*settings);
  }
  return in;
}

absl::Status Damaged(const char* how) {
  return absl::DataLossError(std::string("store: a record is damaged: ") + how);
}

// The bytes of a record of an earlier encoding as those of today's.
absl::StatusOr<std::string> Upgrade(std::string_view bytes) {
  // The library throws on an impossible length even when it is asked not to throw, so it is not
  // asked.
  try {
    json in = json::from_cbor(bytes.begin(), bytes.end());
    const absl::Status checked = CheckEncoding(in);
    if (!checked.ok()) return checked;
    return Pack(Upgraded(std::move(in)));
  } catch (const json::exception& error) {
    return Damaged(error.what());
  }
}

// A record with the entry that each has besides its fields.
template <typename T>
struct Versioned {
  int encoding = 0;
  T record{};
};
template <typename T>
void Fields(CborReader& reader, Versioned<T>& versioned) {
  reader("encoding", versioned.encoding);
  Fields(reader, versioned.record);
}

template <typename T>
absl::StatusOr<T> DecodeRecord(std::string_view bytes) {
  Versioned<T> versioned;
  CborReader reader(bytes);
  reader.Read(versioned);
  const char* failure = reader.Finish();
  if (failure == nullptr && versioned.encoding == kEncodingVersion) {
    return std::move(versioned.record);
  }
  const absl::StatusOr<std::string> upgraded = Upgrade(bytes);
  if (!upgraded.ok()) return upgraded.status();
  T record;
  CborReader again(*upgraded);
  again.Read(record);
  failure = again.Finish();
  if (failure != nullptr) return Damaged(failure);
  return record;
}

template <typename T>
std::string EncodeRecord(const T& record, const void* omitted = nullptr) {
  CborWriter writer;
  writer.WriteRecord(record, kEncodingVersion, omitted);
  return writer.TakeBytes();
}

}  // namespace

std::string EncodeJob(const job::JobRecord& record) { return EncodeRecord(record, &record.spec); }

std::string EncodeRound(const job::RoundRecord& record) { return EncodeRecord(record); }

std::string EncodeValidation(const job::ValidationRecord& record) { return EncodeRecord(record); }

std::string EncodeDecision(const job::DecisionRecord& record) { return EncodeRecord(record); }

std::string EncodeNode(const job::NodeRecord& record) { return EncodeRecord(record); }

absl::StatusOr<job::JobRecord> DecodeJob(std::string_view bytes) {
  return DecodeRecord<job::JobRecord>(bytes);
}

absl::StatusOr<job::RoundRecord> DecodeRound(std::string_view bytes) {
  return DecodeRecord<job::RoundRecord>(bytes);
}

absl::StatusOr<job::ValidationRecord> DecodeValidation(std::string_view bytes) {
  return DecodeRecord<job::ValidationRecord>(bytes);
}

absl::StatusOr<job::DecisionRecord> DecodeDecision(std::string_view bytes) {
  return DecodeRecord<job::DecisionRecord>(bytes);
}

absl::StatusOr<job::NodeRecord> DecodeNode(std::string_view bytes) {
  return DecodeRecord<job::NodeRecord>(bytes);
}

}  // namespace tactus::codec
