#include "identity/authority.h"

#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string_view>

#include "identity/openssl_types.h"
#include "identity/request.h"
#include "identity/rotation.h"
#include "identity/secret_file.h"
#include "identity/tls_folder.h"

namespace tactus::identity {
namespace {

constexpr long kVersion3 = 2;
constexpr int kSerialBytes = 16;
constexpr int kNamesMax = 64;
constexpr std::string_view kDomainScheme = "spiffe://";

absl::Status Failed(const char* what) {
  return absl::InternalError(std::string(what) + ": " + LastError());
}

bool SetSerial(X509* certificate) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);  // positive, of full length
  BIGNUM* const number = BN_bin2bn(bytes, sizeof bytes, nullptr);
  const bool set = number != nullptr &&
                   BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
  BN_free(number);
  return set;
}

bool SetName(X509_NAME* name, const std::string& text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  // X.509 allows 64 characters here; who is meant is said by the URI.
  const int size = static_cast<int>(std::min<std::size_t>(text.size(), 64));
  return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>("Tactus"), -1, -1,
                                    0) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, bytes, size, -1, 0) == 1;
}

// `value` in OpenSSL's own notation: of nothing that somebody gave us but what was checked.
bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionOwner extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

struct Draft {
  std::string subject{};
  std::string alternative_names{};
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

X509Owner Begin(const Draft& draft, EVP_PKEY* key) {
  X509Owner certificate(X509_new());
  const bool good = certificate != nullptr && X509_set_version(certificate.get(), kVersion3) == 1 &&
                    SetSerial(certificate.get()) &&
                    ASN1_TIME_set(X509_getm_notBefore(certificate.get()), draft.begin) != nullptr &&
                    ASN1_TIME_set(X509_getm_notAfter(certificate.get()), draft.end) != nullptr &&
                    SetName(X509_get_subject_name(certificate.get()), draft.subject) &&
                    X509_set_pubkey(certificate.get(), key) == 1;
  return good ? std::move(certificate) : nullptr;
}

// An authority as it signs.
struct Signer {
  X509Owner certificate;
  KeyOwner key;
  std::string domain;
  std::int64_t end = 0;
};

std::string DomainOf(const X509* certificate) {
  const NamesOwner names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (names == nullptr || sk_GENERAL_NAME_num(names.get()) != 1) return "";
  const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), 0);
  if (name->type != GEN_URI) return "";
  const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
  const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                              static_cast<std::size_t>(ASN1_STRING_length(uri)));
  return text.starts_with(kDomainScheme) ? std::string(text.substr(kDomainScheme.size())) : "";
}

absl::StatusOr<Signer> ReadSigner(const AuthorityTexts& texts) {
  Signer signer;
  signer.certificate = ReadX509(texts.certificate);
  if (signer.certificate == nullptr) return absl::InvalidArgumentError("ca.pem: " + LastError());
  signer.key = ReadKey(texts.key);
  if (signer.key == nullptr) return absl::InvalidArgumentError("ca-key.pem: " + LastError());
  if (X509_check_private_key(signer.certificate.get(), signer.key.get()) != 1) {
    ERR_clear_error();
    return absl::InvalidArgumentError("ca-key.pem: is not the key of ca.pem");
  }
  absl::StatusOr<std::string> domain = DomainOfAuthority(texts.certificate);
  if (!domain.ok()) return domain.status();
  signer.domain = *std::move(domain);
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(signer.certificate.get()), &end) != 1) {
    return absl::InvalidArgumentError("ca.pem: its end cannot be read");
  }
  signer.end = ::timegm(&end);
  return signer;
}

absl::StatusOr<std::string> AlternativeNames(const Name& holder, const CertificateOrder& order) {
  if (order.dns.size() + order.addresses.size() > kNamesMax) {
    return absl::InvalidArgumentError("names: at most 64 are allowed");
  }
  std::string names = "URI:" + SpiffeIdOf(holder);
  for (const std::string& dns : order.dns) {
    if (!IsLabel(dns) && !(dns.starts_with("*.") && IsLabel(dns.substr(2)))) {
      return absl::InvalidArgumentError("dns: found \"" + dns +
                                        "\", allowed are 1 to 63 of [a-z0-9-.]");
    }
    names += ",DNS:" + dns;
  }
  for (const std::string& address : order.addresses) {
    ASN1_OCTET_STRING* const parsed = a2i_IPADDRESS(address.c_str());
    if (parsed == nullptr) {
      ERR_clear_error();
      return absl::InvalidArgumentError("ip: found \"" + address +
                                        "\", allowed is an address of IPv4 or IPv6");
    }
    ASN1_OCTET_STRING_free(parsed);
    names += ",IP:" + address;
  }
  return names;
}

absl::StatusOr<Name> HolderOf(const CertificateOrder& order, const std::string& domain) {
  const bool coordinator = order.kind == Kind::kCoordinator;
  if (coordinator && order.name.empty()) return Name{.domain = domain, .kind = order.kind};
  if (order.kind == Kind::kNode && IsLabel(order.name)) {
    return Name{.domain = domain, .kind = order.kind, .name = order.name};
  }
  if (order.kind == Kind::kUser && IsUserName(order.name)) {
    return Name{.domain = domain, .kind = order.kind, .name = order.name};
  }
  return absl::InvalidArgumentError("name: found \"" + order.name +
                                    "\", allowed are 1 to 63 of [a-z0-9-.] for a node, 1 to 128 "
                                    "of [a-zA-Z0-9-._@] for a user");
}

// The key that an order is about, of which a request has the public half alone.
absl::StatusOr<KeyOwner> KeyToSign(const CertificateOrder& order) {
  if (!order.request.empty()) {
    const absl::StatusOr<std::string> checked = KeyHashOfRequest(order.request);
    if (!checked.ok()) return checked.status();
    const Bio in = Reader(order.request);
    const RequestOwner request(PEM_read_bio_X509_REQ(in.get(), nullptr, nullptr, nullptr));
    return KeyOwner(X509_REQ_get_pubkey(request.get()));
  }
  KeyOwner key(order.key.empty() ? KeyOwner(EVP_EC_gen("P-256")) : ReadKey(order.key));
  if (key == nullptr) return Failed("key");
  return key;
}

// A file that was made, unless Keep is called: whoever fails half-way leaves nothing of its own.
class NewFiles {
 public:
  NewFiles() = default;
  NewFiles(const NewFiles&) = delete;
  NewFiles& operator=(const NewFiles&) = delete;
  ~NewFiles() {
    for (const std::string& path : made_) ::unlink(path.c_str());
  }

  absl::Status Write(const std::string& path, const std::string& content, unsigned mode) {
    const absl::Status written = WriteNewFile(path, content, mode);
    if (written.ok()) made_.push_back(path);
    return written;
  }
  void Keep() { made_.clear(); }

 private:
  std::vector<std::string> made_;
};

}  // namespace

absl::StatusOr<AuthorityTexts> MakeAuthority(const std::string& domain, std::int64_t now,
                                             int days) {
  if (!IsLabel(domain)) {
    return absl::InvalidArgumentError("trust domain: found \"" + domain +
                                      "\", allowed are 1 to 63 of [a-z0-9-.]");
  }
  if (days < 1) return absl::InvalidArgumentError("days: allowed is 1 or more");
  const KeyOwner key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("key");
  const X509Owner certificate = Begin({.subject = "authority of " + domain,
                                       .begin = now - kClockSkewSeconds,
                                       .end = now + days * kDaySeconds},
                                      key.get());
  if (certificate == nullptr) return Failed("certificate");
  X509* const own = certificate.get();
  const bool good =
      X509_set_issuer_name(own, X509_get_subject_name(own)) == 1 &&
      AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign") &&
      AddExtension(own, own, NID_subject_key_identifier, "hash") &&
      AddExtension(own, own, NID_subject_alt_name, "URI:" + std::string(kDomainScheme) + domain) &&
      X509_sign(own, key.get(), EVP_sha256()) > 0;
  AuthorityTexts texts = {.certificate = PemOf(own), .key = PemOf(key.get())};
  if (!good || texts.certificate.empty() || texts.key.empty()) return Failed("certificate");
  return texts;
}

absl::StatusOr<std::string> DomainOfAuthority(const std::string& pem) {
  const X509Owner certificate = ReadX509(pem);
  if (certificate == nullptr) return absl::InvalidArgumentError("ca.pem: " + LastError());
  std::string domain = DomainOf(certificate.get());
  if (IsLabel(domain)) return domain;
  return absl::InvalidArgumentError(
      "ca.pem: names no trust domain; allowed is an authority of tactus admin init-ca");
}

absl::StatusOr<TlsTexts> IssueCertificate(const AuthorityTexts& authority,
                                          const CertificateOrder& order) {
  absl::StatusOr<Signer> signer = ReadSigner(authority);
  if (!signer.ok()) return signer.status();
  const absl::StatusOr<Name> holder = HolderOf(order, signer->domain);
  if (!holder.ok()) return holder.status();
  const absl::StatusOr<std::string> names = AlternativeNames(*holder, order);
  if (!names.ok()) return names.status();
  if (order.seconds <= 0) return absl::InvalidArgumentError("days: allowed is more than 0");
  const absl::StatusOr<KeyOwner> found = KeyToSign(order);
  if (!found.ok()) return found.status();
  EVP_PKEY* const key = found->get();
  const X509Owner certificate = Begin({.subject = ShortNameOf(*holder),
                                       .begin = order.now - kClockSkewSeconds,
                                       .end = std::min(order.now + order.seconds, signer->end)},
                                      key);
  if (certificate == nullptr) return Failed("certificate");
  X509* const own = certificate.get();
  X509* const issuer = signer->certificate.get();
  // A node that has the coordinator's port, or its address, cannot even shake hands as a server.
  const char* const usage = order.kind == Kind::kCoordinator ? "serverAuth" : "clientAuth";
  const bool good = X509_set_issuer_name(own, X509_get_subject_name(issuer)) == 1 &&
                    AddExtension(own, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                    AddExtension(own, issuer, NID_key_usage, "critical,digitalSignature") &&
                    AddExtension(own, issuer, NID_ext_key_usage, usage) &&
                    AddExtension(own, issuer, NID_subject_key_identifier, "hash") &&
                    AddExtension(own, issuer, NID_authority_key_identifier, "keyid") &&
                    AddExtension(own, issuer, NID_subject_alt_name, *names) &&
                    X509_sign(own, signer->key.get(), EVP_sha256()) > 0;
  const bool requested = !order.request.empty();
  TlsTexts texts = {
      .authority = authority.authorities.empty() ? authority.certificate : authority.authorities,
      .certificate = PemOf(own),
      .key = requested ? "" : PemOf(key)};
  if (!good || texts.certificate.empty() || texts.key.empty() != requested) {
    return Failed("certificate");
  }
  // Whoever has but a token finds what it pins in what the coordinator shows.
  if (order.kind == Kind::kCoordinator) texts.certificate += PemOf(issuer);
  return texts;
}

absl::Status InitAuthority(const std::string& folder, const std::string& domain, std::int64_t now,
                           int days) {
  const absl::StatusOr<AuthorityTexts> texts = MakeAuthority(domain, now, days);
  if (!texts.ok()) return texts.status();
  absl::Status status = MakePrivateFolder(folder);
  NewFiles files;
  if (status.ok()) status = files.Write(folder + "/ca-key.pem", texts->key, 0600);
  if (status.ok()) status = files.Write(folder + "/ca.pem", texts->certificate, 0644);
  if (status.ok()) files.Keep();
  return status;
}

absl::StatusOr<Certificate> IssueInto(const std::string& authority_folder,
                                      const std::string& folder, const CertificateOrder& order) {
  const absl::StatusOr<AuthorityTexts> authority = ReadAuthority(authority_folder, order.now);
  if (!authority.ok()) return authority.status();
  const absl::StatusOr<TlsTexts> issued = IssueCertificate(*authority, order);
  if (!issued.ok()) return issued.status();
  absl::Status status = MakePrivateFolder(folder);
  NewFiles files;
  if (status.ok()) status = files.Write(folder + "/key.pem", issued->key, 0600);
  if (status.ok()) status = files.Write(folder + "/cert.pem", issued->certificate, 0644);
  if (status.ok()) status = files.Write(folder + "/ca.pem", issued->authority, 0644);
  if (!status.ok()) return status;
  files.Keep();
  return ReadCertificate(issued->certificate);
}

absl::StatusOr<Certificate> RenewIn(const std::string& authority_folder, const std::string& folder,
                                    CertificateOrder order) {
  const absl::StatusOr<AuthorityTexts> authority = ReadAuthority(authority_folder, order.now);
  if (!authority.ok()) return authority.status();
  const absl::StatusOr<std::string> former = ReadSmallFile(folder + "/cert.pem");
  if (!former.ok()) return former.status();
  const absl::StatusOr<Certificate> holder = ReadCertificate(*former);
  if (!holder.ok()) {
    return absl::InvalidArgumentError(folder +
                                      "/cert.pem: " + std::string(holder.status().message()));
  }
  absl::StatusOr<std::string> key = ReadKeyFile(folder + "/key.pem");
  if (!key.ok()) return key.status();
  order.kind = holder->holder.kind;
  order.name = holder->holder.name;
  order.key = *std::move(key);
  if (order.dns.empty() && order.addresses.empty()) {
    order.dns = holder->dns;
    order.addresses = holder->addresses;
  }
  const absl::StatusOr<TlsTexts> issued = IssueCertificate(*authority, order);
  if (!issued.ok()) return issued.status();
  const absl::StatusOr<Certificate> renewed = ReadCertificate(issued->certificate);
  if (!renewed.ok()) return renewed.status();
  if (renewed->holder != holder->holder) {
    return absl::InvalidArgumentError(folder + "/cert.pem: is of the trust domain " +
                                      holder->holder.domain + ", and the authority is of " +
                                      renewed->holder.domain);
  }
  return KeepInFolder(folder, {.authority = issued->authority, .certificate = issued->certificate});
}

}  // namespace tactus::identity
