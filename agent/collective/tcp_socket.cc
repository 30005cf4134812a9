#include "agent/collective/tcp_socket.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "crypto/random.h"

namespace tactus::collective {
namespace {

constexpr char kIpv4 = '4';
constexpr char kIpv6 = '6';

// A socket address with its length.
struct Place {
  sockaddr_storage storage = {};
  socklen_t length = 0;
};

Place PlaceOf(const sockaddr& address) {
  Place place;
  place.length = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&place.storage, &address, place.length);
  return place;
}

Place PlaceOf(const Endpoint& endpoint) {
  Place place;
  if (endpoint.is_ipv6) {
    auto& to = reinterpret_cast<sockaddr_in6&>(place.storage);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(endpoint.port);
    std::memcpy(&to.sin6_addr, endpoint.address.data(), sizeof(to.sin6_addr));
    place.length = sizeof(sockaddr_in6);
  } else {
    auto& to = reinterpret_cast<sockaddr_in&>(place.storage);
    to.sin_family = AF_INET;
    to.sin_port = htons(endpoint.port);
    std::memcpy(&to.sin_addr, endpoint.address.data(), sizeof(to.sin_addr));
    place.length = sizeof(sockaddr_in);
  }
  return place;
}

// fe80::/10 means something only with an interface of the host that connects.
bool IsLinkLocal(const sockaddr& address) {
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// The address of an interface, IPv4 before IPv6; length 0: it has none.
Place PlaceOfInterface(const std::string& name) {
  Place found;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* one = all; one != nullptr && found.length == 0; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != family) continue;
      if (name == one->ifa_name && !IsLinkLocal(*one->ifa_addr)) found = PlaceOf(*one->ifa_addr);
    }
  }
  freeifaddrs(all);
  return found;
}

Descriptor NewSocket(int family) {
  return Descriptor(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Binds and listens. On failure there is nothing, and `error` is errno.
Descriptor ListenAt(const Place& place, int& error) {
  Descriptor listener = NewSocket(place.storage.ss_family);
  const auto* address = reinterpret_cast<const sockaddr*>(&place.storage);
  if (listener.open() && bind(listener.get(), address, place.length) == 0 &&
      listen(listener.get(), SOMAXCONN) == 0) {
    return listener;
  }
  error = errno;
  return Descriptor();
}

// Listens at the first address that `name` stands for and that is one of this host.
Descriptor ListenAtName(const std::string& name, std::string& why) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* result = nullptr;
  if (const int error = getaddrinfo(name.c_str(), nullptr, &hints, &result); error != 0) {
    why = gai_strerror(error);
    return Descriptor();
  }
  Descriptor listener;
  for (const addrinfo* one = result; one != nullptr && !listener.open(); one = one->ai_next) {
    int error = 0;
    listener = ListenAt(PlaceOf(*one->ai_addr), error);
    if (!listener.open()) why = std::strerror(error);
  }
  freeaddrinfo(result);
  return listener;
}

void SendWithoutDelay(const Descriptor& connection) {
  const int on = 1;
  setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

using Pieces = std::array<iovec, 2>;

Pieces PiecesOf(std::span<const std::byte> head, std::span<const std::byte> body) {
  // iovec knows no const: sendmsg() does not write there.
  return {iovec{.iov_base = const_cast<std::byte*>(head.data()), .iov_len = head.size()},
          iovec{.iov_base = const_cast<std::byte*>(body.data()), .iov_len = body.size()}};
}

msghdr MessageOf(Pieces& pieces) {
  msghdr message = {};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return message;
}

Moved Result(ssize_t bytes) {
  if (bytes > 0) return {.flow = Flow::kMoved, .bytes = static_cast<std::size_t>(bytes)};
  if (bytes == 0) return {.flow = Flow::kClosed};
  // Interrupted counts as blocked: whoever asked polls again.
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {};
  return {.flow = Flow::kBroken, .error = errno};
}

}  // namespace

Deadline DeadlineAfter(Duration duration) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(duration);
}

std::string EncodeEndpoint(const Endpoint& endpoint) {
  std::string bytes(1, endpoint.is_ipv6 ? kIpv6 : kIpv4);
  bytes.append(endpoint.address.begin(), endpoint.address.end());
  for (int shift = 8; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(endpoint.port >> shift & 0xff));
  }
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(endpoint.word >> shift & 0xff));
  }
  return bytes;
}

bool DecodeEndpoint(const std::string& bytes, Endpoint& endpoint) {
  if (bytes.size() != kEndpointBytes || (bytes[0] != kIpv4 && bytes[0] != kIpv6)) return false;
  endpoint.is_ipv6 = bytes[0] == kIpv6;
  std::memcpy(endpoint.address.data(), bytes.data() + 1, endpoint.address.size());
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  endpoint.port = static_cast<std::uint16_t>(at(17) << 8 | at(18));
  endpoint.word = 0;
  for (std::size_t i = 19; i < kEndpointBytes; ++i) endpoint.word = endpoint.word << 8 | at(i);
  return true;
}

Descriptor Listen(const std::string& address, Endpoint& endpoint, std::string& why) {
  Descriptor listener;
  if (address.empty()) {
    why = "empty";
  } else if (if_nametoindex(address.c_str()) != 0) {
    const Place place = PlaceOfInterface(address);
    int error = EADDRNOTAVAIL;
    if (place.length != 0) listener = ListenAt(place, error);
    if (!listener.open()) why = std::strerror(error);
  } else {
    listener = ListenAtName(address, why);
  }
  if (!listener.open()) return listener;
  Place place;
  place.length = sizeof(place.storage);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&place.storage), &place.length);
  endpoint = {.is_ipv6 = place.storage.ss_family == AF_INET6};
  if (endpoint.is_ipv6) {
    const auto& own = reinterpret_cast<const sockaddr_in6&>(place.storage);
    std::memcpy(endpoint.address.data(), &own.sin6_addr, sizeof(own.sin6_addr));
    endpoint.port = ntohs(own.sin6_port);
  } else {
    const auto& own = reinterpret_cast<const sockaddr_in&>(place.storage);
    std::memcpy(endpoint.address.data(), &own.sin_addr, sizeof(own.sin_addr));
    endpoint.port = ntohs(own.sin_port);
  }
  if (!crypto::FillRandom(std::as_writable_bytes(std::span(&endpoint.word, 1)))) {
    why = "no random bytes";
    return Descriptor();
  }
  return listener;
}

namespace {

// Returns what errno would be; 0: `connection` is connected.
int TryConnect(const Endpoint& endpoint, Deadline deadline, Descriptor& connection) {
  const Place place = PlaceOf(endpoint);
  connection = NewSocket(place.storage.ss_family);
  const auto* address = reinterpret_cast<const sockaddr*>(&place.storage);
  int error = 0;
  if (!connection.open()) {
    error = errno;
  } else if (connect(connection.get(), address, place.length) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      pollfd wanted = {.fd = connection.get(), .events = POLLOUT, .revents = 0};
      int ready = 0;
      do {
        ready = poll(&wanted, 1, MillisecondsUntil(deadline));
      } while (ready == -1 && errno == EINTR);
      // Ready to write says only that the attempt is over, not how it ended.
      socklen_t length = sizeof(error);
      getsockopt(connection.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (ready == 0) error = ETIMEDOUT;
    }
  }
  return error;
}

}  // namespace

Descriptor ConnectTo(const Endpoint& endpoint, Deadline deadline, std::string& why) {
  Descriptor connection;
  const int error = TryConnect(endpoint, deadline, connection);
  if (error != 0) {
    why = std::string("cannot be reached: ") + std::strerror(error);
    return Descriptor();
  }
  SendWithoutDelay(connection);
  return connection;
}

bool Refuses(const Endpoint& endpoint, Deadline deadline) {
  Descriptor connection;
  return TryConnect(endpoint, deadline, connection) == ECONNREFUSED;
}

Descriptor Accept(const Descriptor& listener, std::string& why) {
  Descriptor connection(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (connection.open()) {
    SendWithoutDelay(connection);
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
    // Other errors are of one connection, which went before it was accepted.
    why = std::strerror(errno);
  }
  return connection;
}

std::string HostOf(const Descriptor& connection) {
  Place place;
  place.length = sizeof(place.storage);
  std::array<char, NI_MAXHOST> name = {};
  auto* const address = reinterpret_cast<sockaddr*>(&place.storage);
  if (getpeername(connection.get(), address, &place.length) != 0 ||
      getnameinfo(address, place.length, name.data(), name.size(), nullptr, 0, NI_NUMERICHOST) !=
          0) {
    return "";
  }
  return name.data();
}

Moved WriteSome(const Descriptor& connection, std::span<const std::byte> head,
                std::span<const std::byte> body) {
  Pieces pieces = PiecesOf(head, body);
  const msghdr message = MessageOf(pieces);
  // Without the flag a peer that has gone would end the process by SIGPIPE.
  return Result(sendmsg(connection.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

Moved ReadSome(const Descriptor& connection, std::span<std::byte> head, std::span<std::byte> body) {
  Pieces pieces = PiecesOf(head, body);
  msghdr message = MessageOf(pieces);
  return Result(recvmsg(connection.get(), &message, MSG_DONTWAIT));
}

bool HasUnread(const Descriptor& connection) {
  char next = 0;
  return recv(connection.get(), &next, sizeof(next), MSG_PEEK | MSG_DONTWAIT) > 0;
}

void SetLowWater(const Descriptor& connection, std::size_t bytes) {
  const int mark = static_cast<int>(bytes);
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark));
}

int MillisecondsUntil(Deadline deadline) {
  const auto left =
      // Rounded up, or a wait would spin through the last part of a millisecond.
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(
      std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, std::numeric_limits<int>::max()));
}

}  // namespace tactus::collective
