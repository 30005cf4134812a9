// The filter and order of a listing of jobs, as proto/tactus/v1/jobs.proto describes them. Pure
// functions.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tactus::store {

enum class JobField { kState, kName, kPriority, kCreateTime, kUpdateTime, kLabel };

enum class Comparison { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };

// One comparison of a filter: FIELD COMPARISON VALUE.
struct JobCondition {
  JobField field = JobField::kState;
  std::string label{};  // the key, for kLabel
  Comparison comparison = Comparison::kEqual;
  std::string text{};       // the value, for kName and kLabel
  std::int64_t number = 0;  // the value, for the others: job::JobState, priority or WallTime
};

struct JobOrder {
  JobField field = JobField::kCreateTime;
  bool descending = true;
};

// The comparisons, all of which must hold; none: every job. A value is bare (up to the next space,
// quote or operator) or quoted with " or ', where a backslash takes the next character as it is. A
// label that a job lacks is the empty string.
//
// Errors: InvalidArgument, "filter: at POSITION: ...", what was found and what is allowed; also
// more than 1024 bytes or 16 comparisons. POSITION counts bytes from 1.
absl::StatusOr<std::vector<JobCondition>> ParseJobFilter(std::string_view filter);

// Empty: newest first. Errors: InvalidArgument, "order_by: ...".
absl::StatusOr<JobOrder> ParseJobOrder(std::string_view order_by);

}  // namespace tactus::store
