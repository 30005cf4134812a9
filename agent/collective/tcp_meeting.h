// How the members of a group come to have TCP connections to each other.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/collective/mesh_connection.h"
#include "agent/collective/tcp_transport.h"

namespace tactus::collective {

// A member's connections to all others, or the reason why there are none.
struct TcpConnections {
  std::vector<MeshConnection> connections = {};  // [size, lanes]; none to this member itself
  std::string reason = {};                       // empty when they are there
  bool own = false;                              // the reason is this host's want of something
};

// Meets the others and opens `lanes` connections to each, >= 1 and the same number on all members.
// Who is at the other end of each has proven that it knows the group's secret.
TcpConnections MeetByTcp(const TcpMeeting& meeting, std::size_t lanes);

}  // namespace tactus::collective
