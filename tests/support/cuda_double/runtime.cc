#include "tests/support/cuda_double/runtime.h"

#include <algorithm>
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

bool Exists(const CUstream_st* stream) {
  const Runtime& runtime = TheRuntime();
  return stream == &runtime.legacy ||
         std::ranges::find(runtime.streams, stream) != runtime.streams.end();
}

// What a broken device has left, and nobody could free.
void Discard(Runtime& runtime) {
  runtime.memory.Discard();
  runtime.legacy.queue.clear();
  for (CUstream_st* const stream : runtime.streams) delete stream;
  for (CUevent_st* const event : runtime.events) delete event;
  runtime.streams.clear();
  runtime.events.clear();
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
  if (stream->breaks_in > 0 && --stream->breaks_in == 0) {
    operation = [error = stream->breaks_with] {
      TheRuntime().broken = error;
      TheRuntime().changed.notify_all();  // who waits for what comes no more
      return true;
    };
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
  Proceed();
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

Call::~Call() { Proceed(); }

cudaError_t Call::Return(cudaError_t error) const {
  if (error != cudaSuccess && error != cudaErrorNotReady) LastError() = error;
  return error;
}

CUstream_st* Call::StreamOf(cudaStream_t stream) const {
  Runtime& runtime = TheRuntime();
  if (stream == nullptr) {
    ++runtime.legacy_uses;
    return &runtime.legacy;
  }
  return Exists(stream) ? stream : nullptr;
}

cudaError_t Call::Await(CUstream_st* stream, const std::function<bool()>& done) {
  Runtime& runtime = TheRuntime();
  if (!std::exchange(waits_, true)) ++ThreadCosts().waits;
  while (!done() && runtime.broken == cudaSuccess) {
    Proceed();  // others may get ahead meanwhile
    if (Advance(stream, done)) {
      runtime.changed.notify_all();
    } else if (!done() && runtime.broken == cudaSuccess) {
      runtime.changed.wait(lock_);
    }
  }
  return runtime.broken;
}

// A stream that is destroyed while another thread has its turn is through: that waits, too.
cudaError_t Call::Drain(CUstream_st* stream) {
  return Await(stream, [stream] { return !Exists(stream) || stream->queue.empty(); });
}

cudaError_t Call::DrainDevice(int device) {
  Drain(&TheRuntime().legacy);
  for (CUstream_st* const stream : std::vector(TheRuntime().streams)) {
    if (Exists(stream) && stream->device == device) Drain(stream);
  }
  return TheRuntime().broken;
}

void Reset(const Machine& machine) {
  Runtime& runtime = TheRuntime();
  const std::lock_guard lock(runtime.mutex);
  if (runtime.broken != cudaSuccess) Discard(runtime);
  RequireAtRest(runtime.memory.device_bytes() == 0, "there is device memory");
  RequireAtRest(runtime.memory.pinned_bytes() == 0, "there is pinned memory");
  RequireAtRest(runtime.streams.empty(), "there are streams");
  RequireAtRest(runtime.events.empty(), "there are events");
  RequireAtRest(runtime.legacy.queue.empty(), "the default stream is at work");
  runtime.machine = machine;
  const Timing timing = machine.timing.value_or(runtime.timing);
  runtime.schedule = timing.schedule;
  runtime.rng = Rng(timing.seed);
  runtime.calls.clear();
  runtime.faults.clear();
  runtime.broken = cudaSuccess;
  runtime.legacy_uses = 0;
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

void BreakAt(cudaStream_t stream, int nth, cudaError_t error) {
  const std::lock_guard lock(TheRuntime().mutex);
  stream->breaks_in = nth;
  stream->breaks_with = error;
}

int DefaultStreamUses() {
  const std::lock_guard lock(TheRuntime().mutex);
  return TheRuntime().legacy_uses;
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

std::size_t DeviceBytes(int device) {
  const std::lock_guard lock(TheRuntime().mutex);
  return TheRuntime().memory.device_bytes(device);
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

bool FreeAtOnce(void* memory) {
  const std::lock_guard lock(TheRuntime().mutex);
  return TheRuntime().memory.FreeDevice(memory);
}

void Adopt(void* memory, std::size_t bytes) {
  const std::lock_guard lock(TheRuntime().mutex);
  TheRuntime().memory.Adopt(CurrentDevice(), memory, bytes);
}

void Forget(void* memory) {
  const std::lock_guard lock(TheRuntime().mutex);
  TheRuntime().memory.Forget(memory);
}

OpenMemory::OpenMemory() { TheRuntime().memory.Open(); }
OpenMemory::~OpenMemory() { TheRuntime().memory.Close(); }

void Queue(cudaStream_t stream, std::function<bool()> attempt) {
  Runtime& runtime = TheRuntime();
  const std::lock_guard lock(runtime.mutex);
  Enqueue(stream == nullptr ? &runtime.legacy : stream, std::move(attempt));
  Proceed();
  runtime.changed.notify_all();
}

void Wake() {
  const std::lock_guard lock(TheRuntime().mutex);
  Proceed();
  TheRuntime().changed.notify_all();
}

}  // namespace tactus::cuda_double
