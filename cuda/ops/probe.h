// Whether a device can run these kernels at all.

#pragma once

#include <string>

#include "cuda/ops/stream.h"

namespace tactus::cuda::kernels {

// Runs a kernel that does nothing on `stream`, which must be at rest, and waits for it. Empty if
// that worked, else CUDA's reason: a device older than all that the build has code for, or in a bad
// state.
std::string WhyNoKernelRuns(Stream stream);

}  // namespace tactus::cuda::kernels
