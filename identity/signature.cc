#include "identity/signature.h"

#include <memory>

#include "identity/openssl_types.h"
#include "runtime/now.h"

namespace tactus::identity {
namespace {

using DigestOwner = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;

const unsigned char* BytesOf(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

absl::StatusOr<std::string> Sign(const std::string& key_text, std::string_view bytes) {
  const KeyOwner key = ReadKey(key_text);
  if (key == nullptr) return absl::InvalidArgumentError("key: " + LastError());
  const DigestOwner digest(EVP_MD_CTX_new());
  std::size_t size = 0;
  if (EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(digest.get(), nullptr, &size, BytesOf(bytes), bytes.size()) != 1) {
    return absl::InternalError("signature: " + LastError());
  }
  std::string signature(size, '\0');
  auto* const out = reinterpret_cast<unsigned char*>(signature.data());
  if (EVP_DigestSign(digest.get(), out, &size, BytesOf(bytes), bytes.size()) != 1) {
    return absl::InternalError("signature: " + LastError());
  }
  signature.resize(size);
  return signature;
}

absl::Status CheckSignature(const std::string& certificate, std::string_view bytes,
                            std::string_view signature) {
  const X509Owner x509 = ReadX509(certificate);
  if (x509 == nullptr) return absl::InvalidArgumentError("certificate: " + LastError());
  EVP_PKEY* const key = X509_get0_pubkey(x509.get());
  const DigestOwner digest(EVP_MD_CTX_new());
  const bool right = key != nullptr &&
                     EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
                     EVP_DigestVerify(digest.get(), BytesOf(signature), signature.size(),
                                      BytesOf(bytes), bytes.size()) == 1;
  ERR_clear_error();
  if (right) return absl::OkStatus();
  return absl::DataLossError("is not that of the certificate's key over what was signed");
}

absl::StatusOr<Certificate> CheckIssued(const std::string& certificate_text,
                                        const std::string& authority_text, std::int64_t time) {
  const X509Owner x509 = ReadX509(certificate_text);
  if (x509 == nullptr) return absl::InvalidArgumentError("certificate: " + LastError());
  const StoreOwner authority = ReadTrusted(authority_text);
  if (authority == nullptr) return absl::InvalidArgumentError("authority: has no certificate");
  absl::StatusOr<Certificate> certificate = ReadCertificate(certificate_text);
  if (!certificate.ok()) return certificate;
  if (time < certificate->begin || time >= certificate->end) {
    return absl::FailedPreconditionError(
        "the certificate is valid from " + runtime::UtcText(certificate->begin) + " to " +
        runtime::UtcText(certificate->end) + ", and it was " + runtime::UtcText(time));
  }
  const StoreContextOwner context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), authority.get(), x509.get(), nullptr) != 1) {
    return absl::InternalError("certificate: " + LastError());
  }
  X509_STORE_CTX_set_time(context.get(), 0, static_cast<std::time_t>(time));
  if (X509_verify_cert(context.get()) == 1) return certificate;
  ERR_clear_error();
  return absl::InvalidArgumentError(
      std::string("the authority has not signed the certificate: ") +
      X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
}

}  // namespace tactus::identity
