// Who somebody is, as certificates say it: SPIFFE ids in one trust domain.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tactus::identity {

enum class Kind { kCoordinator, kNode, kUser };

// spiffe://DOMAIN/coordinator, spiffe://DOMAIN/node/NAME or spiffe://DOMAIN/user/NAME.
struct Name {
  std::string domain{};  // of whose authority it is: "tactus"
  Kind kind = Kind::kUser;
  std::string name{};  // of a node or user; empty: the coordinator

  bool operator==(const Name&) const = default;
};

inline constexpr const char* kDomainDefault = "tactus";

// True for 1 to 63 of [a-z0-9-.], which a trust domain and a node's name are of.
bool IsLabel(std::string_view text);
// True for 1 to 128 of [a-zA-Z0-9-._@], of which none is "." or "..".
bool IsUserName(std::string_view text);

// Nothing for a text that is no such id, to the letter: there is one way to write each.
std::optional<Name> ParseSpiffeId(std::string_view uri);
std::string SpiffeIdOf(const Name& name);

// Without the domain: "coordinator", "node/gpu-7", "user/alice". What records, logs and lists of
// the revoked have.
std::string ShortNameOf(const Name& name);
// Nothing where it is none.
std::optional<Name> ParseShortName(std::string_view text, const std::string& domain);

}  // namespace tactus::identity
