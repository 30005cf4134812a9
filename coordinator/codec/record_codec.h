// Records as bytes: CBOR maps with a version, so that a field may be added without a new schema.

#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "coordinator/job/records.h"

namespace tactus::codec {

// Every field but `spec`, which the store keeps in a column of its own.
std::string EncodeJob(const job::JobRecord& record);
std::string EncodeRound(const job::RoundRecord& record);
std::string EncodeValidation(const job::ValidationRecord& record);
std::string EncodeDecision(const job::DecisionRecord& record);
std::string EncodeNode(const job::NodeRecord& record);

// The reverse. A field that the bytes lack keeps its default; one that is unknown is ignored.
// Errors: DataLoss, not such a record; FailedPrecondition, of a newer program.
absl::StatusOr<job::JobRecord> DecodeJob(std::string_view bytes);
absl::StatusOr<job::RoundRecord> DecodeRound(std::string_view bytes);
absl::StatusOr<job::ValidationRecord> DecodeValidation(std::string_view bytes);
absl::StatusOr<job::DecisionRecord> DecodeDecision(std::string_view bytes);
absl::StatusOr<job::NodeRecord> DecodeNode(std::string_view bytes);

}  // namespace tactus::codec
