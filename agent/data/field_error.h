// The field of a job file to which an error belongs, as data beside the error's text.

#pragma once

#include <string>

#include "absl/status/status.h"

namespace tactus::data {

// `status`, which is not OK, as an error of a field: its text becomes "FIELD: TEXT". Of an error
// that has one already, that one lies within: "inputs" of "data.idx" is "data.idx.inputs".
absl::Status AtField(const std::string& field, const absl::Status& status);

// An error in its parts.
struct FieldError {
  std::string field{};  // empty: of none
  std::string message;  // without the field
};
FieldError FieldErrorOf(const absl::Status& status);

}  // namespace tactus::data
