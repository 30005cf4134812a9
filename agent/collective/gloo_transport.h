// Collectives between processes over TCP, by Gloo.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "base/time.h"

namespace tactus::collective {

// What the members tell one another before they are connected. It travels by the agents and the
// coordinator, never through a worker, so no worker's death takes it away.
struct GlooMeeting {
  int rank = 0;
  int size = 1;
  std::string address;  // this host's address or interface name for the group's traffic, e.g. "127.0.0.1"
  Duration timeout = Seconds(30);  // to connect, > 0
  // Passes this member's endpoint to the others and returns all members' endpoints in rank order, its own
  // included; empty when the group was given up. Blocks; called once, from ConnectGloo.
  std::function<std::vector<std::string>(std::string own_endpoint)> exchange;
  std::function<Instant()> now;  // the present
};

// A connected transport, or the reason why there is none.
struct ConnectedTransport {
  std::unique_ptr<Transport> transport;  // null: see reason
  std::string reason;
};

// Meets the others and connects to each of them. Collectives then run in order on one thread of the
// transport; a peer that closes its connection fails them within milliseconds.
ConnectedTransport ConnectGloo(const GlooMeeting& meeting);

}  // namespace tactus::collective
