// The parameters of a module as views into a flat buffer, and the way their gradients leave.
// Private to this folder.

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

// Owns the segment table and the hooks that hand a segment's gradient over when it is complete.
//
// A parameter has no `grad` when a pass begins. So autograd puts the tensor there that its last
// operation made, where it would else add it to one that is there, by a kernel of its own that
// moves 12 bytes an element; and the hook behind takes it away again, so that it is there for
// nobody else.
//
// Autograd keeps pointers to this object: it neither moves nor dies before the module's last
// backward pass.
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
  bool bound() const { return bound_; }

  // See Model::Bind. The buffer is memory of the device that the parameters are on now.
  void Bind(std::span<float> parameters);

  // A pass under way: while it lives, `take` (which must outlive it) is given the gradient of each
  // segment that is complete. Complete() calls it for those that were left; without it, the pass
  // has failed and nothing more is said.
  class Pass {
   public:
    Pass(FlatParameters& parameters, const TakeGradient& take);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass();

    // Errors: Internal, naming a parameter that got another gradient after it was complete.
    absl::Status Complete();

   private:
    FlatParameters& parameters_;
  };

 private:
  // A shared pointer to a parameter's AccumulateGrad; libtorch changed of which kind.
  using Accumulator =
      decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

  // A parameter under each of the tensors that share its memory.
  struct Slot {
    std::vector<at::Tensor> tensors;
    std::vector<Accumulator> accumulators;  // autograd holds them weakly
    std::size_t pending = 0;                // tensors whose gradient is still missing in this pass
    at::Tensor gradient;                    // of those that have theirs; undefined: none has
    bool taken = false;
  };

  FlatParameters() = default;
  absl::Status Add(const std::string& name, const at::Tensor& tensor);
  absl::Status CheckOverlaps() const;
  void Hook(std::size_t segment);
  void Accumulated(std::size_t segment, std::size_t tensor);
  void HandOver(std::size_t segment);
  void Drop();

  cuda::SegmentTable segments_;
  std::vector<Slot> slots_;  // one a segment
  bool bound_ = false;
  const TakeGradient* take_ = nullptr;  // null outside a pass
};

}  // namespace tactus::model
