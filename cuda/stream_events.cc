#include "cuda/stream_events.h"

#include <cuda_runtime.h>

#include <atomic>
#include <utility>

#include "cuda/call_reason.cuh"

namespace tactus::cuda {

// A device that is broken refuses these as well; who closes has been told before.
void CloseStream::operator()(Stream stream) const { cudaStreamDestroy(stream); }
void CloseEvent::operator()(Event event) const { cudaEventDestroy(event); }

void CloseFlag::operator()(std::uint32_t* flag) const { cudaFreeHost(flag); }

std::string UseDevice(int device) { return ReasonOf(cudaSetDevice(device), "cudaSetDevice"); }

OpenedStream OpenStream() {
  int least = 0;
  int greatest = 0;
  std::string reason = ReasonOf(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                                "cudaDeviceGetStreamPriorityRange");
  if (!reason.empty()) return {.reason = reason};
  cudaStream_t stream = nullptr;
  reason = ReasonOf(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
                    "cudaStreamCreateWithPriority");
  if (!reason.empty()) return {.reason = reason};
  return {.stream = OwnedStream(stream)};
}

OpenedEvent OpenEvent() {
  cudaEvent_t event = nullptr;
  const std::string reason = ReasonOf(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                      "cudaEventCreateWithFlags");
  if (!reason.empty()) return {.reason = reason};
  return {.event = OwnedEvent(event)};
}

OpenedFlag OpenFlag() {
  void* memory = nullptr;
  const std::string reason =
      ReasonOf(cudaMallocHost(&memory, sizeof(std::uint32_t)), "cudaMallocHost");
  if (!reason.empty()) return {.reason = reason};
  auto* const flag = static_cast<std::uint32_t*>(memory);
  *flag = 0;
  return {.flag = OwnedFlag(flag)};
}

void Raise(std::uint32_t* flag) { std::atomic_ref<std::uint32_t>(*flag).store(1); }

std::string Record(Event event, Stream stream) {
  return ReasonOf(cudaEventRecord(event, stream), "cudaEventRecord");
}

std::string WaitFor(Stream stream, Event event) {
  return ReasonOf(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

EventState Query(Event event) {
  const cudaError_t error = cudaEventQuery(event);
  if (error == cudaErrorNotReady) {
    cudaGetLastError();  // older runtimes keep even this one
    return {};
  }
  std::string reason = ReasonOf(error, "cudaEventQuery");
  const Reached reached = reason.empty() ? Reached::kYes : Reached::kFailed;
  return {.reached = reached, .reason = std::move(reason)};
}

bool IsDeviceMemory(const void* address) {
  cudaPointerAttributes attributes{};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, address);
  if (error == cudaSuccess) return attributes.type == cudaMemoryTypeDevice;
  cudaGetLastError();
  return false;
}

}  // namespace tactus::cuda
