#include "runtime/host_port.h"

#include <algorithm>
#include <charconv>

namespace tactus::runtime {

std::optional<HostPort> ParseHostPort(std::string_view text) {
  constexpr std::size_t kDigitsMax = 5;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string_view digits = text.substr(colon + 1);
  HostPort address{.host = std::string(host)};
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, address.port);
  // A URL, and what was typed beside an address.
  if (host.find_first_of("/@ \t") != std::string_view::npos) return std::nullopt;
  if (host.empty() || digits.size() > kDigitsMax || parsed.ec != std::errc() || parsed.ptr != end) {
    return std::nullopt;
  }
  return address;
}

std::vector<std::string> SplitAddresses(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == text.npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

bool AreHostPorts(std::string_view text) {
  return std::ranges::all_of(SplitAddresses(text), [](const std::string& part) {
    const std::optional<HostPort> parsed = ParseHostPort(part);
    return parsed && parsed->port > 0;
  });
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  // 127.example.org is somebody's name.
  return host.starts_with("127.") &&
         std::ranges::all_of(host, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

std::string FormatHostPort(const HostPort& address) {
  // An IPv6 address, whose last part would be taken for the port.
  const bool brackets = address.host.find(':') != std::string::npos;
  return (brackets ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace tactus::runtime
