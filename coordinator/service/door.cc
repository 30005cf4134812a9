#include "coordinator/service/door.h"

#include <grpc/grpc_security_constants.h>

#include <utility>

#include "coordinator/access/method_rules.h"
#include "runtime/now.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// Of the status page's channel, which has no transport that somebody could dial: whoever comes by
// the listener has shaken hands, and has an address.
bool IsInProcess(const grpc::CallbackServerContext& context, const std::string& peer) {
  const bool dialled = peer.starts_with("ipv4:") || peer.starts_with("ipv6:") ||
                       peer.starts_with("unix:") || peer.starts_with("unix-abstract:");
  return !dialled && context.auth_context()
                         ->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME)
                         .empty();
}

// Calls that change nothing until they say for whom, which they may never do.
bool PromisesLater(const std::string& method) {
  return method == "AgentSession/Session" || method == "Enrolment/Enrol";
}

bool IsRefusal(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status) ||
         access::BoundOf(status).has_value();
}

}  // namespace

bool IsLocal(const std::string& peer) {
  // gRPC writes the brackets of IPv6 as they are or percent-encoded, as its version has it;
  // ::ffff:127. is IPv4 on a socket of both families.
  return peer.starts_with("ipv4:127.") || peer.starts_with("unix:") ||
         peer.starts_with("unix-abstract:") || peer.starts_with("ipv6:[::1]") ||
         peer.starts_with("ipv6:%5B::1%5D") || peer.starts_with("ipv6:[::ffff:127.") ||
         peer.starts_with("ipv6:%5B::ffff:127.");
}

void Door::Refused(const std::string& who, const std::string& certificate, const std::string& path,
                   const absl::Status& status) const {
  if (certificate.empty() && !strangers_.Take(runtime::Now())) return;
  const absl::StatusOr<identity::Certificate> read = identity::ReadCertificate(certificate);
  around_.audit.WriteRefusal({.who = !who.empty() || !read.ok() ? who : ShortNameOf(read->holder),
                              .certificate = read.ok() ? read->serial : "",
                              .method = access::ShortMethod(path),
                              .code = absl::StatusCodeToString(status.code())});
}

Visit::Visit(const Door& door, grpc::CallbackServerContext* context, const char* method)
    : state_(std::make_shared<State>(State{.door = door, .method = method})) {
  state_->peer = context->peer();
  Identify(context);
  if (state_->admitted.ok()) Count(*context);
  if (!state_->admitted.ok() || !access::RuleOfShort(method).changes()) return;
  if (!PromisesLater(method)) state_->admitted = Promise();
}

void Door::RefusedConnections(std::uint64_t count, const std::string& host,
                              const std::string& why) const {
  around_.audit.WriteRefusal({.peer = host,
                              .method = "connection",
                              .about = std::to_string(count) + " refused: " + why,
                              .code = "RESOURCE_EXHAUSTED"});
}

// The page's own calls have bounds where they come in.
void Visit::Count(const grpc::CallbackServerContext& context) const {
  State& state = *state_;
  const std::string name = IsInProcess(context, state.peer) ? "" : bounded_name();
  if (name.empty()) return;
  state.place = state.door.calls_.Enter(name);
  if (state.place) return;
  state.admitted =
      access::Beyond(access::Bound::kCalls,
                     "calls: " + name + " has " + std::to_string(state.door.calls_.per_caller()) +
                         " under way, which is all that each may (--calls-per-user)");
}

absl::Status Visit::Promise() const {
  state_->slot = state_->door.around_.audit.Reserve();
  if (state_->slot != nullptr) return absl::OkStatus();
  return runtime::WithReason(
      absl::UnavailableError("audit: its lines cannot be written, and nothing is changed unseen"),
      {.reason = "AUDIT_FULL"});
}

void Visit::Identify(grpc::CallbackServerContext* context) const {
  State& state = *state_;
  const access::Gate* const gate = state.door.gate();
  const std::string method = state.method;
  if (gate == nullptr) {
    if (!method.starts_with("Admin/") || IsLocal(state.peer)) return;
    state.admitted = runtime::WithReason(
        absl::PermissionDeniedError("admin: found a call from " + state.peer +
                                    ", allowed are calls from the coordinator's own machine"),
        {.reason = "NOT_LOCAL"});
    return;
  }
  state.path = access::PathOf(method);
  const std::string pem = access::CertificateOf(*context->auth_context());
  if (pem.empty() && IsInProcess(*context, state.peer)) {
    state.who = {.kind = access::Principal::Kind::kPage, .role = v1::ROLE_VIEWER};
  } else {
    absl::StatusOr<access::Principal> who = gate->Identify(pem);
    state.admitted = who.status();
    if (!who.ok()) return;
    state.who = *std::move(who);
  }
  state.admitted = gate->AdmitMethod(state.who, state.path);
}

absl::Status Visit::Still() const {
  const access::Gate* const gate = state_->door.gate();
  const bool asked = state_->who.kind == access::Principal::Kind::kUser ||
                     state_->who.kind == access::Principal::Kind::kNode;
  return gate != nullptr && asked ? gate->Still(state_->who, state_->path) : absl::OkStatus();
}

access::AuditEntry Visit::Entry(const absl::Status& status) const {
  const State& state = *state_;
  // Who is not let in is not known, but what the certificate says of them is.
  return {.who = NameOf(state.who),
          .peer = state.peer,
          .certificate = state.who.certificate.serial,
          .method = state.method,
          .about = state.about,
          .code = absl::StatusCodeToString(status.code())};
}

void Visit::WriteDown(const absl::Status& status) const {
  access::AuditLog& audit = state_->door.around_.audit;
  if (state_->slot != nullptr) return audit.Write(std::move(state_->slot), Entry(status));
  const bool stranger = state_->who.kind == access::Principal::Kind::kStranger;
  if (!IsRefusal(status) || (stranger && !state_->door.strangers_.Take(runtime::Now()))) return;
  audit.WriteRefusal(Entry(status));
}

void Visit::Leave(const absl::Status& status) const {
  state_->place.reset();
  if (const std::optional<access::Bound> bound = access::BoundOf(status)) {
    state_->door.around_.metrics.CountRefusal(access::NameOf(*bound));
  }
  state_->door.around_.metrics.CountCall(state_->method, absl::StatusCodeToString(status.code()));
  WriteDown(status);
}

}  // namespace tactus::service
