// Where a model's tensors live, and in which numbers it computes: the one place that knows
// libtorch's side of CUDA and what differs between libtorch's versions. Private to this folder.

#pragma once

#include <c10/core/StreamGuard.h>
#include <torch/script.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/model.h"
#include "cuda/ops/stream.h"

namespace tactus::model {

// The device that tensors live on, and the queue of its work.
class TorchDevice {
 public:
  // "cpu:N" (the host, whatever N) or "cuda:N" with the stream to work on; null: the default one.
  // Errors, "workers.device: ...": InvalidArgument, no such kind; NotFound, no such device, or a
  // libtorch without CUDA.
  static absl::StatusOr<TorchDevice> Open(const std::string& name, cuda::Stream stream);

  // The host.
  TorchDevice() = default;

  at::Device device() const { return device_; }
  bool is_host() const { return device_.is_cpu(); }
  // Empty on the host.
  const std::optional<c10::Stream>& stream() const { return stream_; }

  // Those that passes on this device draw from: the host's, then the device's own.
  std::vector<at::Generator> Generators() const;
  void Seed(std::uint64_t seed) const;

  // The tensor itself when it is there already; else a copy that is queued, for which the memory of
  // a pinned tensor has to stay as it is until the copy is done.
  at::Tensor Bring(const at::Tensor& tensor) const;

  // Parameters and buffers go to the device, in place. Throws what libtorch throws.
  void Move(torch::jit::Module& module) const;

 private:
  at::Device device_ = at::kCPU;
  std::optional<c10::Stream> stream_ = {};
};

// What libtorch's allocator keeps of CUDA devices' memory and nobody uses goes back to the devices.
void ReleaseCudaCache();

// While it lives, libtorch queues the calling thread's work on the device's stream.
class OnStream {
 public:
  explicit OnStream(const TorchDevice& device) {
    if (device.stream()) guard_.reset_stream(*device.stream());
  }

 private:
  c10::OptionalStreamGuard guard_;
};

// While it lives, the calling thread's forward passes compute in `precision`: bfloat16 by
// libtorch's autocast, which takes converted copies of float32 tensors where an operation is the
// better for it. It forgets these copies in the end. Not for backward passes, which follow what
// forward did.
class ComputeIn {
 public:
  ComputeIn(Precision precision, const TorchDevice& device);
  ComputeIn(const ComputeIn&) = delete;
  ComputeIn& operator=(const ComputeIn&) = delete;
  ~ComputeIn();

 private:
  const bool casts_;
  const at::DeviceType kind_;
};

// libtorch's name for CUDA device `index` and a stream of it; null: the default one. Throws what
// libtorch throws.
// Errors: NotFound, "workers.device: ...".
absl::StatusOr<c10::Stream> OpenCudaStream(unsigned index, cuda::Stream stream);

}  // namespace tactus::model
