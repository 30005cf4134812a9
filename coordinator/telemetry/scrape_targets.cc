#include "coordinator/telemetry/scrape_targets.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>

#include "runtime/host_port.h"
#include "runtime/percent.h"

namespace tactus::telemetry {
namespace {

namespace ip = boost::asio::ip;

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
  // gRPC writes peers as URIs.
  const auto decoded = runtime::DecodePercent(peer.substr(scheme + 1));
  const auto parts = runtime::ParseHostPort(decoded.value_or(""));
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

}  // namespace

std::optional<std::string> ScrapeTarget(const AgentAddress& agent) {
  std::optional<runtime::HostPort> said = runtime::ParseHostPort(agent.metrics_address);
  if (!said || said->port == 0) return std::nullopt;
  const std::optional<ip::address> address = AddressOf(said->host);
  const std::optional<ip::address> peer = PeerAddress(agent.peer);
  const bool loopback = address ? address->is_loopback() : said->host == "localhost";
  if (loopback && !(peer && peer->is_loopback())) return std::nullopt;
  if (!address) {
    if (!IsName(said->host)) return std::nullopt;
    return runtime::FormatHostPort(*said);
  }
  if (address->is_unspecified() && !peer) return std::nullopt;
  said->host = (address->is_unspecified() ? *peer : *address).to_string();
  return runtime::FormatHostPort(*said);
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
