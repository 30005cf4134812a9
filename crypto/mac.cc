#include "crypto/mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"

namespace tactus::crypto {

bool HasMac() { return true; }

Mac MacOf(std::string_view key, std::span<const std::byte> message) {
  Mac mac = {};
  unsigned length = 0;
  // Without a key of its own OpenSSL goes on with a former one.
  const char* const bytes = key.empty() ? "" : key.data();
  const unsigned char* const made =
      HMAC(EVP_sha256(), bytes, static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(mac.data()), &length);
  TACTUS_CHECK(made != nullptr && length == kMacBytes);
  return mac;
}

bool SameMac(const Mac& a, const Mac& b) {
  return CRYPTO_memcmp(a.data(), b.data(), kMacBytes) == 0;
}

}  // namespace tactus::crypto
