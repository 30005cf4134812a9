// Who comes to have a certificate: tokens, and the authority that signs.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/access/rate.h"
#include "identity/authority.h"
#include "identity/certificate.h"
#include "identity/keeper.h"
#include "tactus/v1/access.pb.h"

namespace tactus::access {

struct EnrolmentOptions {
  std::string authority_folder{};  // of tactus admin init-ca
  std::string tls_dir{};           // the coordinator's own
  std::string tokens_file{};       // v1::KeptTokens as JSON; made when a token is
  std::int64_t life = 0;           // of certificates [s], > 0
  int tokens_max = 1000;           // that wait to be used
};

// A coordinator's. One thread at a time, which blocks on files, but for the own certificate, which
// is kept on a thread of its own.
class Enrolment {
 public:
  // Sees to it that --tls-dir has a coordinator's certificate of that authority, young and followed
  // by the authority's own, and keeps it so. Errors: InvalidArgument, NotFound or
  // FailedPrecondition, what is in the folders is wrong; of the file system.
  static absl::StatusOr<std::unique_ptr<Enrolment>> Open(const EnrolmentOptions& options);

  struct NewToken {
    std::string text{};
    std::int64_t expires = 0;  // [s since 1970]
  };
  // `holder`: "node/gpu-7" or "user/alice". Errors: ResourceExhausted, as many wait as may;
  // as identity::ReadAuthority; of the file system.
  absl::StatusOr<NewToken> CreateToken(const std::string& holder, std::int64_t seconds,
                                       std::int64_t now);

  // Whom a token makes: "node/gpu-7". Errors: Unauthenticated, TOKEN_REFUSED, it makes nobody, or
  // is too old; ResourceExhausted, too many such came just now.
  absl::StatusOr<std::string> HolderOf(const std::string& token, std::int64_t now) const;

  struct Issued {
    std::string certificate{};  // PEM
    std::string authorities{};  // PEM, all that are to be trusted
  };
  // Uses the token up for the key of `request`, for which it goes on to be good, and signs. Errors:
  // of HolderOf; Unauthenticated, TOKEN_REFUSED, another key has used it; InvalidArgument, of the
  // request; of the file system, and then nothing is signed.
  absl::StatusOr<Issued> Enrol(const std::string& token, const std::string& request,
                               std::int64_t now);

  // Signs another certificate for whom gRPC knows by `present`. Errors: as Enrol, of the request.
  absl::StatusOr<Issued> Renew(const identity::Certificate& present, const std::string& request,
                               std::int64_t now) const;

 private:
  explicit Enrolment(const EnrolmentOptions& options) : options_(options) {}
  absl::StatusOr<identity::Certificate> IssueOwn() const;
  bool OwnIsStale() const;
  absl::Status ReadTokens();
  absl::Status WriteTokens(std::int64_t now);
  // Null: there is none.
  v1::KeptTokens::KeptToken* Find(const std::string& token) const;
  absl::StatusOr<Issued> Sign(identity::CertificateOrder order) const;

  const EnrolmentOptions options_;
  mutable v1::KeptTokens tokens_;
  const Rate wrong_{{.burst = 20, .per_second = 1}};
  std::unique_ptr<identity::Keeper> keeper_;
};

}  // namespace tactus::access
