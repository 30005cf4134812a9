// What a certificate says of its holder.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "identity/name.h"

namespace tactus::identity {

struct Certificate {
  Name holder{};
  std::string serial{};       // hexadecimal, in lower case
  std::int64_t begin = 0;     // seconds since 1970, UTC
  std::int64_t end = 0;       // likewise: from then on it is not valid
  std::string fingerprint{};  // SHA-256 of it as DER, 64 hexadecimal digits
  // Names beside the id, for other programs.
  std::vector<std::string> dns{};
  std::vector<std::string> addresses{};  // IP
};

// Reads the first certificate of a PEM text. That somebody trusts it is not looked at: TLS has
// done so. Errors: InvalidArgument, it is none, or does not name exactly one holder by exactly one
// URI.
absl::StatusOr<Certificate> ReadCertificate(const std::string& pem);

// Whether key, certificate and authority of a TLS folder go together and are valid at `now` [s
// since 1970]; then whom the certificate names. Errors: InvalidArgument or FailedPrecondition,
// beginning with the file.
struct TlsTexts {
  std::string authority{};    // ca.pem
  std::string certificate{};  // cert.pem
  std::string key{};          // key.pem
};
absl::StatusOr<Certificate> CheckTlsTexts(const TlsTexts& texts, std::int64_t now);

// Whether what a server shows, PEM, its own certificate first, is that of a coordinator, for servers,
// valid at `now`, and signed by an authority that is among the others and whose key has the hash
// `pin` (KeyHashOfCertificate): all that is known of it by who has nothing but a token.
bool IsPinnedCoordinator(const std::string& chain, const std::string& pin, std::int64_t now);

}  // namespace tactus::identity
