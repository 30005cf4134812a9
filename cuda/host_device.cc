// The host as a device: every operation runs at once in the calling thread.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/check.h"
#include "cuda/device.h"
#include "cuda/ops/rows.h"
#include "cuda/ops/vector.h"

namespace tactus::cuda {
namespace {

constexpr std::size_t kAlignmentBytes = 64;
constexpr std::size_t kBytesMax = std::numeric_limits<std::size_t>::max() - kAlignmentBytes;

void* TakeZeros(std::size_t bytes) {
  TACTUS_CHECK(bytes <= kBytesMax);
  const std::size_t whole = (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
  void* const memory = std::aligned_alloc(kAlignmentBytes, whole);
  TACTUS_CHECK(memory != nullptr);
  std::memset(memory, 0, whole);
  return memory;
}

template <class T>
Array<T> AllocateArray(std::size_t length) {
  if (length == 0) return {};
  TACTUS_CHECK(length <= kBytesMax / sizeof(T));
  return {static_cast<T*>(TakeZeros(length * sizeof(T))), length,
          [](void* data) { std::free(data); }};
}

// All is done when it is recorded.
class HostMark final : public Mark {
 public:
  void Record() override {}
  void Wait() override {}
  Instant ReachedAt(Instant set, const Mark&, Instant) const override { return set; }
};

class HostDevice final : public Device {
 public:
  explicit HostDevice(std::string name) : name_(std::move(name)) {}

  std::string Name() const override { return name_; }

  std::optional<int> cuda_index() const override { return std::nullopt; }
  Stream stream() const override { return nullptr; }

  void OnMemoryShort(std::function<void()> /*give_back*/) override {}  // the system has it all
  Buffer Allocate(std::size_t length) override { return AllocateArray<float>(length); }
  Sums AllocateSums(std::size_t length) override { return AllocateArray<double>(length); }
  std::unique_ptr<Mark> MakeMark() override { return std::make_unique<HostMark>(); }

  void Axpy(float a, std::span<const float> x, std::span<float> y) override { host::Axpy(a, x, y); }
  void Scale(float a, std::span<float> x) override { host::Scale(a, x); }
  void Fill(float value, std::span<float> x) override { host::Fill(value, x); }
  void WeightedSum(std::span<const Weighted> parts, std::span<float> out) override {
    host::WeightedSum(parts, out);
  }
  void Copy(std::span<const float> from, std::span<float> to) override { CopyAll(from, to); }
  void Copy(std::span<const double> from, std::span<double> to) override { CopyAll(from, to); }
  void Clear(std::span<double> sums) override { std::ranges::fill(sums, 0); }
  void AddSquaredNorm(std::span<const float> x, std::span<double> sum) override {
    sum.front() += host::SquaredNorm(x);
  }
  void Gather(const Gathering& gathering, std::span<float> out, std::span<double> norm2) override {
    host::Gather(gathering, out);
    if (!norm2.empty()) norm2.front() += host::SquaredNorm(out);
  }
  void Gate(const StepGate& step, const OwnSums& own, std::span<double> gate) override {
    host::Gate(step, own, gate);
  }
  void GateRound(const RoundGate& round, const RoundFacts& facts, std::span<double> gate) override {
    host::GateRound(round, facts, gate);
  }
  void Sgd(const SgdStep& step, std::span<const float> gradients, std::span<float> parameters,
           std::span<float> momentum_buffer) override {
    host::Sgd(step, gradients, parameters, momentum_buffer);
  }
  void Adam(const AdamStep& step, std::span<const float> gradients, std::span<float> parameters,
            std::span<float> first_moment, std::span<float> second_moment) override {
    host::Adam(step, gradients, parameters, first_moment, second_moment);
  }
  void Lamb(const LambStep& step, const SegmentTable& segments,
            const LambBuffers& buffers) override {
    host::Lamb(step, segments, buffers);
  }
  void LambSums(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers,
                std::span<double> sums) override {
    host::LambSums(step, segments, buffers, sums);
  }
  void LambOfParts(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers,
                   std::span<const double> sums) override {
    host::LambOfParts(step, segments, buffers, sums);
  }
  void FrozenLambSums(const FrozenLambStep& step, const SegmentTable& segments,
                      const FrozenLambBuffers& buffers, std::span<double> sums) override {
    host::FrozenLambSums(step, segments, buffers, sums);
  }
  void FrozenLambMove(const FrozenLambStep& step, const SegmentTable& segments,
                      const FrozenLambBuffers& buffers, std::span<const double> rates) override {
    host::FrozenLambMove(step, segments, buffers, rates);
  }
  void Lion(const LionStep& step, std::span<const float> gradients, std::span<float> parameters,
            std::span<float> momentum) override {
    host::Lion(step, gradients, parameters, momentum);
  }
  void ParameterDelta(std::span<const float> now, std::span<const float> start,
                      std::span<float> delta) override {
    host::ParameterDelta(now, start, delta);
  }
  void BlockMomentum(const BlockMomentumStep& step, const BlockMomentumBuffers& buffers) override {
    host::BlockMomentum(step, buffers);
  }
  void AdasumPartials(const AdasumPair& pair, std::span<const SegmentPart> parts,
                      std::span<double> sums) override {
    host::AdasumPartials(pair, parts, sums);
  }
  void AdasumCombine(const AdasumPair& pair, std::span<const SegmentPart> parts,
                     std::span<const double> sums, std::span<float> out) override {
    host::AdasumCombine(pair, parts, sums, out);
  }
  void AddRows(std::span<const double> lower, std::span<const double> higher,
               std::span<double> out) override {
    host::AddRows(lower, higher, out);
  }
  void Widen(std::span<const float> from, std::span<double> to) override { host::Widen(from, to); }
  void Narrow(std::span<const double> from, std::span<float> to) override {
    host::Narrow(from, to);
  }
  void CountNonFinite(std::span<const double> values, std::span<double> count) override {
    host::CountNonFinite(values, count);
  }
  void WriteLanes(std::span<const LaneValue> values, const LaneSums& own,
                  std::span<float> tail) override {
    host::WriteLanes(values, own, tail);
  }
  void Synchronize() override {}

 protected:
  HostMemory TakeHostMemory(std::size_t bytes) override {
    return {.data = TakeZeros(bytes), .free = [](void* data) { std::free(data); }};
  }

 private:
  template <class T>
  static void CopyAll(std::span<const T> from, std::span<T> to) {
    TACTUS_CHECK(from.size() == to.size());
    std::ranges::copy(from, to.begin());
  }

  const std::string name_;
};

}  // namespace

std::unique_ptr<Device> MakeHostDevice(std::string name) {
  return std::make_unique<HostDevice>(std::move(name));
}

}  // namespace tactus::cuda
