#include "agent/data/field_error.h"

#include "absl/strings/cord.h"

namespace tactus::data {
namespace {

constexpr char kPayload[] = "tactus/field";

std::string FieldOf(const absl::Status& status) {
  const auto field = status.GetPayload(kPayload);
  return field ? std::string(*field) : std::string();
}

}  // namespace

absl::Status AtField(const std::string& field, const absl::Status& status) {
  const std::string within = FieldOf(status);
  absl::Status annotated(status.code(),
                         field + (within.empty() ? ": " : ".") + std::string(status.message()));
  annotated.SetPayload(kPayload, absl::Cord(within.empty() ? field : field + "." + within));
  return annotated;
}

FieldError FieldErrorOf(const absl::Status& status) {
  const std::string text(status.message());
  std::string field = FieldOf(status);
  if (field.empty()) return {.message = text};
  std::string message = text.substr(field.size() + std::string(": ").size());
  return {.field = std::move(field), .message = std::move(message)};
}

}  // namespace tactus::data
