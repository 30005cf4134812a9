#include "identity/tls_folder.h"

#include <algorithm>
#include <utility>

#include "identity/authority.h"
#include "identity/request.h"
#include "identity/secret_file.h"

namespace tactus::identity {

std::int64_t RenewalTime(const Certificate& certificate) {
  // An own authority's begin before they are made.
  const std::int64_t life = certificate.end - certificate.begin - kClockSkewSeconds;
  return certificate.end - std::max<std::int64_t>(life, 0) / 3;
}

absl::StatusOr<Certificate> CertificateOfFolder(const std::string& folder) {
  const absl::StatusOr<std::string> pem = ReadSmallFile(folder + "/cert.pem");
  if (!pem.ok()) return pem.status();
  absl::StatusOr<Certificate> certificate = ReadCertificate(*pem);
  if (certificate.ok()) return certificate;
  return absl::InvalidArgumentError(folder +
                                    "/cert.pem: " + std::string(certificate.status().message()));
}

bool NeedsCertificate(const std::string& folder, std::int64_t now) {
  const absl::StatusOr<Certificate> certificate = CertificateOfFolder(folder);
  return certificate.ok() ? now >= certificate->end : absl::IsNotFound(certificate.status());
}

absl::StatusOr<std::string> RequestFor(const std::string& folder) {
  absl::StatusOr<std::string> key = ReadKeyFile(folder + "/key.pem");
  if (absl::IsNotFound(key.status())) {
    key = MakeKey();
    if (!key.ok()) return key.status();
    absl::Status made = MakePrivateFolder(folder);
    if (made.ok()) made = WriteNewFile(folder + "/key.pem", *key, 0600);
    if (!made.ok()) return made;
  }
  if (!key.ok()) return key.status();
  absl::StatusOr<std::string> request = MakeRequest(*key);
  if (request.ok()) return request;
  return absl::Status(request.status().code(),
                      folder + "/key.pem: " + std::string(request.status().message()));
}

absl::StatusOr<Certificate> KeepInFolder(const std::string& folder, TlsTexts texts) {
  absl::StatusOr<std::string> key = ReadKeyFile(folder + "/key.pem");
  if (!key.ok()) return key.status();
  texts.key = *std::move(key);
  const absl::StatusOr<Certificate> own = ReadCertificate(texts.certificate);
  if (!own.ok()) return own.status();
  // Whoever issued it knows the time; a clock here that is late is seen when it is used.
  absl::StatusOr<Certificate> checked = CheckTlsTexts(texts, own->begin);
  if (!checked.ok()) return checked;
  const absl::StatusOr<std::string> former = ReadSmallFile(folder + "/ca.pem");
  absl::Status status;
  if (!former.ok() || *former != texts.authority) {
    status = ReplaceFile(folder + "/ca.pem", texts.authority, 0644);
  }
  if (status.ok()) status = ReplaceFile(folder + "/cert.pem", texts.certificate, 0644);
  if (!status.ok()) return status;
  return checked;
}

}  // namespace tactus::identity
