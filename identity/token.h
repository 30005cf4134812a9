// Tokens, by which whoever has none comes to have a certificate.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tactus::identity {

// "tactus1-PIN-SECRET": 64 and 32 hexadecimal digits in lower case.
struct Token {
  std::string authority{};  // KeyHashOfCertificate of who signs the coordinator's certificate
  std::string secret{};     // 128 bits
};

// A new one. Error: Internal, there is no chance to be had.
absl::StatusOr<Token> MakeToken(const std::string& authority);

std::string TokenText(const Token& token);
// Nothing for a text that is not one, to the letter, but for white space around it.
std::optional<Token> ParseToken(std::string_view text);

// Whether two texts are the same, in a time that tells nothing of where they differ.
bool SameSecret(std::string_view a, std::string_view b);

}  // namespace tactus::identity
