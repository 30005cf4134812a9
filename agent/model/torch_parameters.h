// The parameters of a module as views into two flat buffers. Private to this folder.

#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/script.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/model.h"
#include "cuda/ops/segments.h"

namespace tactus::model {

// Owns the segment table and the hooks that tell when a segment's gradient is complete. Autograd
// keeps pointers to this object: it neither moves nor dies before the module's last backward pass.
class FlatParameters {
 public:
  // The parameters of `module` that need a gradient, in reverse order of registration. Names of one
  // tensor (tied parameters) make one segment, under the name registered first. Errors:
  // InvalidArgument, beginning with `field`: no parameter to train; one that is not float32, not
  // contiguous, or shares part of its memory with another.
  static absl::StatusOr<std::unique_ptr<FlatParameters>> Of(const torch::jit::Module& module,
                                                            const std::string& field);

  FlatParameters(const FlatParameters&) = delete;
  FlatParameters& operator=(const FlatParameters&) = delete;

  const cuda::SegmentTable& segments() const { return segments_; }
  bool bound() const { return gradients_.defined(); }

  // The flat gradients, one dimension. Requires Bind.
  const at::Tensor& gradients() const { return gradients_; }

  // See Model::Bind. The buffers are memory of the device that the parameters are on now.
  void Bind(std::span<float> parameters, std::span<float> gradients);

  // A pass under way: while it lives, `ready` (which may be empty, and must outlive it) is called
  // for each segment that is complete. Complete() calls it for those that were left; without it,
  // the pass has failed and nothing more is said.
  class Pass {
   public:
    Pass(FlatParameters& parameters, const SegmentReady& ready);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass();

    void Complete();

   private:
    FlatParameters& parameters_;
  };

  // Whether autograd still accumulates into the flat buffer. Requires Bind.
  // Errors: Internal, naming the parameter whose gradient was put elsewhere.
  absl::Status CheckGradients() const;

 private:
  // A shared pointer to a parameter's AccumulateGrad; libtorch changed of which kind.
  using Accumulator =
      decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

  // A parameter under each of the tensors that share its memory.
  struct Slot {
    std::vector<at::Tensor> tensors;
    std::vector<Accumulator> accumulators;  // autograd holds them weakly
    std::size_t pending = 0;                // tensors whose gradient is still missing in this pass
    bool reported = false;
  };

  FlatParameters() = default;
  absl::Status Add(const std::string& name, const at::Tensor& tensor);
  absl::Status CheckOverlaps() const;
  void Hook(std::size_t segment);
  void Accumulated(std::size_t segment);
  void Report(std::size_t segment);

  cuda::SegmentTable segments_;
  std::vector<Slot> slots_;  // one a segment
  at::Tensor gradients_;
  const SegmentReady* ready_ = nullptr;  // null outside a backward pass, or when nobody asks
};

}  // namespace tactus::model
