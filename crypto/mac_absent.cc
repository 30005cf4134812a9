// A build without OpenSSL: members of a group without a secret find out that they mean each other,
// and no more.

#include <cstdint>
#include <cstring>

#include "crypto/mac.h"

namespace tactus::crypto {

bool HasMac() { return false; }

Mac MacOf(std::string_view key, std::span<const std::byte> message) {
  Mac mac = {};
  for (std::size_t word = 0; word < kMacBytes / sizeof(std::uint64_t); ++word) {
    std::uint64_t hash = 0xcbf29ce484222325ULL + word;  // FNV-1a
    for (const char byte : key) {
      hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
    }
    for (const std::byte byte : message) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
    }
    std::memcpy(mac.data() + word * sizeof(hash), &hash, sizeof(hash));
  }
  return mac;
}

bool SameMac(const Mac& a, const Mac& b) { return a == b; }

}  // namespace tactus::crypto
