#include "identity/certificate.h"

#include <arpa/inet.h>

#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "identity/openssl_types.h"
#include "identity/request.h"
#include "identity/token.h"
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

struct AlternativeNamesOf {
  std::vector<std::string> uris{};
  std::vector<std::string> dns{};
  std::vector<std::string> addresses{};
};

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

// Empty: it is none.
std::string AddressText(const std::string& bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  const int family = bytes.size() == 4 ? AF_INET : AF_INET6;
  if (bytes.size() != 4 && bytes.size() != 16) return "";
  return ::inet_ntop(family, bytes.data(), text, sizeof text) == nullptr ? "" : text;
}

AlternativeNamesOf NamesIn(const X509* certificate) {
  AlternativeNamesOf found;
  const NamesOwner names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) {
      found.uris.push_back(TextOf(name->d.uniformResourceIdentifier));
    } else if (name->type == GEN_DNS) {
      found.dns.push_back(TextOf(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      const std::string address = AddressText(TextOf(name->d.iPAddress));
      if (!address.empty()) found.addresses.push_back(address);
    }
  }
  return found;
}

absl::StatusOr<Certificate> Describe(const X509* x509) {
  // As SPIFFE has it: one URI, whatever other names there are.
  AlternativeNamesOf names = NamesIn(x509);
  const std::vector<std::string>& uris = names.uris;
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
                     .fingerprint = FingerprintOf(x509),
                     .dns = std::move(names.dns),
                     .addresses = std::move(names.addresses)};
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

bool IsPinnedCoordinator(const std::string& chain, const std::string& pin, std::int64_t now) {
  const std::vector<X509Owner> all = ReadAllX509(chain);
  if (all.empty()) return false;
  const StoreOwner store(X509_STORE_new());
  bool pinned = false;
  for (const X509Owner& one : all) {
    const absl::StatusOr<std::string> hash = KeyHashOfCertificate(PemOf(one.get()));
    if (!hash.ok() || !SameSecret(*hash, pin)) continue;
    pinned = X509_STORE_add_cert(store.get(), one.get()) == 1 || pinned;
  }
  const StoreContextOwner context(X509_STORE_CTX_new());
  if (!pinned || X509_STORE_CTX_init(context.get(), store.get(), all.front().get(), nullptr) != 1 ||
      X509_STORE_CTX_set_purpose(context.get(), X509_PURPOSE_SSL_SERVER) != 1) {
    ERR_clear_error();
    return false;
  }
  X509_STORE_CTX_set_time(context.get(), 0, now);
  const bool signed_by_it = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  const absl::StatusOr<Certificate> holder = Describe(all.front().get());
  return signed_by_it && holder.ok() && holder->holder.kind == Kind::kCoordinator;
}

}  // namespace tactus::identity
