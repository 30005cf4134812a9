#include "runtime/status.h"

#include <grpcpp/support/status.h>

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tactus::runtime {
namespace {

constexpr char kTypePrefix[] = "type.googleapis.com/";
constexpr std::size_t kMessageBytesMax = 4096;
// Details travel in a trailer, and gRPC refuses metadata above 8 KiB.
constexpr std::size_t kDetailsBytesMax = 6144;
constexpr Duration kRetryDelay = std::chrono::seconds(1);
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

template <typename Message>
std::string TypeUrl() {
  return kTypePrefix + Message::descriptor()->full_name();
}

template <typename Message>
void SetDetail(const Message& message, absl::Status& status) {
  status.SetPayload(TypeUrl<Message>(), absl::Cord(message.SerializeAsString()));
}

template <typename Message>
bool GetDetail(const absl::Status& status, Message& message) {
  const auto payload = status.GetPayload(TypeUrl<Message>());
  return payload.has_value() && message.ParseFromString(std::string(*payload));
}

// With what every error that leaves a process has.
absl::Status Complete(absl::Status status) {
  if (ReasonOf(status).reason.empty()) {
    status = WithReason(std::move(status), {.reason = absl::StatusCodeToString(status.code())});
  }
  const bool passes = absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
  if (passes && !RetryDelayOf(status)) status = WithRetry(std::move(status), kRetryDelay);
  return status;
}

// Code numbers are the same in both worlds, so translating is a cast.
static_assert(static_cast<int>(absl::StatusCode::kInvalidArgument) ==
              static_cast<int>(grpc::StatusCode::INVALID_ARGUMENT));
static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) ==
              static_cast<int>(grpc::StatusCode::UNAUTHENTICATED));
static_assert(static_cast<int>(absl::StatusCode::kDataLoss) ==
              static_cast<int>(grpc::StatusCode::DATA_LOSS));

}  // namespace

absl::Status InvalidFields(const std::vector<FieldViolation>& violations) {
  TACTUS_CHECK(!violations.empty());
  google::rpc::BadRequest detail;
  std::string message;
  for (const FieldViolation& violation : violations) {
    if (!message.empty()) message += "; ";
    message += violation.field + ": " + violation.description;
    auto* field = detail.add_field_violations();
    field->set_field(violation.field);
    field->set_description(violation.description);
  }
  absl::Status status = absl::InvalidArgumentError(message);
  SetDetail(detail, status);
  return WithReason(std::move(status), {.reason = "INVALID_FIELDS"});
}

std::vector<FieldViolation> FieldViolations(const absl::Status& status) {
  google::rpc::BadRequest detail;
  if (!GetDetail(status, detail)) return {};
  std::vector<FieldViolation> violations;
  for (const auto& field : detail.field_violations()) {
    violations.push_back({.field = field.field(), .description = field.description()});
  }
  return violations;
}

absl::Status WithReason(absl::Status status, const ErrorReason& reason) {
  google::rpc::ErrorInfo detail;
  detail.set_reason(reason.reason);
  detail.set_domain("tactus");
  detail.mutable_metadata()->insert(reason.metadata.begin(), reason.metadata.end());
  SetDetail(detail, status);
  return status;
}

ErrorReason ReasonOf(const absl::Status& status) {
  google::rpc::ErrorInfo detail;
  if (!GetDetail(status, detail)) return {};
  return {.reason = detail.reason(),
          .metadata = {detail.metadata().begin(), detail.metadata().end()}};
}

absl::Status WithRetry(absl::Status status, Duration delay) {
  google::rpc::RetryInfo detail;
  detail.mutable_retry_delay()->set_seconds(delay.count() / kNanosecondsPerSecond);
  detail.mutable_retry_delay()->set_nanos(
      static_cast<std::int32_t>(delay.count() % kNanosecondsPerSecond));
  SetDetail(detail, status);
  return status;
}

std::optional<Duration> RetryDelayOf(const absl::Status& status) {
  google::rpc::RetryInfo detail;
  if (!GetDetail(status, detail)) return std::nullopt;
  const google::protobuf::Duration& delay = detail.retry_delay();
  return std::chrono::seconds(delay.seconds()) + Duration(delay.nanos());
}

grpc::Status ToGrpc(const absl::Status& bare) {
  if (bare.ok()) return grpc::Status::OK;
  const absl::Status status = Complete(bare);
  const std::string message(status.message().substr(0, kMessageBytesMax));
  google::rpc::Status rich;
  rich.set_code(status.raw_code());
  status.ForEachPayload([&rich](absl::string_view url, const absl::Cord& payload) {
    if (rich.ByteSizeLong() + payload.size() > kDetailsBytesMax) return;
    auto* detail = rich.add_details();
    detail->set_type_url(std::string(url));
    detail->set_value(std::string(payload));
  });
  const auto code = static_cast<grpc::StatusCode>(status.raw_code());
  if (rich.details().empty()) return {code, message};
  return {code, message, rich.SerializeAsString()};
}

absl::Status FromGrpc(const grpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status rich;
  if (result.ok() || !rich.ParseFromString(status.error_details())) return result;
  for (const auto& detail : rich.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

}  // namespace tactus::runtime
