// The double's calls about streams, events, launches and errors.

#include "tests/support/cuda_double/runtime.h"

namespace cuda_double = tactus::cuda_double;
using cuda_double::Call;
using cuda_double::TheRuntime;

namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorNvlinkUncorrectable, "cudaErrorNvlinkUncorrectable",
     "uncorrectable NVLink error detected during the execution"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& TextOf(cudaError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return known;
  }
  return kErrors[std::size(kErrors) - 1];
}

cudaError_t CreateStream(const Call& call, cudaStream_t* stream, unsigned flags) {
  if (call.error() != cudaSuccess) return call.Return(call.error());
  *stream = new CUstream_st;
  (*stream)->device = cuda_double::CurrentDevice();
  (*stream)->blocking = (flags & cudaStreamNonBlocking) == 0;
  TheRuntime().streams.push_back(*stream);
  return cudaSuccess;
}

// What a question about a stream that is not through does to it: it goes on, but too late for the
// answer.
cudaError_t Nudge(CUstream_st* stream) {
  cuda_double::Runtime& runtime = TheRuntime();
  cuda_double::Advance(stream, [] { return false; });
  runtime.changed.notify_all();
  return runtime.broken != cudaSuccess ? runtime.broken : cudaErrorNotReady;
}

bool IsShapeAllowed(const cudaLaunchConfig_t& config) {
  constexpr std::size_t kThreadsMax = 1024;
  constexpr unsigned kBlocksMax = 0x7fffffff;
  constexpr unsigned kRowsMax = 0xffff;
  const dim3& grid = config.gridDim;
  const dim3& block = config.blockDim;
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  return threads >= 1 && threads <= kThreadsMax && block.z <= 64 && grid.x >= 1 &&
         grid.x <= kBlocksMax && grid.y >= 1 && grid.y <= kRowsMax && grid.z >= 1 &&
         grid.z <= kRowsMax;
}

}  // namespace

namespace tactus::cuda_double {

cudaError_t QueueGrid(const cudaLaunchConfig_t& config, Kernel kernel) {
  const Call call("cudaLaunchKernelEx");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  CUstream_st* const stream = call.StreamOf(config.stream);
  if (stream == nullptr) return call.Return(cudaErrorInvalidResourceHandle);
  if (config.stream != nullptr && stream->device != CurrentDevice()) {
    return call.Return(cudaErrorInvalidResourceHandle);
  }
  if (!IsShapeAllowed(config) || config.dynamicSmemBytes != 0) {
    return call.Return(cudaErrorInvalidConfiguration);
  }
  cuda_double::Enqueue(stream, [config, kernel = std::move(kernel)] {
    const cuda_double::OpenMemory open;
    RunGrid(config.gridDim, config.blockDim, TheRuntime().machine.order, kernel);
    return true;
  });
  return cudaSuccess;
}

}  // namespace tactus::cuda_double

const char* cudaGetErrorName(cudaError_t error) { return TextOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return TextOf(error).text; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  cuda_double::LastError() = cudaSuccess;
  return error;
}

// What broke a device is told again and again: there is no taking it back.
cudaError_t cudaPeekAtLastError() {
  const std::lock_guard lock(TheRuntime().mutex);
  return TheRuntime().broken != cudaSuccess ? TheRuntime().broken : cuda_double::LastError();
}

cudaError_t cudaDeviceSynchronize() {
  Call call("cudaDeviceSynchronize");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  return call.Return(call.DrainDevice(cuda_double::CurrentDevice()));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return CreateStream(Call("cudaStreamCreateWithFlags"), stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return CreateStream(Call("cudaStreamCreateWithPriority"), stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  const Call call("cudaDeviceGetStreamPriorityRange");
  *least = 0;
  *greatest = -5;
  return call.Return(call.error());
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Call call("cudaStreamDestroy");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  if (stream == nullptr || call.StreamOf(stream) == nullptr) {
    return call.Return(cudaErrorInvalidResourceHandle);
  }
  // The runtime lets its work end as well, without a wait.
  const cudaError_t error = call.Drain(stream);
  if (error != cudaSuccess) return call.Return(error);
  std::erase(TheRuntime().streams, stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Call call("cudaStreamSynchronize");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  CUstream_st* const queue = call.StreamOf(stream);
  if (queue == nullptr) return call.Return(cudaErrorInvalidResourceHandle);
  return call.Return(call.Drain(queue));
}

// Ready only when the stream was empty before: what a query starts, a later one finds done.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Call call("cudaStreamQuery");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  CUstream_st* const queue = call.StreamOf(stream);
  if (queue == nullptr) return call.Return(cudaErrorInvalidResourceHandle);
  if (queue->queue.empty()) return cudaSuccess;
  return call.Return(Nudge(queue));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const Call call("cudaStreamWaitEvent");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  CUstream_st* const queue = call.StreamOf(stream);
  if (queue == nullptr || !TheRuntime().events.contains(event)) {
    return call.Return(cudaErrorInvalidResourceHandle);
  }
  cuda_double::Enqueue(queue, cuda_double::Wait(event->state));
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  const Call call("cudaLaunchHostFunc");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  CUstream_st* const queue = call.StreamOf(stream);
  if (queue == nullptr) return call.Return(cudaErrorInvalidResourceHandle);
  cuda_double::Enqueue(queue, [function, user_data] {
    function(user_data);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Call call("cudaEventCreateWithFlags");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  *event = new CUevent_st{.timed = (flags & cudaEventDisableTiming) == 0,
                          .device = cuda_double::CurrentDevice()};
  TheRuntime().events.insert(*event);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call("cudaEventDestroy");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  if (TheRuntime().events.erase(event) == 0) return call.Return(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Call call("cudaEventRecord");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  CUstream_st* const queue = call.StreamOf(stream);
  const bool known = queue != nullptr && TheRuntime().events.contains(event);
  if (!known || (stream != nullptr && event->device != queue->device)) {
    return call.Return(cudaErrorInvalidResourceHandle);
  }
  ++event->state->recorded;
  event->state->stream = queue;
  cuda_double::Enqueue(queue, cuda_double::Record(event->state));
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Call call("cudaEventSynchronize");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  if (!TheRuntime().events.contains(event)) return call.Return(cudaErrorInvalidResourceHandle);
  const auto state = event->state;
  return call.Return(
      call.Await(state->stream, [state] { return state->reached >= state->recorded; }));
}

// Every operation of a stream takes a microsecond.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Call call("cudaEventElapsedTime");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  for (const cudaEvent_t event : {start, end}) {
    const bool known = TheRuntime().events.contains(event);
    if (!known || !event->timed || event->state->recorded == 0) {
      return call.Return(cudaErrorInvalidResourceHandle);
    }
    if (event->state->reached < event->state->recorded) return call.Return(cudaErrorNotReady);
  }
  *milliseconds =
      (static_cast<float>(end->state->at) - static_cast<float>(start->state->at)) * 1e-3f;
  return cudaSuccess;
}

// Ready only when it had been reached before: what a query starts, a later one finds done.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call call("cudaEventQuery");
  if (call.error() != cudaSuccess) return call.Return(call.error());
  if (!TheRuntime().events.contains(event)) return call.Return(cudaErrorInvalidResourceHandle);
  const cuda_double::EventState& state = *event->state;
  if (state.reached >= state.recorded) return cudaSuccess;
  return call.Return(Nudge(state.stream));
}
