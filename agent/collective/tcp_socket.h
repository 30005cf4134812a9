// TCP connections of a group, by the system's sockets alone: addresses, listening, connecting.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/descriptor.h"
#include "base/time.h"

namespace tactus::collective {

using Deadline = std::chrono::steady_clock::time_point;

Deadline DeadlineAfter(Duration duration);

// Where a member listens, and a word that is drawn for each meeting: greetings are bound to it.
struct Endpoint {
  std::array<std::uint8_t, 16> address = {};  // network order; IPv4 uses the first 4
  bool is_ipv6 = false;
  std::uint16_t port = 0;
  std::uint64_t word = 0;
};

// The same bytes on every host; all of one length.
inline constexpr std::size_t kEndpointBytes = 27;
std::string EncodeEndpoint(const Endpoint& endpoint);

// False: these bytes are no endpoint.
[[nodiscard]] bool DecodeEndpoint(const std::string& bytes, Endpoint& endpoint);

// Listens at a port that the system chooses, at `address`: an interface's name, or a name or number
// of an address of this host. Fills in `endpoint`. Nothing comes back, and `why` says why, if that
// cannot be.
Descriptor Listen(const std::string& address, Endpoint& endpoint, std::string& why);

// Connects; without a connection before the deadline there is none and `why` says why.
Descriptor ConnectTo(const Endpoint& endpoint, Deadline deadline, std::string& why);

// Whether the host there says that nobody listens any more; false where it says nothing before the
// deadline.
bool Refuses(const Endpoint& endpoint, Deadline deadline);

// Takes a connection that is waiting at `listener`; none: nothing waits, or, with the reason in
// `why`, this process can take none: it has no descriptors or no memory left.
Descriptor Accept(const Descriptor& listener, std::string& why);

// From where a connection came, as a number; empty: nobody knows any more.
std::string HostOf(const Descriptor& connection);

// How a call on a connection that never blocks went.
enum class Flow { kMoved, kBlocked, kClosed, kBroken };

struct Moved {
  Flow flow = Flow::kBlocked;
  std::size_t bytes = 0;  // > 0 exactly when flow is kMoved
  int error = 0;          // errno of kBroken
};

// Writes `head`, then `body`, as much as fits; fills `head`, then `body`, as far as there is
// something. Neither raises SIGPIPE.
Moved WriteSome(const Descriptor& connection, std::span<const std::byte> head,
                std::span<const std::byte> body);
Moved ReadSome(const Descriptor& connection, std::span<std::byte> head, std::span<std::byte> body);

// Whether bytes have come that were not read.
bool HasUnread(const Descriptor& connection);

// From now on poll(2) finds the connection readable only when so many bytes, >= 1, have come, or it
// has ended, or the system has no room for so many.
void SetLowWater(const Descriptor& connection, std::size_t bytes);

// Milliseconds to the deadline for poll(2), rounded up, never negative.
int MillisecondsUntil(Deadline deadline);

}  // namespace tactus::collective
