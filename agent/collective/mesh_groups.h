// The groups of a member whose replica is a mesh: its row, its column, and those at its place of
// all replicas, each a transport of its own.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/collective/places.h"
#include "agent/collective/tcp_transport.h"
#include "agent/collective/transport.h"
#include "base/time.h"

namespace tactus::collective {

// One member's ends. Collectives of different groups run at the same time. A group that fails says
// nothing to the others: whoever gives up one calls Abort.
struct MeshGroups {
  std::unique_ptr<Transport> row = nullptr;           // rank: the place's column
  std::unique_ptr<Transport> column = nullptr;        // rank: the place's row
  std::unique_ptr<Transport> equal_places = nullptr;  // rank: the replica
  // Whether members' arithmetic may differ, as that of unequal devices does; the same on all.
  bool unlike = false;

  // Of all three. Any thread.
  void Abort(const std::string& reason) const;
};

// Of `size` threads, a multiple of shape.devices(), by rank; see MakeInProcessGroup.
std::vector<MeshGroups> MakeInProcessMeshes(int size, const MeshShape& shape,
                                            const std::function<Instant()>& now);

// What ConnectTcpMesh made, or the reason why there is nothing.
struct ConnectedMesh {
  std::vector<std::unique_ptr<Transport>> world = {};  // of all members
  MeshGroups groups = {};
  std::string reason = "";  // empty when they are there
  bool own = false;         // as of ConnectedTransport
};

// Meets the others once, as ConnectTcp, and makes `world_count` transports of all members, >= 1,
// and the member's groups. Requires: meeting.size is a multiple of shape.devices(), and the shape
// and the count are the same on all members.
ConnectedMesh ConnectTcpMesh(const TcpMeeting& meeting, std::size_t world_count,
                             const MeshShape& shape);

}  // namespace tactus::collective
