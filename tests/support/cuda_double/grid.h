// How the double of the CUDA runtime runs a kernel: every thread of a block is a fiber, which runs
// until it waits at a barrier; blocks run one after the other.
//
// What a device would leave undefined stops the process with the place and the reason: threads of a
// block at different barriers, lanes missing from an exchange that names them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};

struct dim3 {
  unsigned x = 1, y = 1, z = 1;

  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// Of the thread that is running.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace tactus::cuda_double {

using Kernel = std::function<void()>;

// A line of source, for messages, and for telling one barrier from another.
struct Place {
  const char* file = "";
  int line = 0;
};

// In which order blocks, and threads between barriers, run. Results may not depend on it.
enum class Order { kForward, kReverse };

// Runs the whole grid. One at a time: the caller holds the runtime's lock.
void RunGrid(dim3 grid, dim3 block, Order order, const Kernel& kernel);

// The following are called by a running thread.

unsigned Lane();  // in its warp, 0 to 31
void BlockBarrier(Place place);
// Waits for every lane of `mask`, which includes the caller's. Returns 32 values, of which those of
// the mask's lanes are what they gave; they hold until the caller's next exchange.
const std::uint64_t* WarpExchange(unsigned mask, std::uint64_t value, Place place);

}  // namespace tactus::cuda_double
