#include "cuda/pinned_copies.h"

#include <cuda_runtime.h>

#include "base/check.h"
#include "cuda/call_reason.cuh"

namespace tactus::cuda {

// A failure is that of something before: the memory goes with the process then.
void FreePinned::operator()(float* memory) const { static_cast<void>(cudaFreeHost(memory)); }

OpenedPinned OpenPinned(std::size_t length) {
  void* memory = nullptr;
  const std::string reason =
      ReasonOf(cudaMallocHost(&memory, length * sizeof(float)), "cudaMallocHost");
  if (!reason.empty()) return {.reason = reason};
  return {.memory = PinnedFloats(static_cast<float*>(memory))};
}

OpenedEvent OpenSleepingEvent() {
  cudaEvent_t event = nullptr;
  const std::string reason =
      ReasonOf(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
               "cudaEventCreateWithFlags");
  if (!reason.empty()) return {.reason = reason};
  return {.event = OwnedEvent(event)};
}

std::string QueueCopy(Stream stream, std::span<const std::byte> from, std::span<std::byte> to) {
  TACTUS_CHECK(from.size() == to.size());
  if (from.empty()) return "";
  return ReasonOf(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDefault, stream),
                  "cudaMemcpyAsync");
}

std::string Await(Event event) {
  return ReasonOf(cudaEventSynchronize(event), "cudaEventSynchronize");
}

}  // namespace tactus::cuda
