#include "coordinator/service/enrolment_service.h"

#include <optional>
#include <string>

#include "coordinator/service/calls.h"
#include "identity/name.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr std::uint32_t kHoursDefault = 24;
constexpr std::uint32_t kHoursMax = 168;
constexpr std::int64_t kHourSeconds = 3600;

absl::Status EnrolmentOff() {
  return runtime::WithReason(
      absl::FailedPreconditionError("enrolment: this coordinator has no authority (--ca-dir), and "
                                    "gives no certificates; tactus admin issue makes them"),
      {.reason = "ENROLMENT_OFF"});
}

// "node/gpu-7"; an error names the field.
absl::StatusOr<std::string> HolderIn(const v1::CreateTokenRequest& request) {
  if (request.node().empty() == request.user().empty()) {
    return runtime::InvalidFields(
        {{.field = "node",
          .description = "found " + std::string(request.node().empty() ? "neither" : "both") +
                         " node and user, allowed is exactly one of them"}});
  }
  const bool node = !request.node().empty();
  const std::string holder = node ? "node/" + request.node() : "user/" + request.user();
  if (identity::ParseShortName(holder, identity::kDomainDefault)) return holder;
  return runtime::InvalidFields(
      {{.field = node ? "node" : "user",
        .description = node ? "allowed are 1 to 63 of [a-z0-9-.]"
                            : "allowed are 1 to 128 of [a-zA-Z0-9-._@]"}});
}

absl::StatusOr<std::uint32_t> HoursIn(const v1::CreateTokenRequest& request) {
  if (request.hours() == 0) return kHoursDefault;
  if (request.hours() <= kHoursMax) return request.hours();
  return runtime::InvalidFields(
      {{.field = "hours",
        .description = "found " + std::to_string(request.hours()) + ", allowed are 1 to 168"}});
}

template <typename Response>
void Give(const access::Enrolment::Issued& issued, Response* response) {
  response->set_certificate(issued.certificate);
  response->set_authorities(issued.authorities);
}

}  // namespace

grpc::ServerUnaryReactor* EnrolmentService::CreateToken(grpc::CallbackServerContext* context,
                                                        const v1::CreateTokenRequest* request,
                                                        v1::CreateTokenResponse* response) {
  const UnaryCall call(context, around_.door, "Enrolment/CreateToken");
  if (!call.Admit()) return call.reactor();
  const absl::StatusOr<std::string> holder = HolderIn(*request);
  const absl::StatusOr<std::uint32_t> hours = HoursIn(*request);
  absl::Status wrong = holder.status();
  if (wrong.ok()) wrong = hours.status();
  if (wrong.ok() && around_.enrolment == nullptr) wrong = EnrolmentOff();
  if (!wrong.ok()) {
    call.Finish(wrong);
    return call.reactor();
  }
  call.visit().About(*holder);
  around_.files.Post([call, response, holder = *holder, hours = *hours, this] {
    const auto token =
        around_.enrolment->CreateToken(holder, hours * kHourSeconds, runtime::WallSeconds());
    if (token.ok()) {
      response->set_token(token->text);
      response->set_expires(token->expires);
    }
    call.Finish(token.status());
  });
  return call.reactor();
}

grpc::ServerUnaryReactor* EnrolmentService::Enrol(grpc::CallbackServerContext* context,
                                                  const v1::EnrolRequest* request,
                                                  v1::EnrolResponse* response) {
  const UnaryCall call(context, around_.door, "Enrolment/Enrol");
  if (!call.Admit()) return call.reactor();
  if (around_.enrolment == nullptr) {
    call.Finish(EnrolmentOff());
    return call.reactor();
  }
  // gRPC keeps request and response until the call is finished.
  around_.files.Post([call, request, response, this] {
    const std::int64_t now = runtime::WallSeconds();
    const auto holder = around_.enrolment->HolderOf(request->token(), now);
    if (!holder.ok()) return call.Finish(holder.status());
    call.visit().About(*holder);
    const absl::Status promised = call.visit().Promise();
    if (!promised.ok()) return call.Finish(promised);
    const auto issued =
        around_.enrolment->Enrol(request->token(), request->certificate_request(), now);
    if (!issued.ok()) return call.Finish(issued.status());
    // Who is revoked, or has no role, is told so now and not by the first call.
    const access::Gate* const gate = around_.door.gate();
    const absl::Status let_in =
        gate == nullptr ? absl::OkStatus() : gate->Identify(issued->certificate).status();
    if (let_in.ok()) {
      Give(*issued, response);
      runtime::Logger("access")->info("enrolled holder={}", *holder);
    }
    call.Finish(let_in);
  });
  return call.reactor();
}

grpc::ServerUnaryReactor* EnrolmentService::Renew(grpc::CallbackServerContext* context,
                                                  const v1::RenewRequest* request,
                                                  v1::RenewResponse* response) {
  const UnaryCall call(context, around_.door, "Enrolment/Renew");
  if (!call.Admit()) return call.reactor();
  const bool known = around_.door.gate() != nullptr;  // whoever is let in has a certificate then
  if (around_.enrolment == nullptr || !known) {
    call.Finish(EnrolmentOff());
    return call.reactor();
  }
  call.visit().About(NameOf(call.visit().who()));
  around_.files.Post([call, request, response, this] {
    const auto issued = around_.enrolment->Renew(
        call.visit().who().certificate, request->certificate_request(), runtime::WallSeconds());
    if (issued.ok()) Give(*issued, response);
    call.Finish(issued.status());
  });
  return call.reactor();
}

}  // namespace tactus::service
