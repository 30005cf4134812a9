// The three files of a --tls-dir as their owner makes and renews them.

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "identity/certificate.h"

namespace tactus::identity {

// From when on a certificate is to be renewed [s since 1970]: when two thirds of its life are over.
std::int64_t RenewalTime(const Certificate& certificate);

// Whose certificate the folder has, good or not. Errors: NotFound, it has none; InvalidArgument, as
// ReadCertificate; of the file system.
absl::StatusOr<Certificate> CertificateOfFolder(const std::string& folder);

// Whether whoever uses the folder has to come by a certificate first: there is none, or it is not
// valid any more at `now`.
bool NeedsCertificate(const std::string& folder, std::int64_t now);

// A request for a certificate of the folder's key; folder and key are made, 0700 and 0600, where
// they are not there. Errors: as ReadKeyFile; InvalidArgument, key.pem is none; of the file system.
absl::StatusOr<std::string> RequestFor(const std::string& folder);

// Puts what an authority gave beside the key: ca.pem where it is another, then cert.pem, each whole,
// 0644. `texts.key` is not looked at. Errors: FailedPrecondition or InvalidArgument, it does not go
// together with the key, and nothing is changed; of the file system.
absl::StatusOr<Certificate> KeepInFolder(const std::string& folder, TlsTexts texts);

}  // namespace tactus::identity
