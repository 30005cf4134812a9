// Collectives between processes over TCP.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "base/time.h"

namespace tactus::collective {

// What the members tell one another before they are connected. It travels by the agents and the
// coordinator, never through a worker, so no worker's death takes it away.
struct TcpMeeting {
  int rank = 0;
  int size = 1;
  std::string
      address;  // this host's address or interface name for the group's traffic, e.g. "127.0.0.1"
  Duration timeout = Seconds(30);  // to connect once the endpoints are known, > 0
  // Passes this member's endpoint (bytes) to the others and returns all members' endpoints in rank
  // order, its own included; empty when the group was given up. Blocks; called once, while they
  // meet, also when size = 1.
  std::function<std::vector<std::string>(std::string own_endpoint)> exchange;
  std::function<Instant()> now;  // the present
  // Asked now and then while members are still to come: why to stop that, empty to go on. May be
  // empty.
  std::function<std::string()> give_up = {};
  // The same, in the thread that waits, of collectives.
  std::function<std::string()> give_up_collective = {};
  // Who the others are: members of this generation, as they know its secret. Without one, as of a
  // coordinator that gives none, whoever has learned the endpoints is taken for one of them.
  std::uint64_t generation = 0;
  std::string secret = {};
  bool encrypted = false;  // by TLS 1.3; the same for all members
  // Told, at most once, in one line, who was refused meanwhile. May be empty.
  std::function<void(const std::string& line)> tell = {};
};

// A connected transport, or the reason why there is none.
struct ConnectedTransport {
  std::unique_ptr<Transport> transport = nullptr;  // null: see reason
  std::string reason = "";                         // empty when there is a transport
  bool own = false;  // the reason is this member's alone: it cannot be in such a group
};

// Meets the others and connects to each of them: when it returns a transport, all pairs of members
// that involve this one are connected. Collectives then run in order on one thread of the
// transport; a peer that closes its connection fails those under way within milliseconds. One that
// hangs or is cut off is waited for: a peer that computes a hundred times more slowly looks the
// same, and whoever sees both ends of the wait (Transport::awaiting) knows better.
//
// Sums are taken in rank order, as in the in-process group: neither the length nor the cut into
// buckets changes a bit. The group's traffic is encrypted only where the meeting says so.
ConnectedTransport ConnectTcp(const TcpMeeting& meeting);

// Transports of the same members, or the reason why there are none.
struct ConnectedTransports {
  std::vector<std::unique_ptr<Transport>> transports = {};
  std::string reason = "";  // empty when there are transports
  bool own = false;         // as of ConnectedTransport
};

// Meets the others once and makes `count` transports, >= 1 and the same number on all members, that
// work independently of each other; and behind them `each`, likewise, for each of `parts`, groups
// of two members and more that this one is in, each in the order of their ranks there. No other
// member is in two of them, and all members name parts, or none does.
ConnectedTransports ConnectTcp(const TcpMeeting& meeting, std::size_t count,
                               const std::vector<std::vector<int>>& parts = {},
                               std::size_t each = 1);

}  // namespace tactus::collective
