#include "tests/support/cuda_double/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

namespace tactus::cuda_double {
namespace {

void RequireAtRest(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "double of the CUDA runtime: reset while %s\n", what);
  std::abort();
}

bool NeedsADevice(std::string_view function) {
  return function != "cudaDriverGetVersion" && function != "cudaRuntimeGetVersion";
}

bool Launches(std::string_view function) {
  return function == "cudaLaunchKernelEx" || function == "cudaMemcpyAsync" ||
         function == "cudaMemcpy" || function == "cudaMemsetAsync";
}

Costs& ThreadCosts() {
  thread_local Costs costs;
  return costs;
}

}  // namespace

Runtime& TheRuntime() {
  static Runtime* const runtime = new Runtime;  // threads may use it to the end of the process
  return *runtime;
}

// Queues on `stream` a wait for all that is on `other` now.
void WaitForAllOf(CUstream_st* other, CUstream_st* stream) {
  if (other->queue.empty()) return;
  const auto mark = std::make_shared<EventState>();
  mark->recorded = 1;
  mark->stream = other;
  other->queue.push_back(Record(mark));
  stream->queue.push_back(Wait(mark));
}

void Enqueue(CUstream_st* stream, Operation operation) {
  Runtime& runtime = TheRuntime();
  if (stream->blocking) WaitForAllOf(&runtime.legacy, stream);
  if (stream == &runtime.legacy) {
    for (CUstream_st* const other : runtime.streams) {
      if (other->blocking) WaitForAllOf(other, stream);
    }
  }
  stream->queue.push_back(std::move(operation));
}

int& CurrentDevice() {
  thread_local int device = 0;
  return device;
}

cudaError_t& LastError() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

Call::Call(const char* function) : lock_(TheRuntime().mutex) {
  Runtime& runtime = TheRuntime();
  const int count = ++runtime.calls[function];
  if (Launches(function)) ++ThreadCosts().launches;
  const auto fault = runtime.faults.find(function);
  if (fault != runtime.faults.end() && fault->second.at == count) {
    error_ = fault->second.error;
  } else if (runtime.broken != cudaSuccess) {
    error_ = runtime.broken;
  } else if (runtime.machine.devices == 0 && NeedsADevice(function)) {
    error_ = runtime.machine.no_device;
  }
}

cudaError_t Call::Return(cudaError_t error) const {
  if (error != cudaSuccess && error != cudaErrorNotReady) LastError() = error;
  return error;
}

CUstream_st* Call::StreamOf(cudaStream_t stream) const {
  Runtime& runtime = TheRuntime();
  if (stream == nullptr) return &runtime.legacy;
  return runtime.streams.contains(stream) ? stream : nullptr;
}

void Call::Await(CUstream_st* stream, const std::function<bool()>& done) {
  Runtime& runtime = TheRuntime();
  if (!std::exchange(waits_, true)) ++ThreadCosts().waits;
  while (!done()) {
    runtime.memory.Open();
    const bool progress = Advance(stream);
    runtime.memory.Close();
    if (progress) {
      runtime.changed.notify_all();
    } else if (!done()) {
      runtime.changed.wait(lock_);
    }
  }
}

void Call::Drain(CUstream_st* stream) {
  Await(stream, [stream] { return stream->queue.empty(); });
}

void Call::DrainAll() {
  Drain(&TheRuntime().legacy);
  for (CUstream_st* const stream : std::set<CUstream_st*>(TheRuntime().streams)) Drain(stream);
}

void Call::DrainDevice(int device) {
  Drain(&TheRuntime().legacy);
  for (CUstream_st* const stream : std::set<CUstream_st*>(TheRuntime().streams)) {
    if (TheRuntime().streams.contains(stream) && stream->device == device) Drain(stream);
  }
}

void Reset(const Machine& machine) {
  Runtime& runtime = TheRuntime();
  const std::lock_guard lock(runtime.mutex);
  RequireAtRest(runtime.memory.device_bytes() == 0, "there is device memory");
  RequireAtRest(runtime.memory.pinned_bytes() == 0, "there is pinned memory");
  RequireAtRest(runtime.streams.empty(), "there are streams");
  RequireAtRest(runtime.events.empty(), "there are events");
  RequireAtRest(runtime.legacy.queue.empty(), "the default stream is at work");
  runtime.machine = machine;
  runtime.calls.clear();
  runtime.faults.clear();
  runtime.broken = cudaSuccess;
  CurrentDevice() = 0;
  LastError() = cudaSuccess;
}

void FailCall(const std::string& function, int nth, cudaError_t error) {
  Runtime& runtime = TheRuntime();
  const std::lock_guard lock(runtime.mutex);
  runtime.faults[function] = {.at = runtime.calls[function] + nth, .error = error};
}

void BreakDevices(cudaError_t error) {
  const std::lock_guard lock(TheRuntime().mutex);
  TheRuntime().broken = error;
}

int Calls(const std::string& function) {
  const std::lock_guard lock(TheRuntime().mutex);
  return TheRuntime().calls[function];
}

Costs CostsOfThread() { return ThreadCosts(); }

std::size_t DeviceBytes() {
  const std::lock_guard lock(TheRuntime().mutex);
  return TheRuntime().memory.device_bytes();
}

std::size_t PinnedBytes() {
  const std::lock_guard lock(TheRuntime().mutex);
  return TheRuntime().memory.pinned_bytes();
}

int Streams() {
  const std::lock_guard lock(TheRuntime().mutex);
  return static_cast<int>(TheRuntime().streams.size());
}

int Events() {
  const std::lock_guard lock(TheRuntime().mutex);
  return static_cast<int>(TheRuntime().events.size());
}

bool IsDeviceMemory(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(TheRuntime().mutex);
  return TheRuntime().memory.IsDevice(memory, bytes);
}

void Queue(cudaStream_t stream, std::function<bool()> attempt) {
  Runtime& runtime = TheRuntime();
  const std::lock_guard lock(runtime.mutex);
  Enqueue(stream == nullptr ? &runtime.legacy : stream, std::move(attempt));
  runtime.changed.notify_all();
}

void Wake() {
  const std::lock_guard lock(TheRuntime().mutex);
  TheRuntime().changed.notify_all();
}

}  // namespace tactus::cuda_double
