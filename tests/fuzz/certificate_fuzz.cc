// Certificates and requests for certificates, DER behind a first byte that says which: what of them
// is taken names one holder, and a request that is taken can be signed.

#include <algorithm>
#include <cstdint>
#include <string>

#include "identity/authority.h"
#include "identity/certificate.h"
#include "identity/request.h"
#include "tests/fuzz/require.h"

namespace tactus::fuzz {
namespace {

constexpr std::int64_t kNow = 1'800'000'000;

std::string Armoured(const std::string& der, const std::string& kind) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < der.size(); i += 3) {
    const std::size_t have = std::min<std::size_t>(3, der.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = (bits << 8) | (k < have ? static_cast<unsigned char>(der[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= have ? kDigits[(bits >> (18 - 6 * k)) & 63] : '=';
    }
    if (i % 48 == 45) text += '\n';
  }
  return "-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----\n";
}

void CheckCertificate(const std::string& pem) {
  const auto read = identity::ReadCertificate(pem);
  if (read.ok()) {
    Require(identity::ParseSpiffeId(SpiffeIdOf(read->holder)).has_value(), "a holder has an id");
    Require(!read->serial.empty() && read->fingerprint.size() == 64, "a certificate has numbers");
  }
  const auto hash = identity::KeyHashOfCertificate(pem);
  Require(!hash.ok() || hash->size() == 64, "a key has a hash");
  Require(!identity::IsPinnedCoordinator(pem + pem, std::string(64, '0'), kNow),
          "nobody has the key whose hash is 0");
  static_cast<void>(identity::CheckTlsTexts({pem, pem, pem}, kNow));
}

void CheckRequest(const std::string& pem) {
  static const auto authority = *identity::MakeAuthority("tactus", kNow, 10);
  const auto hash = identity::KeyHashOfRequest(pem);
  if (!hash.ok()) return;
  const auto issued = identity::IssueCertificate(
      authority, {.kind = identity::Kind::kNode, .name = "a", .now = kNow, .request = pem});
  Require(issued.ok(), "a request that is good is signed");
  Require(*identity::KeyHashOfCertificate(issued->certificate) == *hash, "for its own key");
  const auto read = identity::ReadCertificate(issued->certificate);
  Require(read.ok() && read->holder.name == "a" && read->dns.empty() && read->addresses.empty(),
          "of a request, its key alone counts");
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return -1;
  const std::string der(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    tactus::fuzz::CheckCertificate(tactus::fuzz::Armoured(der, "CERTIFICATE"));
  } else {
    tactus::fuzz::CheckRequest(tactus::fuzz::Armoured(der, "CERTIFICATE REQUEST"));
  }
  return 0;
}
