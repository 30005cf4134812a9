#include "identity/token.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>

#include "identity/openssl_types.h"
#include "runtime/sha256.h"

namespace tactus::identity {
namespace {

constexpr std::string_view kTokenBegin = "tactus1-";
constexpr std::size_t kPinDigits = 64;
constexpr std::size_t kSecretDigits = 32;
constexpr std::string_view kWhiteSpace = " \t\r\n";

bool IsHex(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

absl::StatusOr<Token> MakeToken(const std::string& authority) {
  unsigned char bytes[32];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return absl::InternalError("token: " + LastError());
  // What it is written with; the half that is kept has all the chance that its length can hold.
  const std::string digits =
      runtime::Sha256Of({reinterpret_cast<const char*>(bytes), sizeof bytes});
  return Token{.authority = authority, .secret = digits.substr(0, kSecretDigits)};
}

std::string TokenText(const Token& token) {
  return std::string(kTokenBegin) + token.authority + "-" + token.secret;
}

std::optional<Token> ParseToken(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1);
  if (text.size() != kTokenBegin.size() + kPinDigits + 1 + kSecretDigits) return std::nullopt;
  if (!text.starts_with(kTokenBegin)) return std::nullopt;
  text.remove_prefix(kTokenBegin.size());
  const std::string_view pin = text.substr(0, kPinDigits);
  const std::string_view secret = text.substr(kPinDigits + 1);
  if (text[kPinDigits] != '-' || !IsHex(pin) || !IsHex(secret)) return std::nullopt;
  return Token{.authority = std::string(pin), .secret = std::string(secret)};
}

bool SameSecret(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tactus::identity
