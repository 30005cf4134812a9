// absl::Status at home, grpc::Status on the wire: the translation, with google.rpc details.
//
// Details live in the absl::Status as payloads under their type URLs, so they pass through every
// layer without being looked at and come out at the other end of a call as they went in.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/time.h"

namespace grpc {
class Status;
}

namespace tactus::runtime {

// One field of a request that is wrong.
struct FieldViolation {
  std::string field;        // path in the message: "optimizer.sgd.momentum"
  std::string description;  // what was found and what is allowed
  friend bool operator==(const FieldViolation&, const FieldViolation&) = default;
};

// InvalidArgument that names every violation: as BadRequest detail, and in the message as
// "field: description; field: description". Requires: at least one violation.
absl::Status InvalidFields(const std::vector<FieldViolation>& violations);

// The violations of a status, in their order; empty when it carries none.
std::vector<FieldViolation> FieldViolations(const absl::Status& status);

// A reason for programs: an identifier in upper snake case within the domain "tactus".
struct ErrorReason {
  std::string reason = {};  // "JOB_NOT_FOUND"; empty: none
  std::map<std::string, std::string> metadata = {};
};

// `status` with an ErrorInfo detail; an ok status stays as it is.
absl::Status WithReason(absl::Status status, const ErrorReason& reason);
ErrorReason ReasonOf(const absl::Status& status);

// `status` with a RetryInfo detail: trying again after `delay` may help. An ok status stays as it
// is.
absl::Status WithRetry(absl::Status status, Duration delay);
// Unset: it carries none.
std::optional<Duration> RetryDelayOf(const absl::Status& status);

// The same code and message, with the payloads as google.rpc.Status details. Both travel in a
// trailer, so a message is cut at 4 KiB and a payload that would take the details above 6 KiB is
// left out. An error without a reason gets its code's name for one ("NOT_FOUND"), and Unavailable
// and ResourceExhausted without a RetryInfo get one of 1 s: whoever calls may rely on both.
grpc::Status ToGrpc(const absl::Status& status);

// The reverse; details that do not parse are left out.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace tactus::runtime
