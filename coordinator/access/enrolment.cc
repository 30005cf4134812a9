#include "coordinator/access/enrolment.h"

#include <google/protobuf/util/json_util.h>

#include <utility>

#include "identity/authority.h"
#include "identity/credentials.h"
#include "identity/request.h"
#include "identity/rotation.h"
#include "identity/secret_file.h"
#include "identity/tls_folder.h"
#include "identity/token.h"
#include "runtime/now.h"
#include "runtime/sha256.h"
#include "runtime/status.h"

namespace tactus::access {
namespace {

using KeptToken = v1::KeptTokens::KeptToken;

// A token that is too old is known as such for a while, and one that was used, for its key.
constexpr std::int64_t kRememberedSeconds = identity::kDaySeconds;

absl::Status TokenRefused(const std::string& why) {
  return runtime::WithReason(
      absl::UnauthenticatedError("token: " + why + "; tactus admin token makes another"),
      {.reason = "TOKEN_REFUSED"});
}

absl::Status OfFolder(const char* option, const absl::Status& status) {
  return absl::Status(status.code(), std::string(option) + ": " + std::string(status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Enrolment>> Enrolment::Open(const EnrolmentOptions& options) {
  const std::int64_t now = runtime::WallSeconds();
  const auto authority = identity::ReadAuthority(options.authority_folder, now);
  if (!authority.ok()) return OfFolder("ca-dir", authority.status());
  std::unique_ptr<Enrolment> enrolment(new Enrolment(options));
  const auto own = identity::CertificateOfFolder(options.tls_dir);
  if (absl::IsNotFound(own.status())) {
    const auto made = identity::IssueInto(
        options.authority_folder, options.tls_dir,
        {.kind = identity::Kind::kCoordinator, .now = now, .seconds = options.life});
    if (!made.ok()) return OfFolder("tls-dir", made.status());
  } else if (own.ok() && own->holder.kind == identity::Kind::kCoordinator &&
             (now >= identity::RenewalTime(*own) || enrolment->OwnIsStale())) {
    const auto renewed = enrolment->IssueOwn();
    if (!renewed.ok()) return OfFolder("tls-dir", renewed.status());
  }
  const absl::Status read = enrolment->ReadTokens();
  if (!read.ok()) return read;
  Enrolment* const self = enrolment.get();  // which outlives its keeper
  enrolment->keeper_ = std::make_unique<identity::Keeper>(
      identity::Keeper::Options{.folder = options.tls_dir},
      identity::Keeper::Handlers{.renew = [self] { return self->IssueOwn(); },
                                 .stale = [self] { return self->OwnIsStale(); }});
  return enrolment;
}

absl::StatusOr<identity::Certificate> Enrolment::IssueOwn() const {
  return identity::RenewIn(options_.authority_folder, options_.tls_dir,
                           {.now = runtime::WallSeconds(), .seconds = options_.life});
}

// Where the authority's folder trusts others by now, or the own certificate shows none of them.
bool Enrolment::OwnIsStale() const {
  const auto authority = identity::ReadAuthority(options_.authority_folder, runtime::WallSeconds());
  const auto trusted = identity::ReadSmallFile(options_.tls_dir + "/ca.pem");
  const auto own = identity::ReadSmallFile(options_.tls_dir + "/cert.pem");
  if (!authority.ok() || !trusted.ok() || !own.ok()) return false;
  const std::string end = "-----END CERTIFICATE-----";
  return *trusted != authority->authorities || own->find(end) == own->rfind(end);
}

absl::Status Enrolment::ReadTokens() {
  const absl::StatusOr<std::string> text = identity::ReadSmallFile(options_.tokens_file);
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  if (!text.ok()) return text.status();
  const auto read = google::protobuf::util::JsonStringToMessage(*text, &tokens_);
  if (read.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      options_.tokens_file + ": " + std::string(read.message()) +
      "; without the file, the tokens that were made are worth nothing, and all else stays");
}

absl::Status Enrolment::WriteTokens(std::int64_t now) {
  v1::KeptTokens kept;
  for (const KeptToken& token : tokens_.tokens()) {
    if (now < token.expires() + kRememberedSeconds) *kept.add_tokens() = token;
  }
  std::string json;
  const auto written = google::protobuf::util::MessageToJsonString(kept, &json);
  if (!written.ok()) return absl::InternalError(std::string(written.message()));
  const absl::Status replaced = identity::ReplaceFile(options_.tokens_file, json + "\n", 0600);
  if (replaced.ok()) tokens_ = std::move(kept);
  return replaced;
}

absl::StatusOr<Enrolment::NewToken> Enrolment::CreateToken(const std::string& holder,
                                                           std::int64_t seconds, std::int64_t now) {
  int waiting = 0;
  for (const KeptToken& token : tokens_.tokens()) waiting += now < token.expires() ? 1 : 0;
  if (waiting >= options_.tokens_max) {
    return runtime::WithReason(
        absl::ResourceExhaustedError("token: " + std::to_string(waiting) +
                                     " are not too old yet, and no more are made"),
        {.reason = "TOO_MANY_TOKENS"});
  }
  const auto authority = identity::ReadAuthority(options_.authority_folder, now);
  if (!authority.ok()) return authority.status();
  const auto pin = identity::KeyHashOfCertificate(authority->certificate);
  if (!pin.ok()) return pin.status();
  const absl::StatusOr<identity::Token> token = identity::MakeToken(*pin);
  if (!token.ok()) return token.status();
  KeptToken* const kept = tokens_.add_tokens();
  kept->set_sha256(runtime::Sha256Of(token->secret));
  kept->set_holder(holder);
  kept->set_expires(now + seconds);
  const absl::Status written = WriteTokens(now);
  if (written.ok()) return NewToken{.text = TokenText(*token), .expires = now + seconds};
  tokens_.mutable_tokens()->RemoveLast();
  return written;
}

// All of them are compared, whichever it is.
KeptToken* Enrolment::Find(const std::string& token) const {
  const std::optional<identity::Token> parsed = identity::ParseToken(token);
  if (!parsed) return nullptr;
  const std::string hash = runtime::Sha256Of(parsed->secret);
  KeptToken* found = nullptr;
  for (KeptToken& kept : *tokens_.mutable_tokens()) {
    if (identity::SameSecret(kept.sha256(), hash)) found = &kept;
  }
  return found;
}

absl::StatusOr<std::string> Enrolment::HolderOf(const std::string& token, std::int64_t now) const {
  const KeptToken* const kept = Find(token);
  if (kept != nullptr && now < kept->expires()) return kept->holder();
  if (!wrong_.Take(runtime::Now())) {
    return runtime::WithReason(
        absl::ResourceExhaustedError("token: too many wrong ones came; try again in a minute"),
        {.reason = "TOO_MANY_WRONG_TOKENS"});
  }
  if (kept == nullptr) return TokenRefused("is not one of this coordinator's");
  return TokenRefused("was valid until " + runtime::UtcText(kept->expires()));
}

absl::StatusOr<Enrolment::Issued> Enrolment::Enrol(const std::string& token,
                                                   const std::string& request, std::int64_t now) {
  const absl::StatusOr<std::string> holder = HolderOf(token, now);
  if (!holder.ok()) return holder.status();
  const absl::StatusOr<std::string> key = identity::KeyHashOfRequest(request);
  if (!key.ok()) return key.status();
  KeptToken* const kept = Find(token);
  if (!kept->key_sha256().empty() && !identity::SameSecret(kept->key_sha256(), *key)) {
    return TokenRefused("was used already");
  }
  if (kept->key_sha256().empty()) {
    kept->set_key_sha256(*key);
    const absl::Status written = WriteTokens(now);  // before anything is signed
    if (!written.ok()) {
      Find(token)->clear_key_sha256();
      return written;
    }
  }
  const auto name = identity::ParseShortName(*holder, identity::kDomainDefault);
  if (!name) return absl::InternalError(options_.tokens_file + ": a token is nobody's");
  return Sign({.kind = name->kind, .name = name->name, .now = now, .request = request});
}

absl::StatusOr<Enrolment::Issued> Enrolment::Renew(const identity::Certificate& present,
                                                   const std::string& request,
                                                   std::int64_t now) const {
  return Sign({.kind = present.holder.kind,
               .name = present.holder.name,
               .dns = present.dns,
               .addresses = present.addresses,
               .now = now,
               .request = request});
}

// The request is there: without one, the authority would make a key.
absl::StatusOr<Enrolment::Issued> Enrolment::Sign(identity::CertificateOrder order) const {
  const absl::StatusOr<std::string> key = identity::KeyHashOfRequest(order.request);
  if (!key.ok()) return key.status();
  const auto authority = identity::ReadAuthority(options_.authority_folder, order.now);
  if (!authority.ok()) return authority.status();
  order.seconds = options_.life;
  const auto issued = identity::IssueCertificate(*authority, order);
  if (!issued.ok()) return issued.status();
  return Issued{.certificate = issued->certificate, .authorities = issued->authority};
}

}  // namespace tactus::access
