#include "identity/certificate.h"

#include <ctime>
#include <optional>
#include <vector>

#include "identity/openssl_types.h"
#include "runtime/now.h"

namespace tactus::identity {
namespace {

std::optional<std::int64_t> SecondsOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  return static_cast<std::int64_t>(::timegm(&parts));
}

std::string SerialOf(const X509* certificate) {
  BIGNUM* const number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  char* const digits = number == nullptr ? nullptr : BN_bn2hex(number);
  std::string text = digits == nullptr ? "" : digits;
  OPENSSL_free(digits);
  BN_free(number);
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
  return text;
}

std::string FingerprintOf(const X509* certificate) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), bytes, &size) != 1) return "";
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

// As SPIFFE has it: one URI, whatever other names there are.
std::vector<std::string> UrisOf(const X509* certificate) {
  std::vector<std::string> uris;
  const NamesOwner names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      static_cast<std::size_t>(ASN1_STRING_length(uri)));
  }
  return uris;
}

absl::StatusOr<Certificate> Describe(const X509* x509) {
  const std::vector<std::string> uris = UrisOf(x509);
  const std::optional<Name> holder = uris.size() == 1 ? ParseSpiffeId(uris.front()) : std::nullopt;
  if (!holder) {
    return absl::InvalidArgumentError(
        "the certificate has " + std::to_string(uris.size()) +
        " URIs for its holder, or another one; allowed is one, such as "
        "spiffe://tactus/node/NAME, spiffe://tactus/user/NAME or spiffe://tactus/coordinator");
  }
  const std::optional<std::int64_t> begin = SecondsOf(X509_get0_notBefore(x509));
  const std::optional<std::int64_t> end = SecondsOf(X509_get0_notAfter(x509));
  if (!begin || !end) return absl::InvalidArgumentError("the certificate's times cannot be read");
  return Certificate{.holder = *holder,
                     .serial = SerialOf(x509),
                     .begin = *begin,
                     .end = *end,
                     .fingerprint = FingerprintOf(x509)};
}

// Whether the authority has signed the certificate, at whatever time.
std::string WhyNotSigned(X509* certificate, X509_STORE* authority) {
  const StoreContextOwner context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), authority, certificate, nullptr) != 1) return LastError();
  X509_STORE_CTX_set_flags(context.get(), X509_V_FLAG_NO_CHECK_TIME);
  if (X509_verify_cert(context.get()) == 1) return "";
  ERR_clear_error();
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

}  // namespace

absl::StatusOr<Certificate> ReadCertificate(const std::string& pem) {
  const X509Owner x509 = ReadX509(pem);
  if (x509 == nullptr) return absl::InvalidArgumentError("no certificate: " + LastError());
  return Describe(x509.get());
}

absl::StatusOr<Certificate> CheckTlsTexts(const TlsTexts& texts, std::int64_t now) {
  const StoreOwner authority = ReadTrusted(texts.authority);
  if (authority == nullptr) return absl::InvalidArgumentError("ca.pem: has no certificate");
  const X509Owner x509 = ReadX509(texts.certificate);
  if (x509 == nullptr) return absl::InvalidArgumentError("cert.pem: " + LastError());
  absl::StatusOr<Certificate> certificate = Describe(x509.get());
  if (!certificate.ok()) {
    return absl::InvalidArgumentError("cert.pem: " + std::string(certificate.status().message()));
  }
  const KeyOwner key = ReadKey(texts.key);
  if (key == nullptr) {
    return absl::InvalidArgumentError("key.pem: no private key without a password: " + LastError());
  }
  if (X509_check_private_key(x509.get(), key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("key.pem: is not the key of cert.pem");
  }
  if (const std::string why = WhyNotSigned(x509.get(), authority.get()); !why.empty()) {
    return absl::InvalidArgumentError("cert.pem: ca.pem has not signed it: " + why);
  }
  if (now < certificate->begin || now >= certificate->end) {
    return absl::FailedPreconditionError("cert.pem: is valid from " +
                                         runtime::UtcText(certificate->begin) + " to " +
                                         runtime::UtcText(certificate->end) + ", and it is " +
                                         runtime::UtcText(now) + "; issue another");
  }
  return certificate;
}

}  // namespace tactus::identity
