// A CUDA device: operations are queued on one stream, and the host waits nowhere but where it asks
// to.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "cuda/cuda_memory.h"
#include "cuda/device.h"
#include "cuda/ops/probe.h"
#include "cuda/ops/require.cuh"
#include "cuda/ops/rows.h"
#include "cuda/ops/vector.h"

namespace tactus::cuda {
namespace {

using kernels::Require;

std::string NameOf(int index) { return "cuda:" + std::to_string(index); }

// Whether it is memory of the host that was not pinned.
bool IsPageable(const void* memory) {
  cudaPointerAttributes attributes{};
  Require(cudaPointerGetAttributes(&attributes, memory), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeUnregistered;
}

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

class CudaMark final : public Mark {
 public:
  CudaMark(int device, Stream stream) : stream_(stream), event_(device) {}

  void Record() override { event_.Record(stream_); }
  void Wait() override { event_.Wait(); }
  Instant ReachedAt(Instant set, const Mark& later, Instant seen) const override {
    const auto& behind = static_cast<const CudaMark&>(later);  // of the same device
    return std::max(set, std::min(seen, seen - event_.Until(behind.event_)));
  }

 private:
  const Stream stream_;
  CudaEvent event_;
};

class CudaDevice final : public Device {
 public:
  // `compute`: a stream of that device, owned by the new one.
  CudaDevice(int index, Stream compute) : index_(index), compute_(compute) {}

  ~CudaDevice() override {
    // Failures are those of operations before; what is lost with them goes with the process.
    static_cast<void>(cudaSetDevice(index_));
    static_cast<void>(cudaStreamSynchronize(compute_));
    static_cast<void>(cudaStreamDestroy(compute_));
  }

  std::string Name() const override { return NameOf(index_); }

  std::optional<int> cuda_index() const override { return index_; }
  Stream stream() const override { return compute_; }

  void OnMemoryShort(std::function<void()> give_back) override {
    memory_.OnShort(std::move(give_back));
  }
  void BorrowFrom(Lender& lender) override { lender_ = &lender; }
  std::uint64_t MemoryUsed() const override {
    std::size_t free = 0, total = 0;
    const bool known =
        cudaSetDevice(index_) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess;
    return known ? total - free : 0;  // what failed the next operation tells
  }
  Buffer Allocate(std::size_t length) override {
    if (lender_ != nullptr && length > 0) {
      void* const lent = lender_->Take(length * sizeof(float));
      if (lent != nullptr) return {static_cast<float*>(lent), length, *lender_};
    }
    return AllocateArray<float>(length);
  }
  Sums AllocateSums(std::size_t length) override { return AllocateArray<double>(length); }

  std::unique_ptr<Mark> MakeMark() override { return std::make_unique<CudaMark>(index_, compute_); }

  void Axpy(float a, std::span<const float> x, std::span<float> y) override {
    kernels::Axpy(Selected(), a, x, y);
  }
  void Scale(float a, std::span<float> x) override { kernels::Scale(Selected(), a, x); }
  void Fill(float value, std::span<float> x) override { kernels::Fill(Selected(), value, x); }
  void WeightedSum(std::span<const Weighted> parts, std::span<float> out) override {
    kernels::WeightedSum(Selected(), parts, out);
  }
  void Copy(std::span<const float> from, std::span<float> to) override { CopyAll(from, to); }
  void Copy(std::span<const double> from, std::span<double> to) override { CopyAll(from, to); }
  void Clear(std::span<double> sums) override {
    if (sums.empty()) return;
    Require(cudaMemsetAsync(sums.data(), 0, sums.size_bytes(), Selected()), "cudaMemsetAsync");
  }
  void AddSquaredNorm(std::span<const float> x, std::span<double> sum) override {
    const Stream stream = Selected();  // before scratch is allocated
    kernels::AddSquaredNorm(stream, x, Into(sum, ChunksIn(x.size()), 1));
  }
  void Gather(const Gathering& gathering, std::span<float> out, std::span<double> norm2) override {
    const Stream stream = Selected();
    kernels::Gather(stream, gathering, out,
                    norm2.empty() ? kernels::SumsInto{} : Into(norm2, ChunksIn(out.size()), 1));
  }

  void Gate(const StepGate& step, const OwnSums& own, std::span<double> gate) override {
    kernels::Gate(Selected(), step, own, gate);
  }
  void GateRound(const RoundGate& round, const RoundFacts& facts, std::span<double> gate) override {
    kernels::GateRound(Selected(), round, facts, gate);
  }
  void Sgd(const SgdStep& step, std::span<const float> gradients, std::span<float> parameters,
           std::span<float> momentum_buffer) override {
    kernels::Sgd(Selected(), step, gradients, parameters, momentum_buffer);
  }
  void Adam(const AdamStep& step, std::span<const float> gradients, std::span<float> parameters,
            std::span<float> first_moment, std::span<float> second_moment) override {
    kernels::Adam(Selected(), step,
                  {.gradients = gradients,
                   .parameters = parameters,
                   .first_moment = first_moment,
                   .second_moment = second_moment});
  }
  void Lamb(const LambStep& step, const SegmentTable& segments,
            const LambBuffers& buffers) override {
    constexpr std::size_t kSums = kernels::kLambSumsPerSegment;
    const kernels::SegmentChunks chunks = ChunksOfAll(segments, buffers.parameters.size());
    kernels::Lamb(compute_, step, chunks, buffers,
                  Into(sums_.Get<double>(segments.size() * kSums), chunks.chunks.size() * kSums,
                       segments.size()));
  }
  void LambSums(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers,
                std::span<double> sums) override {
    TACTUS_CHECK(sums.size() == kLambSumsPerSegment * segments.size());
    const kernels::SegmentChunks chunks = ChunksOfAll(segments, buffers.parameters.size());
    kernels::LambSums(compute_, step, chunks, buffers,
                      Into(sums, chunks.chunks.size() * kLambSumsPerSegment, segments.size()));
  }
  void LambOfParts(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers,
                   std::span<const double> sums) override {
    const kernels::SegmentChunks chunks = ChunksOfAll(segments, buffers.parameters.size());
    kernels::LambOfParts(compute_, step, chunks, buffers, sums);
  }
  void FrozenLambSums(const FrozenLambStep& step, const SegmentTable& segments,
                      const FrozenLambBuffers& buffers, std::span<double> sums) override {
    const kernels::SegmentChunks chunks = ChunksOfAll(segments, buffers.parameters.size());
    kernels::FrozenLambSums(compute_, step, chunks, buffers,
                            Into(sums, 2 * chunks.chunks.size(), segments.size()));
  }
  void FrozenLambMove(const FrozenLambStep& step, const SegmentTable& segments,
                      const FrozenLambBuffers& buffers, std::span<const double> rates) override {
    const kernels::SegmentChunks chunks = ChunksOfAll(segments, buffers.parameters.size());
    kernels::FrozenLambMove(compute_, step, chunks, buffers, rates);
  }
  void Lion(const LionStep& step, std::span<const float> gradients, std::span<float> parameters,
            std::span<float> momentum) override {
    kernels::Lion(Selected(), step, gradients, parameters, momentum);
  }

  void ParameterDelta(std::span<const float> now, std::span<const float> start,
                      std::span<float> delta) override {
    kernels::ParameterDelta(Selected(), now, start, delta);
  }
  void BlockMomentum(const BlockMomentumStep& step, const BlockMomentumBuffers& buffers) override {
    kernels::BlockMomentum(Selected(), step, buffers);
  }

  void AdasumPartials(const AdasumPair& pair, std::span<const SegmentPart> parts,
                      std::span<double> sums) override {
    constexpr std::size_t kSums = kAdasumSumsPerSegment;
    if (parts.empty()) return;
    RequireWithin(parts, pair.a.size());
    const kernels::SegmentChunks chunks = tables_.Get(Selected(), parts, sums.size() / kSums);
    kernels::AdasumPartials(compute_, pair, chunks,
                            Into(sums, chunks.chunks.size() * kSums, chunks.segments()));
  }
  void AdasumCombine(const AdasumPair& pair, std::span<const SegmentPart> parts,
                     std::span<const double> sums, std::span<float> out) override {
    if (parts.empty()) return;
    RequireWithin(parts, pair.a.size());
    const kernels::SegmentChunks chunks =
        tables_.Get(Selected(), parts, sums.size() / kAdasumSumsPerSegment);
    kernels::AdasumCombine(compute_, pair, chunks, sums, out);
  }
  void AddRows(std::span<const double> lower, std::span<const double> higher,
               std::span<double> out) override {
    kernels::AddRows(Selected(), lower, higher, out);
  }
  void Widen(std::span<const float> from, std::span<double> to) override {
    kernels::Widen(Selected(), from, to);
  }
  void Narrow(std::span<const double> from, std::span<float> to) override {
    kernels::Narrow(Selected(), from, to);
  }
  void CountNonFinite(std::span<const double> values, std::span<double> count) override {
    kernels::CountNonFinite(Selected(), values, count);
  }
  void WriteLanes(std::span<const LaneValue> values, const LaneSums& own,
                  std::span<float> tail) override {
    kernels::WriteLanes(Selected(), values, own, tail);
  }

  void Synchronize() override {
    Require(cudaStreamSynchronize(Selected()), "cudaStreamSynchronize");
  }

 protected:
  HostMemory TakeHostMemory(std::size_t bytes) override {
    Selected();
    void* memory = nullptr;
    Require(cudaMallocHost(&memory, bytes), "cudaMallocHost");
    std::memset(memory, 0, bytes);
    return {.data = memory, .free = [](void* data) { static_cast<void>(cudaFreeHost(data)); }};
  }

 private:
  template <class T>
  Array<T> AllocateArray(std::size_t length) {
    if (length == 0) return {};
    void* const memory = memory_.Take(length, sizeof(T));
    Require(cudaMemsetAsync(memory, 0, length * sizeof(T), compute_), "cudaMemsetAsync");
    // The free waits for the device. Its failure is that of something before.
    return {static_cast<T*>(memory), length, [](void* data) { static_cast<void>(cudaFree(data)); }};
  }

  // Either side may be the host's memory: state comes from and goes into files.
  template <class T>
  void CopyAll(std::span<const T> from, std::span<T> to) {
    TACTUS_CHECK(from.size() == to.size());
    if (from.empty()) return;
    const Stream stream = Selected();
    Require(cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyDefault, stream),
            "cudaMemcpyAsync");
    // Where a device reads the host's memory by itself, it does so when the copy runs, and who owns
    // such a source has not heard of streams. What is copied in rounds is not of that kind.
    if (IsPageable(from.data())) Synchronize();
  }

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

  // Of a whole table, and selects the device.
  kernels::SegmentChunks ChunksOfAll(const SegmentTable& segments, std::size_t length) {
    RequireWithin(segments, length);
    return tables_.Get(Selected(), WholeSegments(segments), segments.size());
  }

  // Makes the device the calling thread's, which need not be the last call's. Returns its stream.
  Stream Selected() {
    Require(cudaSetDevice(index_), "cudaSetDevice");
    return compute_;
  }

  // Where a reduction puts its sums, with scratch that holds until the next one is queued. The
  // device is selected.
  kernels::SumsInto Into(std::span<double> sums, std::size_t partials, std::size_t rows) {
    return {.sums = sums,
            .partials = partials_.Get<double>(partials),
            .counters = counters_.Get(compute_, kernels::CountersFor(rows))};
  }

  const int index_;
  const Stream compute_;
  Lender* lender_ = nullptr;
  CudaMemory memory_{index_};
  CudaBlock sums_{memory_};
  CudaBlock partials_{memory_};
  CudaCounters counters_{memory_};
  CudaTables tables_{memory_};
};

OpenedDevice Refuse(int index, const std::string& why) {
  static_cast<void>(cudaGetLastError());  // it is told here, and shall not turn up elsewhere
  return {.device = nullptr, .reason = "device '" + NameOf(index) + "' cannot be used: " + why};
}

}  // namespace

bool KnowsCuda() { return true; }

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
  // Non-blocking: a stray call on CUDA's default stream, of whichever library, would else wait for
  // all that is here and hold up all that comes. libtorch is told to use this stream.
  Stream compute = nullptr;
  error = cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking);
  if (error != cudaSuccess) return Refuse(index, cudaGetErrorString(error));
  const std::string reason = kernels::WhyNoKernelRuns(compute);
  if (!reason.empty()) {
    static_cast<void>(cudaStreamDestroy(compute));
    return Refuse(index, reason);
  }
  return {.device = std::make_unique<CudaDevice>(index, compute), .reason = ""};
}

}  // namespace tactus::cuda
