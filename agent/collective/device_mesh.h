// The groups of a mesh's member whose memory is a device's: by NCCL, or by way of the host's.

#pragma once

#include <functional>

#include "agent/collective/device_group.h"
#include "agent/collective/mesh_groups.h"
#include "agent/collective/places.h"
#include "base/time.h"
#include "cuda/ops/stream.h"

namespace tactus::collective {

// As ConnectTcpMesh, of members that all have devices: each group of two members and more is one of
// ConnectNccl, with a communicator, a stream and a heartbeat of its own, and
// collectives reach the device in the order of their starts (LaunchOrder), which all members have
// alike. Kernels of row and column may run at the same time. The communicators' ids
// travel between the members once these are connected by TCP. One world; meeting.exchange is called
// once.
ConnectedMesh ConnectDeviceMesh(const DeviceMeeting& meeting, const MeshShape& shape);

// A device whose memory goes by way of the host's; as of StagedMember.
struct StagedDevice {
  int device = 0;
  cuda::Stream compute_stream = nullptr;
  std::function<Instant()> now = {};
};

// The same groups, which are the hosts', for a member on a device: other members may be on hosts.
// What is not there, with its reason, stays so.
ConnectedMesh StageMesh(ConnectedMesh hosts, const StagedDevice& device);

}  // namespace tactus::collective
