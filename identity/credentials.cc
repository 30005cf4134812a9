#include "identity/credentials.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <atomic>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "identity/authority.h"
#include "identity/name.h"
#include "identity/secret_file.h"
#include "runtime/host_port.h"
#include "runtime/now.h"

namespace tactus::identity {
namespace {

namespace tls = grpc::experimental;

constexpr unsigned kRefreshSeconds = 5;

std::shared_ptr<tls::CertificateProviderInterface> WatcherOf(const std::string& tls_dir) {
  return std::make_shared<tls::FileWatcherCertificateProvider>(
      tls_dir + "/key.pem", tls_dir + "/cert.pem", tls_dir + "/ca.pem", kRefreshSeconds);
}

// Lets the coordinator of one trust domain pass. gRPC has verified the chain by then.
class CoordinatorVerifier final : public tls::ExternalCertificateVerifier {
 public:
  explicit CoordinatorVerifier(std::string domain)
      : expected_(SpiffeIdOf({.domain = std::move(domain), .kind = Kind::kCoordinator})) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const std::vector<grpc::string_ref> uris = request->uri_names();
    const bool right =
        uris.size() == 1 && std::string(uris.front().data(), uris.front().size()) == expected_;
    *status =
        right ? grpc::Status::OK
              : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "who answers is not " + expected_);
    return true;  // decided at once
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string expected_;
};

// Lets a coordinator pass whose authority a token pins: here nobody else has looked at the chain.
class PinVerifier final : public tls::ExternalCertificateVerifier {
 public:
  PinVerifier(std::string pin, std::shared_ptr<std::atomic<bool>> wrong)
      : pin_(std::move(pin)), wrong_(std::move(wrong)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const grpc::string_ref chain = request->peer_cert_full_chain();
    const bool right =
        IsPinnedCoordinator({chain.data(), chain.size()}, pin_, runtime::WallSeconds());
    wrong_->store(!right);
    *status = right ? grpc::Status::OK
                    : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "not the pinned authority's");
    return true;  // decided at once
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string pin_;
  const std::shared_ptr<std::atomic<bool>> wrong_;
};

}  // namespace

absl::Status CheckExposure(const std::string& flag, const std::string& address,
                           const Security& security) {
  if (!security.tls_dir.empty() && security.insecure) {
    return absl::InvalidArgumentError("insecure: found beside --tls-dir; allowed is one of them");
  }
  if (!security.tls_dir.empty() || security.insecure) return absl::OkStatus();
  for (const std::string& part : runtime::SplitAddresses(address)) {
    const std::optional<runtime::HostPort> parsed = runtime::ParseHostPort(part);
    if (parsed && !runtime::IsLoopback(parsed->host)) return Exposed(flag, part);
  }
  return absl::OkStatus();
}

absl::Status Exposed(const std::string& flag, const std::string& address) {
  return absl::InvalidArgumentError(
      flag + ": found " + address +
      ", which is not loopback; give --tls-dir DIR, or --insecure to go without identities");
}

absl::StatusOr<Certificate> CheckTlsFolder(const std::string& tls_dir) {
  TlsTexts texts;
  for (const auto& [name, text] :
       {std::pair{"/ca.pem", &texts.authority}, std::pair{"/cert.pem", &texts.certificate},
        std::pair{"/key.pem", &texts.key}}) {
    absl::StatusOr<std::string> read =
        text == &texts.key ? ReadKeyFile(tls_dir + name) : ReadSmallFile(tls_dir + name);
    if (!read.ok()) {
      return absl::Status(read.status().code(), "tls-dir: " + std::string(read.status().message()));
    }
    *text = *std::move(read);
  }
  absl::StatusOr<Certificate> certificate = CheckTlsTexts(texts, runtime::WallSeconds());
  if (certificate.ok()) return certificate;
  return absl::Status(certificate.status().code(),
                      "tls-dir: " + tls_dir + "/" + std::string(certificate.status().message()));
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const std::string& tls_dir, Strangers strangers) {
  const absl::StatusOr<Certificate> own = CheckTlsFolder(tls_dir);
  if (!own.ok()) return own.status();
  if (own->holder.kind != Kind::kCoordinator) {
    return absl::FailedPreconditionError("tls-dir: " + tls_dir + "/cert.pem: is that of " +
                                         ShortNameOf(own->holder) +
                                         "; allowed is one of tactus admin issue --coordinator");
  }
  tls::TlsServerCredentialsOptions options(WatcherOf(tls_dir));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(strangers == Strangers::kMayConnect
                                    ? GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY
                                    : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return tls::TlsServerCredentials(options);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const std::string& tls_dir) {
  if (tls_dir.empty()) return grpc::InsecureChannelCredentials();
  const absl::StatusOr<Certificate> own = CheckTlsFolder(tls_dir);
  if (!own.ok()) return own.status();
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(WatcherOf(tls_dir));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  options.set_check_call_host(false);  // the id says who it is, not the address
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<CoordinatorVerifier>(own->holder.domain));
  return tls::TlsCredentials(options);
}

absl::StatusOr<Bootstrap> MakeBootstrapCredentials(const std::string& pin) {
  // gRPC looks for this machine's own authorities where it is given none, and there may be none:
  // one that has signed nothing. Who answers is looked at by the verifier alone.
  const absl::StatusOr<AuthorityTexts> nobody =
      MakeAuthority(kDomainDefault, runtime::WallSeconds(), 1);
  if (!nobody.ok()) return nobody.status();
  Bootstrap made = {.credentials = nullptr, .wrong = std::make_shared<std::atomic<bool>>(false)};
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<tls::StaticDataCertificateProvider>(nobody->certificate));
  options.watch_root_certs();
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<PinVerifier>(pin, made.wrong));
  made.credentials = tls::TlsCredentials(options);
  return made;
}

}  // namespace tactus::identity
