// Groups of engines on the doubles of the CUDA runtime and of NCCL.

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "agent/collective/transport.h"
#include "cuda/device.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {

class OnDevices : public collective::NcclMembers {
 protected:
  // A member of a group, connected.
  struct Place {
    std::unique_ptr<cuda::Device> device;
    std::unique_ptr<collective::Transport> transport;
  };

  // One a device, by rank.
  std::vector<Place> Places(int size);

  // Trains a group on as many devices. `connected`, if set, is given the transports before.
  using Connected = std::function<void(const std::vector<collective::Transport*>& transports)>;
  std::vector<MemberRun> TrainOnDevices(const GroupRun& run, const Connected& connected = nullptr);
};

}  // namespace tactus::engine
