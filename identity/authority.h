// A small certificate authority: one self-signed key, certificates of a few days.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "identity/certificate.h"
#include "identity/name.h"

namespace tactus::identity {

inline constexpr std::int64_t kDaySeconds = 24 * 3600;
// Before now, of every certificate's beginning: clocks differ.
inline constexpr std::int64_t kClockSkewSeconds = 300;

// An authority's certificate and key, PEM.
struct AuthorityTexts {
  std::string certificate{};
  std::string key{};
  std::string authorities{};  // all that are to be trusted, this one too; empty: it alone
};

// Makes a P-256 key and a certificate of it for `domain`, valid from `now` [s since 1970] less
// kClockSkewSeconds on for `days`. Errors: InvalidArgument, no such domain or days below 1;
// Internal, OpenSSL's.
absl::StatusOr<AuthorityTexts> MakeAuthority(const std::string& domain, std::int64_t now, int days);

// The trust domain of an authority, by its certificate, PEM. Error: InvalidArgument, it is none.
absl::StatusOr<std::string> DomainOfAuthority(const std::string& pem);

// What a certificate is to say.
struct CertificateOrder {
  Kind kind = Kind::kUser;
  std::string name{};                      // empty for the coordinator
  std::vector<std::string> dns{};          // names beside the id, for other programs
  std::vector<std::string> addresses{};    // IP addresses, likewise
  std::int64_t now = 0;                    // [s since 1970]
  std::int64_t seconds = 7 * kDaySeconds;  // from now on; > 0
  std::string key{};                       // PEM; empty: a new one is made
  // PEM of PKCS #10, of whoever keeps the key; that of the texts is empty then. Not beside `key`.
  std::string request{};
};

// Has the authority sign a key, which is P-256 where it is made here: the coordinator's is for servers alone, the
// others' for clients alone. It does not outlive the authority's own. The coordinator's certificate
// is followed by the authority's. Errors: InvalidArgument, what in the order or the authority is
// wrong; Internal, OpenSSL's.
absl::StatusOr<TlsTexts> IssueCertificate(const AuthorityTexts& authority,
                                          const CertificateOrder& order);

// Writes ca.pem (0644) and ca-key.pem (0600) into `folder`, which is made, 0700, if it is not
// there. Errors: AlreadyExists, one of them is there, and nothing is changed; of MakeAuthority; of
// the file system.
absl::Status InitAuthority(const std::string& folder, const std::string& domain, std::int64_t now,
                           int days);

// Issues by the authority of `authority_folder` and writes ca.pem, cert.pem and key.pem (0600) into
// `folder`, likewise. Errors: as InitAuthority; NotFound, there is no authority.
absl::StatusOr<Certificate> IssueInto(const std::string& authority_folder,
                                      const std::string& folder, const CertificateOrder& order);

// Issues anew for the holder and the key of `folder`, of which cert.pem is replaced, and ca.pem
// where it is another: who uses the folder finds a pair that goes together at any moment. The
// order's kind, name and key are filled in, and the names beside, where it has none. Errors: likewise; InvalidArgument, there is no certificate of that authority's
// domain.
absl::StatusOr<Certificate> RenewIn(const std::string& authority_folder, const std::string& folder,
                                    CertificateOrder order);

}  // namespace tactus::identity
