// What a test may ask of the double of the CUDA runtime besides the runtime's own calls.

#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "tests/support/cuda_double/cuda_runtime.h"
#include "tests/support/cuda_double/schedule.h"

namespace tactus::cuda_double {

// What the machine that the double plays has.
struct Machine {
  int devices = 1;
  std::size_t memory_bytes = std::size_t{1} << 30;  // a device
  cudaError_t no_device = cudaErrorNoDevice;        // what is said when devices = 0
  Order order = Order::kForward;                    // of blocks and threads
  std::optional<Timing> timing = {};                // none: SetTiming's
};

// Starts anew with that machine, with no injected errors. All memory has been freed, all streams
// and events destroyed; after a device broke, what is left goes with it, as with the process.
void Reset(const Machine& machine);

// Lets the nth call of `function` from now, counted from 1, fail with `error` and do nothing. One
// fault a function; a second one replaces it.
void FailCall(const std::string& function, int nth, cudaError_t error);

// From now on every call fails with `error` and no operation runs, as after a kernel's illegal
// access. cudaSuccess: all is well again, which no device offers.
void BreakDevices(cudaError_t error);

// The same, but only when the nth operation queued on the stream from now, counted from 1, runs:
// those before it are done, and the error shows at whatever call comes after.
void BreakAt(cudaStream_t stream, int nth, cudaError_t error);

// How many calls of `function` there were since Reset.
int Calls(const std::string& function);

// What the calls of the calling thread have cost it since it began: those that return only when a
// device has done something, and operations queued for a device (kernels, copies, fills).
struct Costs {
  int waits = 0;
  int launches = 0;

  friend Costs operator-(const Costs& a, const Costs& b) {
    return {.waits = a.waits - b.waits, .launches = a.launches - b.launches};
  }
};
Costs CostsOfThread();

// How many calls since Reset used the stream whose name is null, copies that wait included: all
// that the process does waits for what is there, and it waits for all.
int DefaultStreamUses();

// What is allocated and not freed, on all devices or on one. [bytes]
std::size_t DeviceBytes();
std::size_t DeviceBytes(int device);
std::size_t PinnedBytes();
// Streams and events created and not destroyed.
int Streams();
int Events();

// Whether the range lies in live device memory.
bool IsDeviceMemory(const void* memory, std::size_t bytes);

// As cudaFree, but that it waits for nothing. Whether the memory is live.
bool FreeAtOnce(void* memory);

// Memory of the host plays the calling thread's device's until it is forgotten, but for that the
// host may touch it. No free takes it.
void Adopt(void* memory, std::size_t bytes);
void Forget(void* memory);

// While it is there, device memory can be touched. In operations alone, and there only around what
// touches it: to open pages is what the double's time goes to.
class OpenMemory {
 public:
  OpenMemory();
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
  ~OpenMemory();
};

// Queues an operation of another double (a collective, say) on a stream. `attempt` is called, under
// the runtime's lock, whenever the stream could go on, until it returns true: done. Where what it
// waits for is not a stream's doing, whoever does it calls Wake() then, not from within an attempt.
void Queue(cudaStream_t stream, std::function<bool()> attempt);
void Wake();

}  // namespace tactus::cuda_double
