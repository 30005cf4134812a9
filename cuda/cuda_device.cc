// A CUDA device: operations are queued on one stream, and the host waits only where the interface
// hands it a number.

#include <cuda_runtime.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "base/check.h"
#include "cuda/cuda_memory.h"
#include "cuda/device.h"
#include "cuda/ops/probe.h"
#include "cuda/ops/require.cuh"
#include "cuda/ops/vector.h"

namespace tactus::cuda {
namespace {

using kernels::Require;

constexpr std::size_t kLengthMax = std::numeric_limits<std::size_t>::max() / sizeof(float);

std::string NameOf(int index) { return "cuda:" + std::to_string(index); }

// A whole table as the parts of a range that is the buffer.
std::vector<SegmentPart> WholeSegments(const SegmentTable& segments) {
  std::vector<SegmentPart> parts;
  parts.reserve(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].length == 0) continue;
    parts.push_back({.segment = i, .offset = segments[i].offset, .length = segments[i].length});
  }
  return parts;
}

// Sums on their way to the device. A slot is used again only once its copy is done.
class Staging {
 public:
  // `sums` in device memory, for what is queued on `stream` after this.
  std::span<const double> Upload(Stream stream, std::span<const double> sums) {
    Slot& slot = slots_[next_++ % slots_.size()];
    slot.copied.Wait();
    const std::span<double> pinned = slot.pinned.Get<double>(sums.size());
    std::copy(sums.begin(), sums.end(), pinned.begin());
    const std::span<double> device = slot.device.Get<double>(sums.size());
    Require(cudaMemcpyAsync(device.data(), pinned.data(), pinned.size_bytes(),
                            cudaMemcpyHostToDevice, stream),
            "cudaMemcpyAsync");
    slot.copied.Record(stream);
    return device;
  }

 private:
  struct Slot {
    CudaBlock pinned{CudaBlock::Kind::kPinned};
    CudaBlock device{CudaBlock::Kind::kDevice};
    CudaEvent copied{};
  };

  std::array<Slot, 4> slots_{};
  std::size_t next_ = 0;
};

class CudaDevice final : public Device {
 public:
  // `compute`: of the current device, owned by the new one.
  CudaDevice(int index, Stream compute) : index_(index), compute_(compute) {}

  ~CudaDevice() override {
    // Failures are those of operations before; what is lost with them goes with the process.
    static_cast<void>(cudaSetDevice(index_));
    static_cast<void>(cudaStreamSynchronize(compute_));
    static_cast<void>(cudaStreamDestroy(compute_));
  }

  std::string Name() const override { return NameOf(index_); }

  Buffer Allocate(std::size_t length) override {
    if (length == 0) return Buffer();
    Select();
    void* memory = nullptr;
    const cudaError_t error = length <= kLengthMax ? cudaMalloc(&memory, length * sizeof(float))
                                                   : cudaErrorMemoryAllocation;
    if (error != cudaSuccess) {
      std::fprintf(stderr, "cuda: %s: %zu floats cannot be had: %s\n", Name().c_str(), length,
                   cudaGetErrorString(error));
      std::abort();
    }
    Require(cudaMemsetAsync(memory, 0, length * sizeof(float), compute_), "cudaMemsetAsync");
    // The free waits for the device. Its failure is that of something before.
    return Buffer(static_cast<float*>(memory), length,
                  [](float* data) { static_cast<void>(cudaFree(data)); });
  }

  void Axpy(float a, std::span<const float> x, std::span<float> y) override {
    Select();
    kernels::Axpy(compute_, a, x, y);
  }
  void Scale(float a, std::span<float> x) override {
    Select();
    kernels::Scale(compute_, a, x);
  }
  // Either side may be the host's memory: state comes from and goes into files.
  void Copy(std::span<const float> from, std::span<float> to) override {
    TACTUS_CHECK(from.size() == to.size());
    if (from.empty()) return;
    Select();
    Require(cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyDefault, compute_),
            "cudaMemcpyAsync");
  }
  void Fill(float value, std::span<float> x) override {
    Select();
    kernels::Fill(compute_, value, x);
  }

  // Waits for the device: the result is the host's.
  double SquaredNorm(std::span<const float> x) override {
    Select();
    const std::span<double> sum = results_.Get<double>(1);
    kernels::SquaredNorm(compute_, x,
                         {.sums = sum, .partials = partials_.Get<double>(ChunksIn(x.size()))});
    Wait();
    return sum[0];
  }

  void Sgd(const SgdStep& step, std::span<const float> gradients, std::span<float> parameters,
           std::span<float> momentum_buffer) override {
    Select();
    kernels::Sgd(compute_, step, gradients, parameters, momentum_buffer);
  }
  void Adam(const AdamStep& step, std::span<const float> gradients, std::span<float> parameters,
            std::span<float> first_moment, std::span<float> second_moment) override {
    Select();
    kernels::Adam(compute_, step,
                  {.gradients = gradients,
                   .parameters = parameters,
                   .first_moment = first_moment,
                   .second_moment = second_moment});
  }
  void Lamb(const LambStep& step, const SegmentTable& segments,
            const LambBuffers& buffers) override {
    constexpr std::size_t kSums = kernels::kLambSumsPerSegment;
    Select();
    RequireWithin(segments, buffers.parameters.size());
    const kernels::SegmentChunks chunks =
        tables_.Get(compute_, WholeSegments(segments), segments.size());
    kernels::Lamb(compute_, step, chunks, buffers,
                  {.sums = sums_.Get<double>(segments.size() * kSums),
                   .partials = partials_.Get<double>(chunks.chunks.size() * kSums)});
  }

  // Waits for the device: the sums are the host's.
  void AdasumPartials(const AdasumPair& pair, std::span<const SegmentPart> parts,
                      std::span<double> sums) override {
    constexpr std::size_t kSums = kAdasumSumsPerSegment;
    if (parts.empty()) return;
    Select();
    RequireWithin(parts, pair.a.size());
    const kernels::SegmentChunks chunks = tables_.Get(compute_, parts, sums.size() / kSums);
    const std::span<double> results = results_.Get<double>(sums.size());
    std::fill(results.begin(), results.end(), 0.0);
    kernels::AdasumPartials(
        compute_, pair, chunks,
        {.sums = results, .partials = partials_.Get<double>(chunks.chunks.size() * kSums)});
    Wait();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += results[i];
  }

  void AdasumCombine(const AdasumPair& pair, std::span<const SegmentPart> parts,
                     std::span<const double> sums, std::span<float> out) override {
    if (parts.empty()) return;
    Select();
    RequireWithin(parts, pair.a.size());
    const kernels::SegmentChunks chunks =
        tables_.Get(compute_, parts, sums.size() / kAdasumSumsPerSegment);
    kernels::AdasumCombine(compute_, pair, chunks, staging_.Upload(compute_, sums), out);
  }

  void Synchronize() override {
    Select();
    Require(cudaStreamSynchronize(compute_), "cudaStreamSynchronize");
  }

 private:
  static void RequireWithin(std::span<const SegmentPart> parts, std::size_t length) {
    for (const SegmentPart& part : parts) {
      TACTUS_CHECK(part.offset <= length && part.length <= length - part.offset);
    }
  }
  static void RequireWithin(const SegmentTable& segments, std::size_t length) {
    for (const Segment& segment : segments) {
      TACTUS_CHECK(segment.offset <= length && segment.length <= length - segment.offset);
    }
  }

  // Of the calling thread, which need not be the last call's.
  void Select() { Require(cudaSetDevice(index_), "cudaSetDevice"); }

  // Returns when what is queued is done and `results_` can be read.
  void Wait() {
    done_.Record(compute_);
    done_.Wait();
  }

  const int index_;
  const Stream compute_;
  CudaEvent done_{};
  CudaBlock results_{CudaBlock::Kind::kPinned};  // written by the device itself
  CudaBlock sums_{CudaBlock::Kind::kDevice};
  CudaBlock partials_{CudaBlock::Kind::kDevice};
  CudaTables tables_{};
  Staging staging_{};
};

OpenedDevice Refuse(int index, const std::string& why) {
  static_cast<void>(cudaGetLastError());  // it is told here, and shall not turn up elsewhere
  return {.device = nullptr, .reason = "device '" + NameOf(index) + "' cannot be used: " + why};
}

}  // namespace

OpenedDevice OpenCudaDevice(int index) {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return Refuse(index, cudaGetErrorString(error));
  if (index >= count) {
    return Refuse(index, "the driver finds " + std::to_string(count) +
                             (count == 1 ? " device" : " devices") + ", counted from 0");
  }
  error = cudaSetDevice(index);
  if (error != cudaSuccess) return Refuse(index, cudaGetErrorString(error));
  // Not cudaStreamNonBlocking: what the process queues on CUDA's default stream, as libtorch does,
  // and what is queued here then run in the order of their calls.
  Stream compute = nullptr;
  error = cudaStreamCreateWithFlags(&compute, cudaStreamDefault);
  if (error != cudaSuccess) return Refuse(index, cudaGetErrorString(error));
  const std::string reason = kernels::WhyNoKernelRuns(compute);
  if (!reason.empty()) {
    static_cast<void>(cudaStreamDestroy(compute));
    return Refuse(index, reason);
  }
  return {.device = std::make_unique<CudaDevice>(index, compute), .reason = ""};
}

}  // namespace tactus::cuda
