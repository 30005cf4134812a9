// One lane, for the host's loop and the kernel.

#pragma once

#include "cuda/ops/host_device.h"
#include "cuda/ops/lanes.h"

namespace tactus::cuda {

TACTUS_HOST_DEVICE inline float LaneOf(const LaneValue& value, double norm2, double loss,
                                       double common_loss) {
  const bool finite = norm2 - norm2 == 0 && loss - loss == 0;
  if (!finite) return value.if_not_finite;
  if (value.loss == LossLane::kAll) return static_cast<float>(loss);
  if (value.loss == LossLane::kCommon) return static_cast<float>(common_loss);
  if (value.norm_factor == 0) return value.if_finite;
  return static_cast<float>(norm2 * value.norm_factor / value.norm_divisor);
}

}  // namespace tactus::cuda
