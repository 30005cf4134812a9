// Where passes leave what they compute.

#pragma once

#include "cuda/device.h"

namespace tactus::worker {

// In the device's memory.
struct PassSums {
  cuda::Buffer gradients{};  // [cuda::FlatLength(segments)], of which an engine has lanes behind
  cuda::Sums losses{};       // one number
};

}  // namespace tactus::worker
