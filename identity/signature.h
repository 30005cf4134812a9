// Signatures by the key of a certificate, and whose certificate it is, at a time of before.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "identity/certificate.h"

namespace tactus::identity {

// Of SHA-256 of the bytes: ECDSA as DER for a P-256 key, which others read as well (openssl dgst,
// cosign). `key` is PEM. Errors: InvalidArgument, it is no private key; Internal, OpenSSL's.
absl::StatusOr<std::string> Sign(const std::string& key, std::string_view bytes);

// Whether the certificate's key, PEM, made the signature of these bytes. Errors: InvalidArgument,
// there is no certificate; DataLoss, it did not.
absl::Status CheckSignature(const std::string& certificate, std::string_view bytes,
                            std::string_view signature);

// Whether the authority, PEM, has signed the certificate, and both were valid at `time` [s since
// 1970]; then whom it names. That one of them has expired since is not looked at. Errors:
// InvalidArgument, one of them is none, or the authority has not signed it; FailedPrecondition, it
// was not valid then.
absl::StatusOr<Certificate> CheckIssued(const std::string& certificate,
                                        const std::string& authority, std::int64_t time);

}  // namespace tactus::identity
