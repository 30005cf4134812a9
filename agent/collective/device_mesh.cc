#include "agent/collective/device_mesh.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/nccl_transport.h"
#include "agent/collective/staged_transport.h"
#include "base/check.h"
#include "cuda/nccl.h"

namespace tactus::collective {
namespace {

// Of an endpoint's text, which ends with the first 0: it is less than 400 bytes.
constexpr std::size_t kTextBytes = 512;
constexpr std::size_t kTextFloats = kTextBytes / sizeof(float);

// What every member says, by rank; nothing: the group is over. Bytes travel as floats, of which
// nobody computes anything.
std::vector<std::string> ExchangeTexts(Transport& group, const std::string& own) {
  TACTUS_CHECK(own.size() < kTextBytes);
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<float> said(kTextFloats);
  std::vector<float> all(kTextFloats * size);
  std::memcpy(said.data(), own.data(), own.size());
  if (group.StartAllGather(said, all)->Wait().progress == Progress::kFailed) return {};
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < size; ++rank) {
    std::array<char, kTextBytes> text{};
    std::memcpy(text.data(), all.data() + rank * kTextFloats, kTextBytes - 1);
    texts.emplace_back(text.data());
  }
  return texts;
}

// The group of the two transports' members, between their devices.
ConnectedTransport JoinDevices(const DeviceMeeting& meeting, std::shared_ptr<LaunchOrder> order,
                               std::unique_ptr<Transport> signals,
                               std::unique_ptr<Transport> heartbeat) {
  Transport& group = *signals;
  return ConnectNccl(
      {.rank = group.rank(),
       .size = group.size(),
       .generation = meeting.generation,
       .device = meeting.device,
       .compute_stream = meeting.compute_stream,
       .exchange = [&group](const std::string& own) { return ExchangeTexts(group, own); },
       .now = meeting.now,
       .give_up = meeting.give_up,
       .order = std::move(order),
       .signals = std::move(signals),
       .heartbeat = std::move(heartbeat),
       .must_end = meeting.must_end});
}

ConnectedMesh Without(std::string reason, bool own) {
  ConnectedMesh none;
  none.reason = std::move(reason);
  none.own = own;
  return none;
}

}  // namespace

// One group after the other, in the same order on all members: so nobody waits for one who waits
// for another.
ConnectedMesh ConnectDeviceMesh(const DeviceMeeting& meeting, const MeshShape& shape) {
  TACTUS_CHECK(shape.devices() > 1 && meeting.size % shape.devices() == 0);
  if (cuda::nccl::Version() == 0) return Without("this build has no NCCL", true);
  const std::array<std::vector<int>, 3> ranks = {RowOf(meeting.rank, shape),
                                                 ColumnOf(meeting.rank, shape),
                                                 EqualPlacesOf(meeting.rank, shape, meeting.size)};
  std::vector<std::vector<int>> parts;
  std::ranges::copy_if(ranks, std::back_inserter(parts),
                       [](const std::vector<int>& members) { return members.size() > 1; });
  // Also while ids travel, by what these connect; afterwards others watch over them.
  TcpMeeting hosts = TcpMeetingOf(meeting);
  const auto meets = std::make_shared<std::atomic<bool>>(true);
  if (meeting.give_up) {
    hosts.give_up_collective = [meets, give_up = meeting.give_up] {
      return *meets ? give_up() : std::string();
    };
  }
  ConnectedTransports tcp = ConnectTcp(hosts, kHostTransports, parts, kHostTransports);
  if (tcp.transports.empty()) return Without(std::move(tcp.reason), tcp.own);
  std::size_t next = 0;
  const auto order = std::make_shared<LaunchOrder>();
  const auto join = [&] {
    ConnectedTransport joined =
        JoinDevices(meeting, order, std::move(tcp.transports[next + kSignalsAt]),
                    std::move(tcp.transports[next + kHeartbeatAt]));
    next += kHostTransports;
    return joined;
  };
  ConnectedTransport world = join();
  if (world.transport == nullptr) return Without(std::move(world.reason), world.own);
  ConnectedMesh mesh{.groups = {.unlike = true}};
  mesh.world.push_back(std::move(world.transport));
  const std::array<std::unique_ptr<Transport>*, 3> groups = {&mesh.groups.row, &mesh.groups.column,
                                                             &mesh.groups.equal_places};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (ranks[i].size() == 1) {
      *groups[i] = MakeSoloTransport(meeting.now);
      continue;
    }
    ConnectedTransport joined = join();
    if (joined.transport == nullptr) return Without(std::move(joined.reason), joined.own);
    *groups[i] = std::move(joined.transport);
  }
  *meets = false;
  return mesh;
}

ConnectedMesh StageMesh(ConnectedMesh hosts, const StagedDevice& device) {
  if (hosts.world.empty()) return hosts;
  std::vector<std::unique_ptr<Transport>*> groups = {&hosts.groups.row, &hosts.groups.column,
                                                     &hosts.groups.equal_places};
  for (std::unique_ptr<Transport>& world : hosts.world) groups.push_back(&world);
  for (std::unique_ptr<Transport>* const group : groups) {
    if ((*group)->size() == 1) {
      *group = MakeSoloTransport(device.now);
      continue;
    }
    ConnectedTransport staged = MakeStagedTransport({.device = device.device,
                                                     .compute_stream = device.compute_stream,
                                                     .host = std::move(*group),
                                                     .now = device.now});
    if (staged.transport == nullptr) return Without(std::move(staged.reason), staged.own);
    *group = std::move(staged.transport);
  }
  return hosts;
}

}  // namespace tactus::collective
