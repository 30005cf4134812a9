#include "coordinator/telemetry/scrape_targets.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <cstdlib>

namespace tactus::telemetry {
namespace {

namespace ip = boost::asio::ip;

struct HostPort {
  std::string host{};  // without brackets
  std::string port{};
};

bool IsPort(const std::string& text) {
  return !text.empty() && text.size() <= 5 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; }) &&
         std::atoi(text.c_str()) >= 1 && std::atoi(text.c_str()) <= 65535;
}

// "host:port" or "[address]:port".
std::optional<HostPort> Split(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  HostPort parts = {.host = text.substr(0, colon), .port = text.substr(colon + 1)};
  if (!IsPort(parts.port)) return std::nullopt;
  if (parts.host.starts_with('[') && parts.host.ends_with(']')) {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  return parts;
}

// "%5B" is "[": gRPC writes peers as URIs.
std::string Decoded(const std::string& text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '%' && at + 2 < text.size() && std::isxdigit(text[at + 1]) != 0 &&
        std::isxdigit(text[at + 2]) != 0) {
      decoded += static_cast<char>(std::strtol(text.substr(at + 1, 2).c_str(), nullptr, 16));
      at += 2;
    } else {
      decoded += text[at];
    }
  }
  return decoded;
}

// IPv4 addresses as such, also where they come in by a socket of IPv6.
std::optional<ip::address> AddressOf(const std::string& text) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  if (error) return std::nullopt;
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6());
  }
  return address;
}

// Nothing for a peer without an address, and for one of this link alone, which needs the name of an
// interface of ours.
std::optional<ip::address> PeerAddress(const std::string& peer) {
  const std::size_t scheme = peer.find(':');
  if (scheme == std::string::npos) return std::nullopt;
  const std::optional<HostPort> parts = Split(Decoded(peer.substr(scheme + 1)));
  if (!parts) return std::nullopt;
  const std::optional<ip::address> address = AddressOf(parts->host);
  if (address && address->is_v6() && address->to_v6().is_link_local()) return std::nullopt;
  return address;
}

bool IsName(const std::string& host) {
  return !host.empty() && host.size() <= 253 && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
}

std::string Join(const ip::address& address, const std::string& port) {
  const std::string host = address.to_string();
  return (address.is_v6() ? "[" + host + "]" : host) + ":" + port;
}

}  // namespace

std::optional<std::string> ScrapeTarget(const AgentAddress& agent) {
  const std::optional<HostPort> said = Split(agent.metrics_address);
  if (!said) return std::nullopt;
  const std::optional<ip::address> address = AddressOf(said->host);
  const std::optional<ip::address> peer = PeerAddress(agent.peer);
  const bool loopback = address ? address->is_loopback() : said->host == "localhost";
  if (loopback && !(peer && peer->is_loopback())) return std::nullopt;
  if (!address) {
    if (!IsName(said->host)) return std::nullopt;
    return said->host + ":" + said->port;
  }
  if (!address->is_unspecified()) return Join(*address, said->port);
  if (!peer) return std::nullopt;
  return Join(*peer, said->port);
}

// Names are checked and targets made here, so that nothing in them needs to be escaped.
std::string ScrapeTargetsJson(const std::vector<AgentAddress>& agents) {
  std::string json;
  for (const AgentAddress& agent : agents) {
    const std::optional<std::string> target = ScrapeTarget(agent);
    if (!target) continue;
    json += json.empty() ? "" : ",";
    json += R"({"targets":[")" + *target + R"("],"labels":{"node":")" + agent.node + R"("}})";
  }
  return "[" + json + "]";
}

}  // namespace tactus::telemetry
