// What a member found in its own part of a step or round, where its device left it.

#pragma once

#include <span>

namespace tactus::cuda {

// One number each, in the buffers' memory: nobody on the host need know them.
struct OwnSums {
  std::span<const double> norm2{};  // squared norm of the gradient, or of what is put in
  std::span<const double> loss{};   // sum of the losses
};

}  // namespace tactus::cuda
