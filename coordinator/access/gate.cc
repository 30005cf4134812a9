#include "coordinator/access/gate.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>

#include <utility>
#include <vector>

#include "coordinator/access/method_rules.h"
#include "identity/credentials.h"
#include "identity/secret_file.h"
#include "runtime/logging.h"
#include "runtime/now.h"
#include "runtime/status.h"

namespace tactus::access {
namespace {

constexpr std::size_t kCertificatesMax = 20'000;  // more than nodes, users and renewals of a week

absl::Status NotIdentified(const std::string& message) {
  return runtime::WithReason(absl::UnauthenticatedError(message), {.reason = "NOT_IDENTIFIED"});
}

absl::Status NotAllowed(const std::string& message) {
  return runtime::WithReason(absl::PermissionDeniedError(message), {.reason = "NOT_ALLOWED"});
}

const char* WordOf(v1::Role role) {
  switch (role) {
    case v1::ROLE_VIEWER:
      return "viewer";
    case v1::ROLE_SUBMITTER:
      return "submitter";
    case v1::ROLE_ADMIN:
      return "admin";
    case v1::ROLE_NODE:
      return "node";
    default:
      return "nobody";
  }
}

bool Covers(v1::Role role, const v1::MethodRule& rule) {
  if (role == v1::ROLE_NODE) return rule.nodes();
  return role != v1::ROLE_UNSPECIFIED && rule.users() != v1::ROLE_UNSPECIFIED &&
         role >= rule.users();
}

// Refuses what the gate does. Called by gRPC's threads, before the call is anybody's.
class Processor final : public grpc::AuthMetadataProcessor {
 public:
  Processor(const Gate& gate, Gate::Refused refused) : gate_(gate), refused_(std::move(refused)) {}

  bool IsBlocking() const override { return false; }  // it computes

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path_value = metadata.find(":path");
    const std::string path = path_value == metadata.end() ? ""
                                                          : std::string(path_value->second.data(),
                                                                        path_value->second.size());
    const absl::StatusOr<Principal> who = gate_.Identify(CertificateOf(*context));
    const absl::Status status = who.ok() ? gate_.AdmitMethod(*who, path) : who.status();
    if (status.ok()) return grpc::Status::OK;
    refused_(who.ok() ? NameOf(*who) : "", CertificateOf(*context), path, status);
    return runtime::ToGrpc(status);
  }

 private:
  const Gate& gate_;
  const Gate::Refused refused_;
};

}  // namespace

std::string CertificateOf(const grpc::AuthContext& context) {
  const std::vector<grpc::string_ref> found =
      context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  return found.size() == 1 ? std::string(found.front().data(), found.front().size()) : "";
}

std::shared_ptr<grpc::AuthMetadataProcessor> Gate::MakeProcessor(Refused refused) const {
  return std::make_shared<Processor>(*this, std::move(refused));
}

Gate::Gate(const GateOptions& options, std::string domain)
    : options_(options), domain_(std::move(domain)) {}

Gate::~Gate() { thread_.Stop(); }

absl::StatusOr<std::unique_ptr<Gate>> Gate::Open(const GateOptions& options) {
  const absl::StatusOr<identity::Certificate> own = identity::CheckTlsFolder(options.tls_dir);
  if (!own.ok()) return own.status();
  std::unique_ptr<Gate> gate(new Gate(options, own->holder.domain));
  absl::StatusOr<Texts> texts = gate->ReadTexts();
  if (!texts.ok()) return texts.status();
  absl::StatusOr<Rules> rules = gate->ReadRules(*texts);
  if (!rules.ok()) return rules.status();
  rules->version = 1;
  gate->texts_ = *std::move(texts);
  {
    const threads::MutexLock lock(gate->mutex_);
    gate->rules_ = std::make_shared<const Rules>(*std::move(rules));
  }
  gate->thread_.RunAndWait([&gate] {
    gate->timer_ = std::make_unique<runtime::Timer>(gate->thread_);
    gate->LookAgain();
  });
  return gate;
}

namespace {

std::string ListIn(const std::string& folder) { return folder + "/" + identity::kRevokedFile; }

// A list of the revoked that was there and is not any more is no empty one: who took it away may
// have meant something else.
absl::StatusOr<std::string> ReadList(const std::string& folder, const std::string& before) {
  absl::StatusOr<std::string> revoked = identity::ReadSmallFile(ListIn(folder));
  if (absl::IsNotFound(revoked.status()) && before.empty()) return std::string();
  return revoked;
}

// Errors: InvalidArgument, with the file.
absl::StatusOr<identity::Revocations> ParseList(const std::string& folder,
                                                const std::string& text) {
  absl::StatusOr<identity::Revocations> revoked = identity::Revocations::Parse(text);
  if (revoked.ok()) return revoked;
  return absl::InvalidArgumentError(ListIn(folder) + ": " +
                                    std::string(revoked.status().message()));
}

}  // namespace

absl::StatusOr<Gate::Texts> Gate::ReadTexts() const {
  Texts texts;
  if (!options_.policy_file.empty()) {
    absl::StatusOr<std::string> policy = identity::ReadSmallFile(options_.policy_file);
    if (!policy.ok()) {
      return absl::Status(policy.status().code(),
                          "policy: " + std::string(policy.status().message()));
    }
    texts.policy = *std::move(policy);
  }
  absl::StatusOr<std::string> revoked = ReadList(options_.tls_dir, texts_.revoked);
  if (!revoked.ok()) return revoked.status();
  texts.revoked = *std::move(revoked);
  if (options_.shared_folder.empty()) return texts;
  revoked = ReadList(options_.shared_folder, texts_.shared_revoked);
  if (!revoked.ok()) return revoked.status();
  texts.shared_revoked = *std::move(revoked);
  return texts;
}

absl::StatusOr<Gate::Rules> Gate::ReadRules(const Texts& texts) const {
  Rules rules;
  if (!options_.policy_file.empty()) {
    absl::StatusOr<Policy> policy = Policy::Parse(texts.policy);
    if (!policy.ok()) {
      return absl::InvalidArgumentError("policy: " + options_.policy_file + ": " +
                                        std::string(policy.status().message()));
    }
    rules.policy = *std::move(policy);
  }
  absl::StatusOr<identity::Revocations> revoked = ParseList(options_.tls_dir, texts.revoked);
  if (!revoked.ok()) return revoked.status();
  const auto shared = ParseList(options_.shared_folder, texts.shared_revoked);
  if (!shared.ok()) return shared.status();
  rules.revocations = *std::move(revoked);
  rules.revocations.Include(*shared);
  return rules;
}

void Gate::LookAgain() {
  timer_->After(options_.look, [this] {
    Look();
    LookAgain();
  });
}

void Gate::Look() {
  absl::StatusOr<Texts> texts = ReadTexts();
  if (texts.ok() && *texts == texts_) {
    complaint_.clear();
    return;
  }
  absl::StatusOr<Rules> rules = texts.ok() ? ReadRules(*texts) : texts.status();
  if (!rules.ok()) {
    const std::string complaint(rules.status().message());
    if (std::exchange(complaint_, complaint) == complaint) return;
    runtime::Logger("access")->error("access rules not read, those of before stay error={}",
                                     runtime::Quoted(complaint));
    return;
  }
  complaint_.clear();
  texts_ = *std::move(texts);
  runtime::Logger("access")->info("access rules read revoked={}", rules->revocations.size());
  const threads::MutexLock lock(mutex_);
  rules->version = rules_->version + 1;
  rules_ = std::make_shared<const Rules>(*std::move(rules));
}

std::shared_ptr<const Gate::Rules> Gate::rules() const {
  const threads::MutexLock lock(mutex_);
  return rules_;
}

// Reading one takes some 20 us, and everybody comes again.
absl::StatusOr<identity::Certificate> Gate::Read(const std::string& pem) const {
  {
    const threads::MutexLock lock(mutex_);
    const auto known = certificates_.find(pem);
    if (known != certificates_.end()) return known->second;
  }
  absl::StatusOr<identity::Certificate> certificate = identity::ReadCertificate(pem);
  if (!certificate.ok()) return certificate;
  const threads::MutexLock lock(mutex_);
  if (certificates_.size() >= kCertificatesMax) certificates_.clear();
  certificates_[pem] = *certificate;
  return certificate;
}

absl::StatusOr<Principal> Gate::Identify(const std::string& pem) const {
  if (pem.empty()) return Principal{.kind = Principal::Kind::kStranger};
  const absl::StatusOr<identity::Certificate> certificate = Read(pem);
  if (!certificate.ok()) return NotIdentified(std::string(certificate.status().message()));
  return Judge(*certificate);
}

absl::StatusOr<Principal> Gate::Judge(const identity::Certificate& certificate) const {
  const std::string name = ShortNameOf(certificate.holder);
  if (certificate.holder.domain != domain_) {
    return NotIdentified("certificate: is of the trust domain " + certificate.holder.domain +
                         ", allowed is " + domain_);
  }
  const std::shared_ptr<const Rules> rules = this->rules();
  if (rules->revocations.Has(certificate)) {
    return NotIdentified("certificate: that of " + name + " is revoked");
  }
  const v1::Role role = rules->policy.RoleOf(certificate.holder);
  if (role == v1::ROLE_UNSPECIFIED) {
    return NotAllowed(name + ": has no role at this coordinator; its policy gives roles");
  }
  // A connection may last longer than the certificate that opened it. Last of all: who is revoked
  // as well is not merely late with another one.
  const std::int64_t now = runtime::WallSeconds();
  if (now >= certificate.end) {
    return runtime::WithReason(
        absl::UnauthenticatedError("certificate: that of " + name + " has expired"),
        {.reason = "CERTIFICATE_EXPIRED"});
  }
  const bool node = certificate.holder.kind == identity::Kind::kNode;
  return Principal{.kind = node ? Principal::Kind::kNode : Principal::Kind::kUser,
                   .name = certificate.holder.name,
                   .role = role,
                   .certificate = certificate,
                   .rules = rules->version};
}

absl::Status Gate::AdmitMethod(const Principal& who, const std::string& path) const {
  const v1::MethodRule* const rule = RuleOf(path);
  if (who.kind == Principal::Kind::kStranger) {
    return rule != nullptr && rule->strangers() ? absl::OkStatus()
                                                : NotIdentified("certificate: is missing");
  }
  if (rule == nullptr) return NotAllowed(NameOf(who) + ": there is no call " + path);
  if (Covers(who.role, *rule)) return absl::OkStatus();
  std::string allowed = rule->users() == v1::ROLE_UNSPECIFIED ? "" : WordOf(rule->users());
  if (rule->nodes()) allowed += allowed.empty() ? "node" : " or node";
  if (rule->strangers()) allowed = "caller without a certificate";
  return NotAllowed(ShortMethod(path) + ": " + NameOf(who) + " is a " + WordOf(who.role) +
                    ", it asks for a " + allowed);
}

absl::Status Gate::Still(const Principal& who, const std::string& path) const {
  const std::int64_t now = runtime::WallSeconds();
  if (rules()->version == who.rules && now < who.certificate.end) return absl::OkStatus();
  const absl::StatusOr<Principal> again = Judge(who.certificate);
  return again.ok() ? AdmitMethod(*again, path) : again.status();
}

}  // namespace tactus::access
