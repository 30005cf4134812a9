// Keys, and requests for certificates of them, which show that one has the key without showing it.

#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tactus::identity {

// A new P-256 key, PEM. Error: Internal, OpenSSL's.
absl::StatusOr<std::string> MakeKey();

// A request for a certificate of the key, PEM (PKCS #10). It names nobody: whoever signs knows who
// asks. Errors: InvalidArgument, it is no key; Internal, OpenSSL's.
absl::StatusOr<std::string> MakeRequest(const std::string& key);

// Of the public key that a request has, its SHA-256, as 64 hexadecimal digits. Error:
// InvalidArgument, it is none, is longer than 16 KiB, was not signed by its key, or the key is a
// weak one.
absl::StatusOr<std::string> KeyHashOfRequest(const std::string& request);

// The same of the first certificate of a PEM text: what tokens pin an authority by, which stays the
// same when the authority's certificate is another one of the same key. Error: InvalidArgument, it
// has none.
absl::StatusOr<std::string> KeyHashOfCertificate(const std::string& pem);

}  // namespace tactus::identity
