// What tests in Python ask of the double of the CUDA runtime, beside the C interface.

#include <cstdint>
#include <string_view>

#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/cuda_double/cuda_runtime.h"

namespace cuda_double = tactus::cuda_double;

extern "C" {

// schedule: as --schedule of the doubles' tests. A machine of so many devices.
std::int32_t tactus_double_reset(const char* schedule, std::int32_t devices) {
  const auto timing = cuda_double::ParseTiming(schedule);
  if (!timing) return -1;
  cuda_double::Reset({.devices = devices, .timing = timing});
  return 0;
}

void* tactus_double_stream(void) {
  cudaStream_t stream = nullptr;
  return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess ? stream
                                                                                  : nullptr;
}

void tactus_double_end_stream(void* stream) {
  cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

std::int32_t tactus_double_synchronize(void* stream) {
  return cudaStreamSynchronize(static_cast<cudaStream_t>(stream)) == cudaSuccess ? 0 : -1;
}

// The nth call of the function from now on fails.
void tactus_double_fail(const char* function, std::int32_t nth) {
  cuda_double::FailCall(function, nth, cudaErrorUnknown);
}

void tactus_double_adopt(void* memory, std::uint64_t bytes) { cuda_double::Adopt(memory, bytes); }
void tactus_double_forget(void* memory) { cuda_double::Forget(memory); }

}  // extern "C"
