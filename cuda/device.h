// A device: where a worker's flat buffers live and who does the arithmetic on them.
//
// Callers see spans of float32 and no vendor's types. The host device runs the loops of cuda/ops/
// at once. A CUDA device queues its kernels, in the order of the calls and of what the process
// queues on CUDA's default stream; its buffers are the device's memory, which the host reaches
// through Copy alone.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "cuda/ops/adam.h"
#include "cuda/ops/adasum.h"
#include "cuda/ops/lamb.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/sgd.h"

namespace tactus::cuda {

// Memory of a device: aligned to 64 bytes and zero at first. Move-only owner.
class Buffer {
 public:
  using Free = void (*)(float* data);
  Buffer() = default;
  Buffer(float* data, std::size_t length, Free free) : data_(data, free), length_(length) {}

  std::span<float> span() { return {data_.get(), length_}; }
  std::span<const float> span() const { return {data_.get(), length_}; }
  std::size_t size() const { return length_; }

 private:
  std::unique_ptr<float[], Free> data_{nullptr, [](float*) {}};
  std::size_t length_ = 0;
};

// One device, used by one thread at a time. Operations run in the order of their calls; contracts
// and tolerances are those of cuda/ops/.
class Device {
 public:
  virtual ~Device() = default;

  // As in a job file and in messages: "cpu:0", "cuda:1".
  virtual std::string Name() const = 0;

  // `length` zeros. Stops the process when the memory cannot be had: without it is no training.
  virtual Buffer Allocate(std::size_t length) = 0;

  virtual void Axpy(float a, std::span<const float> x, std::span<float> y) = 0;
  virtual void Scale(float a, std::span<float> x) = 0;
  // to <- from; equally long, not overlapping. Either may be the host's memory: a source there may
  // change once the call has returned, unless it is pinned; a target is complete after
  // Synchronize().
  virtual void Copy(std::span<const float> from, std::span<float> to) = 0;
  virtual void Fill(float value, std::span<float> x) = 0;
  // Waits for all that is queued, as the result is the host's.
  virtual double SquaredNorm(std::span<const float> x) = 0;
  virtual void Sgd(const SgdStep& step, std::span<const float> gradients,
                   std::span<float> parameters, std::span<float> momentum_buffer) = 0;
  virtual void Adam(const AdamStep& step, std::span<const float> gradients,
                    std::span<float> parameters, std::span<float> first_moment,
                    std::span<float> second_moment) = 0;
  virtual void Lamb(const LambStep& step, const SegmentTable& segments,
                    const LambBuffers& buffers) = 0;
  // `parts` and `sums` are the host's memory; `sums` is complete when the call returns, which waits
  // for all that is queued.
  virtual void AdasumPartials(const AdasumPair& pair, std::span<const SegmentPart> parts,
                              std::span<double> sums) = 0;
  virtual void AdasumCombine(const AdasumPair& pair, std::span<const SegmentPart> parts,
                             std::span<const double> sums, std::span<float> out) = 0;

  // Returns when every operation queued so far is done.
  virtual void Synchronize() = 0;
};

// A device, or the reason why there is none.
struct OpenedDevice {
  std::unique_ptr<Device> device{};  // null: see reason
  std::string reason{};              // empty when there is a device
};

// Opens "cpu:N" (any N: a slot of the host) or "cuda:N".
OpenedDevice OpenDevice(std::string_view name);

// The host's device with the given name, "cpu:0".
std::unique_ptr<Device> MakeHostDevice(std::string name);

// The CUDA device of the given index. Without the toolkit (cuda_absent.cc) no device and the
// reason.
OpenedDevice OpenCudaDevice(int index);

}  // namespace tactus::cuda
