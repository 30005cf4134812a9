#include "tests/agent/engine/nccl_double/on_devices.h"

#include <cstddef>
#include <string>
#include <utility>

#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::engine {

using collective::ConnectedTransport;
using collective::NcclMeeting;

std::vector<OnDevices::Place> OnDevices::Places(int size) {
  std::vector<Place> places(static_cast<std::size_t>(size));
  std::vector<NcclMeeting> meetings = Meetings(size);
  for (NcclMeeting& meeting : meetings) {
    cuda::OpenedDevice opened = cuda::OpenDevice("cuda:" + std::to_string(meeting.rank));
    EXPECT_NE(opened.device, nullptr) << opened.reason;
    meeting.compute_stream = opened.device->stream();
    places[static_cast<std::size_t>(meeting.rank)].device = std::move(opened.device);
  }
  collective::OnEveryRank(size, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    ConnectedTransport connected = ConnectNccl(std::move(meetings[index]));
    EXPECT_NE(connected.transport, nullptr) << connected.reason;
    places[index].transport = std::move(connected.transport);
  });
  return places;
}

std::vector<MemberRun> OnDevices::TrainOnDevices(const GroupRun& run, const Connected& connected) {
  std::vector<Place> places = Places(static_cast<int>(run.plan.batch_sizes.size()));
  World world;
  std::vector<collective::Transport*> transports;
  for (Place& place : places) {
    transports.push_back(place.transport.get());
    world.transports.push_back(std::move(place.transport));
  }
  if (connected) connected(transports);
  world.open_device = [&](int rank) {
    return std::move(places[static_cast<std::size_t>(rank)].device);
  };
  std::vector<MemberRun> runs = TrainIn(std::move(world), run);
  EXPECT_EQ(cuda_double::DefaultStreamUses(), 0);  // all that a round does is on its own streams
  return runs;
}

}  // namespace tactus::engine
