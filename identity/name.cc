#include "identity/name.h"

#include <algorithm>

namespace tactus::identity {
namespace {

constexpr std::string_view kScheme = "spiffe://";
constexpr std::string_view kCoordinator = "coordinator";
constexpr std::string_view kNode = "node/";
constexpr std::string_view kUser = "user/";
constexpr std::size_t kLabelBytesMax = 63;
constexpr std::size_t kUserBytesMax = 128;

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

bool IsLabel(std::string_view text) {
  return !text.empty() && text.size() <= kLabelBytesMax && text != "." && text != ".." &&
         std::ranges::all_of(text, [](char c) { return IsLower(c) || c == '-' || c == '.'; });
}

bool IsUserName(std::string_view text) {
  return !text.empty() && text.size() <= kUserBytesMax && text != "." && text != ".." &&
         std::ranges::all_of(text, [](char c) {
           return IsLower(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' ||
                  c == '@';
         });
}

std::optional<Name> ParseShortName(std::string_view text, const std::string& domain) {
  if (!IsLabel(domain)) return std::nullopt;
  if (text == kCoordinator) return Name{.domain = domain, .kind = Kind::kCoordinator};
  if (text.starts_with(kNode) && IsLabel(text.substr(kNode.size()))) {
    return Name{
        .domain = domain, .kind = Kind::kNode, .name = std::string(text.substr(kNode.size()))};
  }
  if (text.starts_with(kUser) && IsUserName(text.substr(kUser.size()))) {
    return Name{
        .domain = domain, .kind = Kind::kUser, .name = std::string(text.substr(kUser.size()))};
  }
  return std::nullopt;
}

std::optional<Name> ParseSpiffeId(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  const std::size_t slash = uri.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return ParseShortName(uri.substr(slash + 1), std::string(uri.substr(0, slash)));
}

std::string ShortNameOf(const Name& name) {
  switch (name.kind) {
    case Kind::kCoordinator:
      return std::string(kCoordinator);
    case Kind::kNode:
      return std::string(kNode) + name.name;
    case Kind::kUser:
      return std::string(kUser) + name.name;
  }
  return "";
}

std::string SpiffeIdOf(const Name& name) {
  return std::string(kScheme) + name.domain + "/" + ShortNameOf(name);
}

}  // namespace tactus::identity
