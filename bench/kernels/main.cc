// Bytes a second of every operation in cuda/ops on the device of this machine, against the device's
// own copy in the same run; and what a call of each costs by itself.
//
// The copy and the operation alternate, repetition by repetition, so that what disturbs the device
// disturbs both. Buffers take turns until they are several times as long as the L2 cache, so that
// memory is measured and not the cache. Times are between events of the device, around so many
// calls that an event's resolution does not count; with --graph these calls are one replayed graph.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/kernels/measure.h"
#include "bench/kernels/operations.h"
#include "bench/kernels/options.h"
#include "bench/kernels/report.h"
#include "bench/kernels/workspace.h"
#include "cuda/ops/probe.h"
#include "cuda/ops/require.cuh"

namespace tactus::bench {
namespace {

using cuda::kernels::Require;

constexpr int kExitUsage = 64;
constexpr int kExitNoDevice = 69;
constexpr int kExitNotWritten = 74;

constexpr std::size_t kWorkspaceMax = std::size_t{4} << 30;
constexpr std::size_t kCopyBytes = 256 * kMebibyte;
constexpr std::size_t kCachesTurnedOver = 8;  // buffers that take turns, in L2 caches
constexpr std::size_t kFew = 32;              // elements, where overhead is measured
constexpr double kSecondsOfRepetition = 0.01;
constexpr double kSecondsOfWarmUp = 1;
constexpr std::size_t kTables[] = {1, 64, 2000};  // segments

void PrintUsage(std::FILE* to) {
  std::fprintf(
      to,
      "usage: bench_kernels [--quick] [--graph] [--sizes MIB,...] [--filter TEXT] "
      "[--json FILE]\n"
      "  --quick        16 MiB alone, 3 repetitions\n"
      "  --graph        bandwidth by replaying graphs: without the host's queueing\n"
      "  --sizes MIB    of one buffer; default 1,16,64,256\n"
      "  --filter TEXT  only operations with TEXT in their name; where none has it, all that\n"
      "                 is seen is whether the device runs a kernel\n"
      "  --json FILE    writes every figure there too\n"
      "CUDA_VISIBLE_DEVICES chooses the device. Exit code 69: there is none.\n");
}

std::string Version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

// What the device and the driver say of themselves.
Run RunOf(const Options& options, int l2_bytes) {
  cudaDeviceProp properties{};
  Require(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int driver = 0;
  int runtime = 0;
  Require(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  Require(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return {.device = properties.name,
          .driver = Version(driver),
          .runtime = Version(runtime),
          .l2_mebibytes = static_cast<double>(l2_bytes) / kMebibyte,
          .copy_mebibytes = static_cast<double>(kCopyBytes) / kMebibyte,
          .repetitions = options.repetitions,
          .graph = options.graph};
}

// What is timed in one go: the calls of a repetition, one by one or as one graph.
struct Repetition {
  Sets sets{};
  std::size_t launches = 1;  // that take turns over the sets
  std::size_t calls = 1;     // in all of them
};

class Bench {
 public:
  Bench(const Options& options, cuda::Stream stream, std::size_t free_bytes)
      : options_(options),
        stream_(stream),
        stopwatch_(stream),
        copied_(2 * kCopyBytes + kMebibyte * 8, stream),
        workspace_(std::min(kWorkspaceMax, (free_bytes - 3 * kCopyBytes) / 10 * 9), stream) {
    int l2_bytes = 0;
    Require(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, 0), "cudaDeviceGetAttribute");
    results_.run = RunOf(options, l2_bytes);
    turned_over_ = kCachesTurnedOver * static_cast<std::size_t>(l2_bytes);
    const std::span<float> from = copied_.Normal(kCopyBytes / sizeof(float));
    const std::span<float> to = copied_.Zero(kCopyBytes / sizeof(float));
    const Sets copy = {[from, to](cuda::Stream on) {
      Require(cudaMemcpyAsync(to.data(), from.data(), kCopyBytes, cudaMemcpyDeviceToDevice, on),
              "cudaMemcpyAsync");
    }};
    stopwatch_.WarmUp(copy, kSecondsOfWarmUp);
    copy_ = RepetitionOf(copy);
  }

  Results Measure() {
    for (const Operation& operation : Operations()) {
      if (operation.name.find(options_.filter) == std::string::npos) continue;
      MeasureBandwidth(operation);
      MeasureOverhead(operation);
    }
    if (!copies_.empty()) results_.copy_bytes_per_s = SpreadOf(copies_);
    return std::move(results_);
  }

 private:
  void MeasureBandwidth(const Operation& operation) {
    if (operation.bytes_per_element == 0) return;
    for (const std::size_t segments : kTables) {
      for (const std::size_t bytes : options_.sizes) {
        std::fprintf(stderr, "bench_kernels: %s, %zu MiB\n", operation.name.c_str(),
                     bytes / kMebibyte);
        MeasureOne(operation, operation.by_segments ? segments : 0, bytes);
      }
      if (!operation.by_segments) return;
    }
  }

  Repetition RepetitionOf(const Sets& sets) {
    const std::size_t calls = stopwatch_.CallsFor(sets, kSecondsOfRepetition);
    if (!options_.graph) return {.sets = sets, .launches = calls, .calls = calls};
    return {.sets = {Captured(sets, calls, stream_)}, .launches = 1, .calls = calls};
  }

  CallTime Time(const Repetition& repetition) {
    const CallTime launch = stopwatch_.Time(repetition.sets, repetition.launches);
    const double share =
        static_cast<double>(repetition.launches) / static_cast<double>(repetition.calls);
    return {.on_device_s = launch.on_device_s * share, .on_host_s = launch.on_host_s * share};
  }

  // The operation prepared on sets of buffers, as many as `at_least_bytes` of them take, or as fit;
  // none where not even one does. `elements` <- those of one call.
  Sets Prepare(const Operation& operation, std::size_t segments, std::size_t n,
               std::size_t at_least_bytes, std::size_t& elements) {
    workspace_.Reset();
    elements = n;
    std::optional<SegmentedBuffer> segmented;
    if (segments > 0) {
      segmented.emplace(n, segments, workspace_);
      elements = segmented->elements();
    }
    const Setting setting{
        .n = n, .segments = segmented ? &*segmented : nullptr, .workspace = workspace_};
    Sets sets;
    do {
      Call call = operation.prepare(setting);
      if (!workspace_.fits()) break;
      sets.push_back(std::move(call));
    } while (workspace_.used_bytes() < at_least_bytes);
    return sets;
  }

  void MeasureOne(const Operation& operation, std::size_t segments, std::size_t bytes) {
    std::size_t elements = 0;
    const Sets sets = Prepare(operation, segments, bytes / sizeof(float), turned_over_, elements);
    if (sets.empty()) {
      results_.left_out.push_back(
          {.operation = operation.name, .segments = segments, .bytes = bytes});
      return;
    }
    const double moved = operation.bytes_per_element * static_cast<double>(elements);
    const Repetition repetition = RepetitionOf(sets);
    std::vector<double> rates;
    std::vector<double> shares;
    std::vector<double> on_device;
    std::vector<double> on_host;
    for (int i = 0; i < options_.repetitions; ++i) {
      copies_.push_back(2.0 * kCopyBytes / Time(copy_).on_device_s);
      const CallTime time = Time(repetition);
      rates.push_back(moved / time.on_device_s);
      shares.push_back(rates.back() / copies_.back());
      on_device.push_back(1e6 * time.on_device_s);
      on_host.push_back(1e6 * time.on_host_s);
    }
    results_.bandwidth.push_back({.operation = operation.name,
                                  .formula = operation.formula,
                                  .segments = segments,
                                  .bytes = bytes,
                                  .aimed = bytes >= operation.aim_bytes,
                                  .sets = sets.size(),
                                  .calls = repetition.calls,
                                  .bytes_per_s = SpreadOf(rates),
                                  .copy_share = SpreadOf(shares),
                                  .on_device_us = SpreadOf(on_device),
                                  .on_host_us = SpreadOf(on_host)});
  }

  void MeasureOverhead(const Operation& operation) {
    std::size_t elements = 0;
    const Sets sets = Prepare(operation, operation.by_segments ? 1 : 0, kFew, 0, elements);
    const std::size_t calls = stopwatch_.CallsFor(sets, kSecondsOfRepetition);
    std::vector<double> on_device;
    std::vector<double> on_host;
    for (int i = 0; i < options_.repetitions; ++i) {
      const CallTime time = stopwatch_.Time(sets, calls);
      on_device.push_back(1e6 * time.on_device_s);
      on_host.push_back(1e6 * time.on_host_s);
    }
    results_.overhead.push_back({.operation = operation.name,
                                 .formula = operation.formula,
                                 .sets = sets.size(),
                                 .calls = calls,
                                 .on_device_us = SpreadOf(on_device),
                                 .on_host_us = SpreadOf(on_host)});
  }

  const Options& options_;
  const cuda::Stream stream_;
  Stopwatch stopwatch_;
  Workspace copied_;
  Workspace workspace_;
  Results results_;
  std::size_t turned_over_ = 0;  // [bytes]
  Repetition copy_;
  std::vector<double> copies_;  // bytes a second, of every repetition
};

int NoDevice(const std::string& reason) {
  std::fprintf(stderr, "bench_kernels: no CUDA device: %s\n", reason.c_str());
  return kExitNoDevice;
}

int Main(const Options& options) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return NoDevice(cudaGetErrorString(error));
  if (count == 0) return NoDevice("the driver finds none");
  cudaStream_t stream = nullptr;
  if (const cudaError_t opened = cudaStreamCreate(&stream); opened != cudaSuccess) {
    return NoDevice(cudaGetErrorString(opened));
  }
  if (const std::string why = cuda::kernels::WhyNoKernelRuns(stream); !why.empty()) {
    return NoDevice(why);
  }
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  Require(cudaMemGetInfo(&free_bytes, &all_bytes), "cudaMemGetInfo");
  if (free_bytes < 4 * kCopyBytes) return NoDevice("less than 1 GiB of its memory is free");
  const Results results = Bench(options, stream, free_bytes).Measure();
  Require(cudaStreamDestroy(stream), "cudaStreamDestroy");
  PrintTables(results, options.sizes);
  if (!options.json.empty() && !WriteJson(results, options.json)) return kExitNotWritten;
  return 0;
}

}  // namespace
}  // namespace tactus::bench

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    tactus::bench::PrintUsage(stdout);
    return 0;
  }
  const std::vector<const char*> arguments(argv + std::min(argc, 1), argv + argc);
  const std::optional<tactus::bench::Options> options = tactus::bench::Parse(arguments);
  if (!options) {
    tactus::bench::PrintUsage(stderr);
    return tactus::bench::kExitUsage;
  }
  return tactus::bench::Main(*options);
}
