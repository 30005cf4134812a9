#include "identity/dial.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/host_port.h"

namespace tactus::identity {
namespace {

// In milliseconds. A coordinator takes who asks more often than each 10 s for a nuisance.
constexpr int kAskAfter = 11'000;
constexpr int kAnswerWithin = 5'000;

// The number that a host has in the family, "host:port" again; nothing: it has none, or no name
// server answers.
std::optional<std::string> LookUp(const std::string& address, int family) {
  const std::optional<runtime::HostPort> parts = runtime::ParseHostPort(address);
  if (!parts) return std::nullopt;
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(parts->host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  char number[NI_MAXHOST];
  const int named = getnameinfo(found->ai_addr, found->ai_addrlen, number, sizeof number, nullptr,
                                0, NI_NUMERICHOST);
  freeaddrinfo(found);
  if (named != 0) return std::nullopt;
  return runtime::FormatHostPort({.host = number, .port = parts->port});
}

// gRPC takes lists of numbers of one family. Those that have none in it are left out.
std::string TargetOf(const std::vector<std::string>& addresses) {
  std::string best;
  std::size_t most = 0;
  for (const auto& [family, scheme] : {std::pair{AF_INET, "ipv4:"}, std::pair{AF_INET6, "ipv6:"}}) {
    std::string target;
    std::size_t count = 0;
    for (const std::string& address : addresses) {
      const std::optional<std::string> number = LookUp(address, family);
      if (!number) continue;
      target += (count++ == 0 ? scheme : ",") + *number;
    }
    if (count > most) best = target;
    most = std::max(most, count);
  }
  // A name that nobody knows yet is asked for again with each attempt.
  return most == 0 ? addresses.front() : best;
}

}  // namespace

std::shared_ptr<grpc::Channel> Dial(const Destination& destination,
                                    grpc::ChannelArguments arguments) {
  const std::vector<std::string> addresses = runtime::SplitAddresses(destination.addresses);
  std::string target = addresses.front();
  const bool several = addresses.size() > 1;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, several ? kAskAfter : destination.keepalive);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   several ? kAnswerWithin : destination.keepalive_timeout);
  if (several) {
    target = TargetOf(addresses);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, addresses.front());
    arguments.SetServiceConfigJSON(
        R"({"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":")" +
        destination.service + R"("}})");
  }
  return grpc::CreateCustomChannel(target,
                                   destination.credentials != nullptr
                                       ? destination.credentials
                                       : grpc::InsecureChannelCredentials(),
                                   arguments);
}

}  // namespace tactus::identity
