#include "identity/rotation.h"

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include "identity/openssl_types.h"
#include "identity/secret_file.h"
#include "runtime/now.h"

namespace tactus::identity {
namespace {

struct Generation {
  X509Owner certificate;
  KeyOwner key;  // null: it is trusted and does not sign
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

std::int64_t TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<std::int64_t>(::timegm(&parts)) : 0;
}

std::vector<KeyOwner> ReadAllKeys(const std::string& pem) {
  const Bio in = Reader(pem);
  const auto none = [](char*, int, int, void*) { return 0; };  // never asks for a password
  std::vector<KeyOwner> keys;
  while (EVP_PKEY* const key = PEM_read_bio_PrivateKey(in.get(), nullptr, none, nullptr)) {
    keys.emplace_back(key);
  }
  ERR_clear_error();  // the end of the text
  return keys;
}

absl::StatusOr<std::vector<Generation>> ReadGenerations(const std::string& folder) {
  const absl::StatusOr<std::string> certificates = ReadSmallFile(folder + "/ca.pem");
  if (!certificates.ok()) return certificates.status();
  const absl::StatusOr<std::string> key_text = ReadKeyFile(folder + "/ca-key.pem");
  if (!key_text.ok()) return key_text.status();
  std::vector<KeyOwner> keys = ReadAllKeys(*key_text);
  std::vector<Generation> generations;
  for (X509Owner& certificate : ReadAllX509(*certificates)) {
    Generation one = {.certificate = std::move(certificate), .key = nullptr};
    one.begin = TimeOf(X509_get0_notBefore(one.certificate.get()));
    one.end = TimeOf(X509_get0_notAfter(one.certificate.get()));
    const auto own = std::ranges::find_if(keys, [&](const KeyOwner& key) {
      return key != nullptr && X509_check_private_key(one.certificate.get(), key.get()) == 1;
    });
    if (own != keys.end()) one.key = std::move(*own);
    generations.push_back(std::move(one));
  }
  ERR_clear_error();  // of the keys that are others'
  if (generations.empty()) {
    return absl::InvalidArgumentError(folder + "/ca.pem: has no certificate");
  }
  return generations;
}

// Null: there is none.
const Generation* SignerAt(const std::vector<Generation>& generations, std::int64_t now) {
  const Generation* signer = nullptr;
  for (const Generation& one : generations) {
    if (one.key == nullptr || one.begin > now || one.end <= now) continue;
    if (signer == nullptr || one.begin > signer->begin) signer = &one;
  }
  return signer;
}

absl::Status NobodySigns(const std::string& folder) {
  return absl::InvalidArgumentError(
      folder + "/ca-key.pem: is not the key of ca.pem, or no authority there is valid now");
}

// The same authority with an earlier end. Empty: OpenSSL could not.
std::string Ending(const Generation& old, std::int64_t end) {
  const X509Owner copy(X509_dup(old.certificate.get()));
  const bool changed = copy != nullptr &&
                       ASN1_TIME_set(X509_getm_notAfter(copy.get()), end) != nullptr &&
                       X509_sign(copy.get(), old.key.get(), EVP_sha256()) > 0;
  return changed ? PemOf(copy.get()) : "";
}

}  // namespace

absl::StatusOr<AuthorityTexts> ReadAuthority(const std::string& folder, std::int64_t now) {
  const absl::StatusOr<std::vector<Generation>> generations = ReadGenerations(folder);
  if (!generations.ok()) return generations.status();
  const Generation* const signer = SignerAt(*generations, now);
  if (signer == nullptr) return NobodySigns(folder);
  AuthorityTexts texts = {.certificate = PemOf(signer->certificate.get()),
                          .key = PemOf(signer->key.get())};
  for (const Generation& one : *generations) {
    if (one.end > now) texts.authorities += PemOf(one.certificate.get());
  }
  return texts;
}

absl::StatusOr<Rotated> RotateAuthority(const std::string& folder, const Rotation& rotation) {
  if (rotation.over <= 0) return absl::InvalidArgumentError("over: allowed is more than 0");
  const absl::StatusOr<std::vector<Generation>> generations = ReadGenerations(folder);
  if (!generations.ok()) return generations.status();
  for (const Generation& one : *generations) {
    if (one.begin <= rotation.now) continue;
    return absl::FailedPreconditionError(folder +
                                         "/ca.pem: a rotation is under way, its authority "
                                         "signs from " +
                                         runtime::UtcText(one.begin) + " on");
  }
  const Generation* const signer = SignerAt(*generations, rotation.now);
  if (signer == nullptr) return NobodySigns(folder);
  const absl::StatusOr<AuthorityTexts> present = ReadAuthority(folder, rotation.now);
  if (!present.ok()) return present.status();
  const absl::StatusOr<std::string> domain = DomainOfAuthority(present->certificate);
  if (!domain.ok()) return domain.status();
  const Rotated times = {.signs = rotation.now + rotation.over,
                         .closed = std::min(signer->end, rotation.now + 2 * rotation.over)};
  // Others begin a little before they are made; this one begins when it is to sign.
  const absl::StatusOr<AuthorityTexts> next =
      MakeAuthority(*domain, times.signs + kClockSkewSeconds, rotation.days);
  if (!next.ok()) return next.status();
  std::string certificates = Ending(*signer, times.closed);
  if (certificates.empty()) return absl::InternalError("certificate: " + LastError());
  std::string keys = present->key;
  for (const Generation& one : *generations) {
    if (&one == signer || one.end <= rotation.now) continue;
    certificates += PemOf(one.certificate.get());
    if (one.key != nullptr) keys += PemOf(one.key.get());
  }
  absl::Status status = ReplaceFile(folder + "/ca-key.pem", keys + next->key, 0600);
  if (status.ok()) status = ReplaceFile(folder + "/ca.pem", certificates + next->certificate, 0644);
  if (!status.ok()) return status;
  return times;
}

}  // namespace tactus::identity
