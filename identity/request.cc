#include "identity/request.h"

#include "identity/openssl_types.h"
#include "runtime/sha256.h"

namespace tactus::identity {
namespace {

constexpr std::size_t kRequestBytesMax = 16 << 10;
constexpr int kSecurityBitsMin = 112;  // as NIST SP 800-57 has it for what is made today

std::string HashOf(EVP_PKEY* key) {
  unsigned char* bytes = nullptr;
  const int size = key == nullptr ? -1 : i2d_PUBKEY(key, &bytes);
  if (size <= 0) return "";
  const std::string der(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return runtime::Sha256Of(der);
}

absl::Status NoRequest(const std::string& why) {
  return absl::InvalidArgumentError("certificate_request: " + why);
}

}  // namespace

absl::StatusOr<std::string> MakeKey() {
  const KeyOwner key(EVP_EC_gen("P-256"));
  std::string pem = key == nullptr ? "" : PemOf(key.get());
  if (pem.empty()) return absl::InternalError("key: " + LastError());
  return pem;
}

absl::StatusOr<std::string> MakeRequest(const std::string& key_pem) {
  const KeyOwner key = ReadKey(key_pem);
  if (key == nullptr) return absl::InvalidArgumentError("no private key: " + LastError());
  const RequestOwner request(X509_REQ_new());
  const Bio out(BIO_new(BIO_s_mem()));
  const bool made = request != nullptr && X509_REQ_set_version(request.get(), 0) == 1 &&
                    X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
                    X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0 &&
                    PEM_write_bio_X509_REQ(out.get(), request.get()) == 1;
  if (!made) return absl::InternalError("certificate request: " + LastError());
  return Written(out);
}

absl::StatusOr<std::string> KeyHashOfRequest(const std::string& pem) {
  if (pem.size() > kRequestBytesMax) return NoRequest("is longer than 16 KiB");
  const Bio in = Reader(pem);
  const RequestOwner request(PEM_read_bio_X509_REQ(in.get(), nullptr, nullptr, nullptr));
  EVP_PKEY* const key = request == nullptr ? nullptr : X509_REQ_get0_pubkey(request.get());
  if (key == nullptr) return NoRequest("is none in PEM (PKCS #10): " + LastError());
  if (EVP_PKEY_get_security_bits(key) < kSecurityBitsMin) {
    return NoRequest("its key is too weak; allowed is P-256 or stronger");
  }
  if (X509_REQ_verify(request.get(), key) != 1) {
    ERR_clear_error();
    return NoRequest("its key has not signed it");
  }
  std::string hash = HashOf(key);
  if (hash.empty()) return NoRequest("its key cannot be written: " + LastError());
  return hash;
}

absl::StatusOr<std::string> KeyHashOfCertificate(const std::string& pem) {
  const X509Owner x509 = ReadX509(pem);
  std::string hash = x509 == nullptr ? "" : HashOf(X509_get0_pubkey(x509.get()));
  if (hash.empty()) return absl::InvalidArgumentError("no certificate: " + LastError());
  return hash;
}

}  // namespace tactus::identity
