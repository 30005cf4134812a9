#include "agent/collective/mesh_groups.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "agent/collective/in_process.h"
#include "base/check.h"

namespace tactus::collective {
namespace {

// A member's groups, as ranks.
struct Ranks {
  std::vector<int> row;
  std::vector<int> column;
  std::vector<int> equal_places;
};

Ranks RanksOf(int rank, const MeshShape& shape, int size) {
  return {.row = RowOf(rank, shape),
          .column = ColumnOf(rank, shape),
          .equal_places = EqualPlacesOf(rank, shape, size)};
}

std::unique_ptr<Transport> Alone(const std::function<Instant()>& now) {
  return std::move(MakeInProcessGroup(1, now).front());
}

}  // namespace

void MeshGroups::Abort(const std::string& reason) const {
  for (Transport* const group : {row.get(), column.get(), equal_places.get()}) {
    if (group != nullptr) group->Abort(reason);
  }
}

std::vector<MeshGroups> MakeInProcessMeshes(int size, const MeshShape& shape,
                                            const std::function<Instant()>& now) {
  std::vector<MeshGroups> members(static_cast<std::size_t>(size));
  // A group is made by the lowest of its ranks, and each of the others takes its end.
  const auto give = [&](int rank, const std::vector<int>& ranks,
                        std::unique_ptr<Transport> MeshGroups::*group) {
    if (ranks.front() != rank) return;
    std::vector<std::unique_ptr<Transport>> ends =
        MakeInProcessGroup(static_cast<int>(ranks.size()), now);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      members[static_cast<std::size_t>(ranks[i])].*group = std::move(ends[i]);
    }
  };
  for (int rank = 0; rank < size; ++rank) {
    const Ranks ranks = RanksOf(rank, shape, size);
    give(rank, ranks.row, &MeshGroups::row);
    give(rank, ranks.column, &MeshGroups::column);
    give(rank, ranks.equal_places, &MeshGroups::equal_places);
  }
  return members;
}

ConnectedMesh ConnectTcpMesh(const TcpMeeting& meeting, std::size_t world_count,
                             const MeshShape& shape) {
  TACTUS_CHECK(meeting.size % shape.devices() == 0 && meeting.now);
  const Ranks ranks = RanksOf(meeting.rank, shape, meeting.size);
  ConnectedMesh connected;
  const std::array<std::pair<const std::vector<int>*, std::unique_ptr<Transport>*>, 3> groups = {{
      {&ranks.row, &connected.groups.row},
      {&ranks.column, &connected.groups.column},
      {&ranks.equal_places, &connected.groups.equal_places},
  }};
  // Of one member alone a group needs no connections.
  std::vector<std::vector<int>> parts;
  for (const auto& [members, transport] : groups) {
    if (members->size() > 1) parts.push_back(*members);
  }
  ConnectedTransports made = ConnectTcp(meeting, world_count, parts);
  if (made.transports.empty()) {
    connected.reason = std::move(made.reason);
    connected.own = made.own;
    return connected;
  }
  std::size_t next = world_count;
  for (const auto& [members, transport] : groups) {
    *transport = members->size() > 1 ? std::move(made.transports[next++]) : Alone(meeting.now);
  }
  made.transports.resize(world_count);
  connected.world = std::move(made.transports);
  return connected;
}

}  // namespace tactus::collective
