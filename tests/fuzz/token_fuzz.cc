// Tokens, as whoever reaches the port may send them, and names, as lists and certificates have
// them: what is taken has one way to be written.

#include <cstdint>
#include <string>
#include <string_view>

#include "identity/name.h"
#include "identity/revocations.h"
#include "identity/token.h"
#include "tests/fuzz/require.h"

namespace tactus::fuzz {
namespace {

void CheckToken(const std::string& text) {
  const auto token = identity::ParseToken(text);
  if (!token) return;
  Require(token->authority.size() == 64 && token->secret.size() == 32, "a token has its sizes");
  const std::string again = TokenText(*token);
  Require(text.find(again) != std::string::npos, "a token is what was given, but for white space");
  Require(identity::ParseToken(again).has_value(), "a token is read again");
}

void CheckNames(const std::string& text) {
  if (const auto name = identity::ParseSpiffeId(text)) {
    Require(SpiffeIdOf(*name) == text, "an id has one way to be written");
    Require(name->name.find('/') == std::string::npos, "a name is one word");
  }
  if (const auto name = identity::ParseShortName(text, identity::kDomainDefault)) {
    Require(ShortNameOf(*name) == text, "a short name has one way to be written");
  }
  const auto revoked = identity::Revocations::Parse(text);
  Require(!revoked.ok() || revoked->size() <= text.size(), "an entry is of a line");
}

}  // namespace
}  // namespace tactus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  tactus::fuzz::CheckToken(text);
  tactus::fuzz::CheckNames(text);
  return 0;
}
