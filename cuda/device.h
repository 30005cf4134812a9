// A device: where a worker's flat buffers live and who does the arithmetic on them.
//
// Callers see spans of float32 and no vendor's types. The host device runs the loops of cuda/ops/
// at once. A CUDA device queues its kernels on a stream of its own, in the order of the calls; its
// buffers are the device's memory, which the host reaches through Copy alone. What others do with
// these they queue on the same stream: CUDA's default stream and it do not wait for each other.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/time.h"
#include "cuda/ops/adam.h"
#include "cuda/ops/adasum.h"
#include "cuda/ops/block_momentum.h"
#include "cuda/ops/combination.h"
#include "cuda/ops/frozen_lamb.h"
#include "cuda/ops/gather.h"
#include "cuda/ops/lamb.h"
#include "cuda/ops/lamb_parts.h"
#include "cuda/ops/lanes.h"
#include "cuda/ops/lion.h"
#include "cuda/ops/own_sums.h"
#include "cuda/ops/round_gate.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/sgd.h"
#include "cuda/ops/step_gate.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Who has memory of a device that others may use: the allocator of a program that trains on it, so
// that it counts all that is in use, and no two keep memory from each other. Used by the device's
// thread.
class Lender {
 public:
  virtual ~Lender() = default;

  // `bytes` > 0, aligned to 64 bytes, that are zero to what the device's stream does from now on;
  // null: there is no room.
  virtual void* Take(std::size_t bytes) = 0;
  // Of Take. What was queued on the device's stream so far may still touch it.
  virtual void Give(void* memory) = 0;
};

// Numbers in memory that a device, the host or a lender gave: aligned to 64 bytes and zero at
// first. Move-only owner.
template <class T>
class Array {
 public:
  using Free = void (*)(void* data);
  Array() = default;
  Array(T* data, std::size_t length, Free free) : data_(data, {.free = free}), length_(length) {}
  // The lender outlives it.
  Array(T* data, std::size_t length, Lender& lender)
      : data_(data, {.lender = &lender}), length_(length) {}

  std::span<T> span() { return {data_.get(), length_}; }
  std::span<const T> span() const { return {data_.get(), length_}; }
  std::size_t size() const { return length_; }

 private:
  struct Owner {
    Free free = nullptr;
    Lender* lender = nullptr;

    void operator()(T* data) const { lender != nullptr ? lender->Give(data) : free(data); }
  };

  std::unique_ptr<T[], Owner> data_{};
  std::size_t length_ = 0;
};

using Buffer = Array<float>;
// Sums that operations leave behind and others read: they stay where the buffers are, so that
// nobody has to wait for them.
using Sums = Array<double>;

// A point in a device's work that the host can wait for. Used by the device's thread.
class Mark {
 public:
  virtual ~Mark() = default;

  // Marks all that is queued so far; a mark can be set again.
  virtual void Record() = 0;
  // Returns when what was marked last is done, or the device is lost, so that it will not be; at
  // once if nothing was. A lost device is told of by the next operation.
  virtual void Wait() = 0;

  // When the device came to the mark, by the clock of a caller that set it at `set` and found
  // `later`, set behind it on the same device, reached at `seen`: in [set, seen]. At `set` where
  // operations are done when their calls return. Requires: `later` was waited for.
  virtual Instant ReachedAt(Instant set, const Mark& later, Instant seen) const = 0;
};

// One device, used by one thread at a time. Operations run in the order of their calls; contracts
// and tolerances are those of cuda/ops/. Buffers and sums are the device's memory; where the host's
// is meant, or may be, it says so.
class Device {
 public:
  virtual ~Device() = default;

  // As in a job file and in messages: "cpu:0", "cuda:1".
  virtual std::string Name() const = 0;

  // CUDA's index; nothing: the host's device.
  virtual std::optional<int> cuda_index() const = 0;

  // On which operations are queued: what others queue there runs in the order of the calls. Null:
  // the host's device, whose operations are done when they return.
  virtual Stream stream() const = 0;

  // Called where memory cannot be had, be it for a buffer or for what an operation needs besides,
  // before it is tried once more: whoever holds memory of the device that nobody uses, as libtorch
  // does, gives it back. May be empty.
  virtual void OnMemoryShort(std::function<void()> give_back) = 0;

  // Buffers are taken from the lender from now on, as long as it has room. It outlives them.
  virtual void BorrowFrom(Lender& /*lender*/) {}  // the system has all of the host's

  // Of the device's memory in use now, by whoever [bytes]; 0: not known, as of the host's.
  virtual std::uint64_t MemoryUsed() const { return 0; }

  // `length` zeros. Stops the process when the memory cannot be had: without it is no training.
  virtual Buffer Allocate(std::size_t length) = 0;
  virtual Sums AllocateSums(std::size_t length) = 0;
  // Zeros in memory of the host that the device copies from and to by itself (pinned memory): a
  // copy from there is under way when Copy returns, so it is left alone until a Mark says so.
  template <class T>
  Array<T> AllocateOnHost(std::size_t length);

  virtual std::unique_ptr<Mark> MakeMark() = 0;

  virtual void Axpy(float a, std::span<const float> x, std::span<float> y) = 0;
  virtual void Scale(float a, std::span<float> x) = 0;
  virtual void Fill(float value, std::span<float> x) = 0;
  virtual void WeightedSum(std::span<const Weighted> parts, std::span<float> out) = 0;
  // to <- from; equally long, not overlapping. Either may be the host's memory. A target there is
  // complete after Synchronize(). A pinned source is left alone until a Mark says so; for any other
  // the call waits, as the device may read it as late as when it gets to it.
  virtual void Copy(std::span<const float> from, std::span<float> to) = 0;
  virtual void Copy(std::span<const double> from, std::span<double> to) = 0;
  // sums <- 0
  virtual void Clear(std::span<double> sums) = 0;
  // sum[0] grows by the squared norm of x.
  virtual void AddSquaredNorm(std::span<const float> x, std::span<double> sum) = 0;
  // Brings scattered values into `out`, which is aligned to 16 bytes; norm2[0] grows by the squared
  // norm of what `out` became, as by AddSquaredNorm, if norm2 is not empty.
  virtual void Gather(const Gathering& gathering, std::span<float> out,
                      std::span<double> norm2) = 0;

  virtual void Gate(const StepGate& step, const OwnSums& own, std::span<double> gate) = 0;
  // facts.lost: memory of AllocateOnHost, or of cuda::OpenFlag.
  virtual void GateRound(const RoundGate& round, const RoundFacts& facts,
                         std::span<double> gate) = 0;
  virtual void Sgd(const SgdStep& step, std::span<const float> gradients,
                   std::span<float> parameters, std::span<float> momentum_buffer) = 0;
  virtual void Adam(const AdamStep& step, std::span<const float> gradients,
                    std::span<float> parameters, std::span<float> first_moment,
                    std::span<float> second_moment) = 0;
  virtual void Lamb(const LambStep& step, const SegmentTable& segments,
                    const LambBuffers& buffers) = 0;
  // As host::LambSums and LambOfParts; where the step's gate is shut, the first leaves `sums` as
  // they are.
  virtual void LambSums(const LambStep& step, const SegmentTable& segments,
                        const LambBuffers& buffers, std::span<double> sums) = 0;
  virtual void LambOfParts(const LambStep& step, const SegmentTable& segments,
                           const LambBuffers& buffers, std::span<const double> sums) = 0;
  // As host::FrozenLambSums and FrozenLambMove.
  virtual void FrozenLambSums(const FrozenLambStep& step, const SegmentTable& segments,
                              const FrozenLambBuffers& buffers, std::span<double> sums) = 0;
  virtual void FrozenLambMove(const FrozenLambStep& step, const SegmentTable& segments,
                              const FrozenLambBuffers& buffers, std::span<const double> rates) = 0;
  virtual void Lion(const LionStep& step, std::span<const float> gradients,
                    std::span<float> parameters, std::span<float> momentum) = 0;

  virtual void ParameterDelta(std::span<const float> now, std::span<const float> start,
                              std::span<float> delta) = 0;
  virtual void BlockMomentum(const BlockMomentumStep& step,
                             const BlockMomentumBuffers& buffers) = 0;

  // `parts` and `values` are the host's memory, here and below.
  virtual void AdasumPartials(const AdasumPair& pair, std::span<const SegmentPart> parts,
                              std::span<double> sums) = 0;
  virtual void AdasumCombine(const AdasumPair& pair, std::span<const SegmentPart> parts,
                             std::span<const double> sums, std::span<float> out) = 0;
  virtual void AddRows(std::span<const double> lower, std::span<const double> higher,
                       std::span<double> out) = 0;
  virtual void Widen(std::span<const float> from, std::span<double> to) = 0;
  virtual void Narrow(std::span<const double> from, std::span<float> to) = 0;
  virtual void CountNonFinite(std::span<const double> values, std::span<double> count) = 0;
  virtual void WriteLanes(std::span<const LaneValue> values, const LaneSums& own,
                          std::span<float> tail) = 0;

  // Returns when every operation queued so far is done.
  virtual void Synchronize() = 0;

 protected:
  // Memory for AllocateOnHost; `free` is what frees it.
  struct HostMemory {
    void* data = nullptr;
    void (*free)(void* data) = nullptr;
  };
  virtual HostMemory TakeHostMemory(std::size_t bytes) = 0;
};

template <class T>
Array<T> Device::AllocateOnHost(std::size_t length) {
  static_assert(std::is_trivial_v<T>);
  if (length == 0) return {};
  const HostMemory memory = TakeHostMemory(length * sizeof(T));
  return {static_cast<T*>(memory.data), length, memory.free};
}

// A device, or the reason why there is none.
struct OpenedDevice {
  std::unique_ptr<Device> device{};  // null: see reason
  std::string reason{};              // empty when there is a device
};

// Whether this build can open CUDA's devices, where there are some.
bool KnowsCuda();

// Opens "cpu:N" (any N: a slot of the host) or "cuda:N".
OpenedDevice OpenDevice(std::string_view name);

// The host's device with the given name, "cpu:0".
std::unique_ptr<Device> MakeHostDevice(std::string name);

// The CUDA device of the given index. Without the toolkit (cuda_absent.cc) no device and the
// reason.
OpenedDevice OpenCudaDevice(int index);

}  // namespace tactus::cuda
