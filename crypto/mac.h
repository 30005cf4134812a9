// Proofs that somebody knows a secret: HMAC with SHA-256.

#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace tactus::crypto {

inline constexpr std::size_t kMacBytes = 32;
using Mac = std::array<std::byte, kMacBytes>;

// Whether this build has OpenSSL. Without, MacOf is a checksum that anybody can make, and whoever
// has a secret is to refuse to use it.
bool HasMac();

// HMAC-SHA256(key, message). key: of any length, also empty, and then it proves nothing.
// Source: RFC 2104.
Mac MacOf(std::string_view key, std::span<const std::byte> message);

// Whether they are equal, in a time that does not tell where they differ.
bool SameMac(const Mac& a, const Mac& b);

}  // namespace tactus::crypto
