#include "agent/worker/failures.h"

#include <string>
#include <utility>

#include "agent/data/field_error.h"
#include "protocol/worker_messages.h"

namespace tactus::worker {
namespace {

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDataLoss(status) || absl::IsAborted(status);
}

}  // namespace

absl::Status OfTheNode(const absl::Status& status) {
  return absl::UnavailableError(std::string(status.message()));
}

absl::Status Unreadable(const absl::Status& status) {
  const absl::Status error = OfTheNode(status);
  return absl::IsDataLoss(status) ? data::AtField(protocol::kCheckpointField, error) : error;
}

life::Failure FailureOf(const absl::Status& status) {
  data::FieldError error = data::FieldErrorOf(status);
  return {.field = std::move(error.field),
          .message = std::move(error.message),
          .transient = IsTransient(status)};
}

life::Failure InGroup(const absl::Status& status) {
  life::Failure failure = FailureOf(status);
  failure.of_group = absl::IsUnavailable(status);
  return failure;
}

}  // namespace tactus::worker
