// What a connection to or of a coordinator is made with: TLS with certificates at both ends, or
// nothing. The one place where gRPC's credentials are made.

#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "identity/certificate.h"

namespace grpc {
class ChannelCredentials;
class ServerCredentials;
}  // namespace grpc

namespace tactus::identity {

// What a program was told of it.
struct Security {
  // Folder with ca.pem, cert.pem and key.pem; empty: plain, without identities.
  std::string tls_dir{};
  // Plain, without identities, though the address is not loopback.
  bool insecure = false;
};

// Whether a connection to `address` ("host:port", or several with commas between them), or a
// listener there, may be as `security` says:
// with TLS, or at a loopback address, or since it was said aloud. Errors: InvalidArgument, with
// `flag` ("listen"), the address and what to do; both TLS and insecure.
absl::Status CheckExposure(const std::string& flag, const std::string& address,
                           const Security& security);

// What CheckExposure refuses an address with.
absl::Status Exposed(const std::string& flag, const std::string& address);

// Whether the folder's files are there, go together and are valid now; then whom they name.
// Errors: as CheckTlsTexts and ReadKeyFile, beginning with the path.
absl::StatusOr<Certificate> CheckTlsFolder(const std::string& tls_dir);

// Who has no certificate, and comes to get one. A certificate that is shown is verified either way.
enum class Strangers { kMayConnect, kMayNot };

// For a coordinator: asks each client for a certificate and verifies it. The files are read anew,
// within seconds, when they change. Errors: CheckTlsFolder's; FailedPrecondition, the certificate
// is not a coordinator's.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const std::string& tls_dir, Strangers strangers = Strangers::kMayNot);

// For whoever calls a coordinator. With TLS, the other end has to prove that it is the coordinator
// of the trust domain that the own certificate names: another certificate of the same authority is
// not enough, and under which name or address it is dialled does not matter. The files are read
// anew as above. Errors: CheckTlsFolder's.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(
    const std::string& tls_dir);

// For whoever has nothing but a token: shows no certificate, and takes for the coordinator whom
// IsPinnedCoordinator does. `wrong` is true once somebody else has answered. Error: Internal,
// OpenSSL's.
struct Bootstrap {
  std::shared_ptr<grpc::ChannelCredentials> credentials{};
  std::shared_ptr<std::atomic<bool>> wrong{};  // shared with gRPC's threads
};
absl::StatusOr<Bootstrap> MakeBootstrapCredentials(const std::string& pin);

}  // namespace tactus::identity
