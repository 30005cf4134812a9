// The double's calls about memory, copies and devices.

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/cuda_double/runtime.h"

namespace cuda_double = tactus::cuda_double;
using cuda_double::Call;
using cuda_double::TheRuntime;

namespace {

constexpr int kVersion = 13000;

// keep: held until the copy has run.
cudaError_t QueueCopy(Call& call, void* to, const void* from, std::size_t bytes,
                      cudaMemcpyKind kind, CUstream_st* stream,
                      const std::shared_ptr<const void>& keep = nullptr) {
  if (bytes == 0) return cudaSuccess;
  const bool from_device = TheRuntime().memory.IsDevice(from, bytes);
  const bool to_device = TheRuntime().memory.IsDevice(to, bytes);
  const bool names_device_source = (kind & cudaMemcpyDeviceToHost) != 0;
  const bool names_device_target = (kind & cudaMemcpyHostToDevice) != 0;
  const bool as_named = kind == cudaMemcpyDefault ||
                        (from_device == names_device_source && to_device == names_device_target);
  if (!as_named) return cudaErrorInvalidValue;
  const bool pageable_target = !to_device && !TheRuntime().memory.IsPinned(to, bytes);
  // A pageable source is read when the copy runs. CUDA says no more than that the call *might* wait
  // for it, and a device that reads the host's memory by itself has no reason to.
  cuda_double::Enqueue(stream, [to, from, bytes, keep] {
    const cuda_double::OpenMemory open;
    std::memmove(to, from, bytes);
    return true;
  });
  return pageable_target ? call.Drain(stream) : cudaSuccess;
}

cudaError_t Pin(Call& call, void** memory, std::size_t bytes) {
  if (call.error() != cudaSuccess) return call.error();
  *memory = TheRuntime().memory.AllocatePinned(cuda_double::CurrentDevice(), bytes);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

}  // namespace

cudaError_t cudaDriverGetVersion(int* version) {
  const Call call("cudaDriverGetVersion");
  *version = TheRuntime().machine.devices > 0 ? kVersion : 0;
  return call.Return(call.error());
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  const Call call("cudaRuntimeGetVersion");
  *version = kVersion;
  return call.Return(call.error());
}

cudaError_t cudaGetDeviceCount(int* count) {
  const Call call("cudaGetDeviceCount");
  *count = call.error() == cudaSuccess ? TheRuntime().machine.devices : 0;
  return call.Return(call.error());
}

cudaError_t cudaGetDevice(int* device) {
  const Call call("cudaGetDevice");
  *device = cuda_double::CurrentDevice();
  return call.Return(call.error());
}

cudaError_t cudaSetDevice(int device) {
  const Call call("cudaSetDevice");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  if (device < 0 || device >= TheRuntime().machine.devices) {
    return call.Return(cudaErrorInvalidDevice);
  }
  cuda_double::CurrentDevice() = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Call call("cudaGetDeviceProperties");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  if (device < 0 || device >= TheRuntime().machine.devices) {
    return call.Return(cudaErrorInvalidDevice);
  }
  *properties = {};
  std::strcpy(properties->name, "double of a CUDA device");
  properties->uuid.bytes[15] = static_cast<char>(device + 1);
  properties->totalGlobalMem = TheRuntime().machine.memory_bytes;
  properties->major = 9;
  properties->multiProcessorCount = 4;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties{};
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) return error;
  if (attribute == cudaDevAttrMultiProcessorCount) *value = properties.multiProcessorCount;
  if (attribute == cudaDevAttrComputeCapabilityMajor) *value = properties.major;
  if (attribute == cudaDevAttrComputeCapabilityMinor) *value = properties.minor;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Call call("cudaMalloc");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  cuda_double::Runtime& runtime = TheRuntime();
  const int device = cuda_double::CurrentDevice();
  const std::size_t free = runtime.machine.memory_bytes - runtime.memory.device_bytes(device);
  if (bytes > free) return call.Return(cudaErrorMemoryAllocation);
  *memory = runtime.memory.AllocateDevice(device, bytes);
  return call.Return(*memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFree(void* memory) {
  Call call("cudaFree");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  if (memory == nullptr) return cudaSuccess;
  const cuda_double::Memory& all = TheRuntime().memory;
  if (!all.IsAllocated(memory)) return call.Return(cudaErrorInvalidValue);
  const cudaError_t error = call.DrainDevice(all.DeviceOf(memory));  // as the runtime does
  if (error != cudaSuccess) return call.Return(error);
  return call.Return(TheRuntime().memory.FreeDevice(memory) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  Call call("cudaMallocHost");
  return call.Return(Pin(call, memory, bytes));
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  Call call("cudaHostAlloc");
  return call.Return(Pin(call, memory, bytes));
}

cudaError_t cudaFreeHost(void* memory) {
  Call call("cudaFreeHost");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  if (memory == nullptr) return cudaSuccess;
  if (!TheRuntime().memory.IsPinned(memory, 0)) return call.Return(cudaErrorInvalidValue);
  const cudaError_t error = call.DrainDevice(TheRuntime().memory.PinnedBy(memory));
  if (error != cudaSuccess) return call.Return(error);
  return call.Return(TheRuntime().memory.FreePinned(memory) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  const Call call("cudaHostGetDevicePointer");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  if (!TheRuntime().memory.IsPinned(host, 1)) return call.Return(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const Call call("cudaPointerGetAttributes");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  attributes->type = cudaMemoryTypeUnregistered;
  if (TheRuntime().memory.IsDevice(address, 1)) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = TheRuntime().memory.DeviceOf(address);
  }
  if (TheRuntime().memory.IsPinned(address, 1)) attributes->type = cudaMemoryTypeHost;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const Call call("cudaMemGetInfo");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  *total = TheRuntime().machine.memory_bytes;
  *free = *total - TheRuntime().memory.device_bytes(cuda_double::CurrentDevice());
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  Call call("cudaMemcpy");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  CUstream_st* const queue = call.StreamOf(nullptr);
  const cuda_double::Memory& memory = TheRuntime().memory;
  const bool staged =
      memory.IsDevice(to, bytes) && !memory.IsDevice(from, bytes) && !memory.IsPinned(from, bytes);
  if (!staged) {
    const cudaError_t error = QueueCopy(call, to, from, bytes, kind, queue);
    return call.Return(error == cudaSuccess ? call.Drain(queue) : error);
  }
  // From pageable to device memory CUDA returns when it has taken the source, after which the
  // caller may do with it what he likes; it may reach the device later, and streams that do not
  // wait for the default one do not wait for that.
  const cudaError_t drained = call.Drain(queue);
  if (drained != cudaSuccess) return call.Return(drained);
  const auto* const source = static_cast<const std::byte*>(from);
  const auto taken = std::make_shared<const std::vector<std::byte>>(source, source + bytes);
  return call.Return(QueueCopy(call, to, taken->data(), bytes, kind, queue, taken));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Call call("cudaMemcpyAsync");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  CUstream_st* const queue = call.StreamOf(stream);
  if (queue == nullptr) return call.Return(cudaErrorInvalidResourceHandle);
  return call.Return(QueueCopy(call, to, from, bytes, kind, queue));
}

cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  const Call call("cudaMemsetAsync");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  CUstream_st* const queue = call.StreamOf(stream);
  if (queue == nullptr) return call.Return(cudaErrorInvalidResourceHandle);
  if (bytes == 0) return cudaSuccess;
  if (!TheRuntime().memory.IsDevice(memory, bytes) &&
      !TheRuntime().memory.IsPinned(memory, bytes)) {
    return call.Return(cudaErrorInvalidValue);
  }
  cuda_double::Enqueue(queue, [memory, value, bytes] {
    const cuda_double::OpenMemory open;
    std::memset(memory, value, bytes);
    return true;
  });
  return cudaSuccess;
}
