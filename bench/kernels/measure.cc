#include "bench/kernels/measure.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "cuda/ops/require.cuh"

namespace tactus::bench {
namespace {

using cuda::kernels::Require;

constexpr std::size_t kCallsMax = 300;  // the driver queues some 1,000 launches, and LAMB has two

struct DestroyGraph {
  void operator()(cudaGraphExec_t graph) const {
    Require(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
  }
};

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  TACTUS_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return {.min = values.front(), .median = values[values.size() / 2], .max = values.back()};
}

Call Captured(const Sets& sets, std::size_t calls, cuda::Stream stream) {
  TACTUS_CHECK(!sets.empty() && calls >= 1);
  cudaGraph_t graph = nullptr;
  Require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  for (std::size_t i = 0; i < calls; ++i) sets[i % sets.size()](stream);
  Require(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t made = nullptr;
  Require(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
  Require(cudaGraphDestroy(graph), "cudaGraphDestroy");
  // Shared by the copies that a std::function may make of itself.
  const std::shared_ptr<CUgraphExec_st> replay(made, DestroyGraph());
  Require(cudaGraphUpload(made, stream), "cudaGraphUpload");
  return
      [replay](cuda::Stream on) { Require(cudaGraphLaunch(replay.get(), on), "cudaGraphLaunch"); };
}

struct Stopwatch::Events {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

Stopwatch::Stopwatch(cuda::Stream stream) : stream_(stream), events_(std::make_unique<Events>()) {
  Require(cudaEventCreate(&events_->begin), "cudaEventCreate");
  Require(cudaEventCreate(&events_->end), "cudaEventCreate");
}

Stopwatch::~Stopwatch() {
  Require(cudaEventDestroy(events_->begin), "cudaEventDestroy");
  Require(cudaEventDestroy(events_->end), "cudaEventDestroy");
}

CallTime Stopwatch::Time(const Sets& sets, std::size_t calls) {
  TACTUS_CHECK(!sets.empty() && calls >= 1);
  Require(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  const auto begun = std::chrono::steady_clock::now();
  Require(cudaEventRecord(events_->begin, stream_), "cudaEventRecord");
  for (std::size_t i = 0; i < calls; ++i) sets[i % sets.size()](stream_);
  Require(cudaEventRecord(events_->end, stream_), "cudaEventRecord");
  const std::chrono::duration<double> queued = std::chrono::steady_clock::now() - begun;
  Require(cudaEventSynchronize(events_->end), "cudaEventSynchronize");
  float milliseconds = 0;
  Require(cudaEventElapsedTime(&milliseconds, events_->begin, events_->end),
          "cudaEventElapsedTime");
  const double count = static_cast<double>(calls);
  return {.on_device_s = static_cast<double>(milliseconds) * 1e-3 / count,
          .on_host_s = queued.count() / count};
}

std::size_t Stopwatch::CallsFor(const Sets& sets, double seconds) {
  constexpr std::size_t kTried = 10;
  Time(sets, kTried);
  const double each = std::max(Time(sets, kTried).on_device_s, 1e-9);
  const double calls = std::min(seconds / each, static_cast<double>(kCallsMax));
  return std::max<std::size_t>(1, static_cast<std::size_t>(calls));
}

void Stopwatch::WarmUp(const Sets& sets, double seconds) {
  constexpr std::size_t kAtOnce = 20;
  double spent = 0;
  while (spent < seconds) spent += kAtOnce * Time(sets, kAtOnce).on_device_s;
}

}  // namespace tactus::bench
