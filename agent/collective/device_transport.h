// What transports that take a device's memory have in common. Private to agent/collective.

#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "agent/collective/transport.h"
#include "base/check.h"
#include "cuda/stream_events.h"

namespace tactus::collective {

// Of buffers on the device, sums at a root and gatherings are operations that Start knows; of those
// on the host they are the conversations of any transport.
class DeviceTransport : public Transport {
 public:
  std::unique_ptr<Collective> StartRootSum(std::span<float> buffer, int root) override {
    if (!cuda::IsDeviceMemory(buffer.data())) return Transport::StartRootSum(buffer, root);
    return Start({.kind = Operation::Kind::kRootSum, .buffer = buffer, .partner = root});
  }
  std::unique_ptr<Collective> StartAllGather(std::span<const float> own,
                                             std::span<float> all) override {
    if (!cuda::IsDeviceMemory(own.data())) return Transport::StartAllGather(own, all);
    TACTUS_CHECK(all.size() == own.size() * static_cast<std::size_t>(size()));
    return Start({.kind = Operation::Kind::kAllGather, .buffer = all, .own = own});
  }
};

}  // namespace tactus::collective
