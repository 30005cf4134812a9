// What a model is trained to: the loss of outputs against targets. Private to this folder.

#pragma once

#include <torch/script.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/torch_device.h"

namespace tactus::model {

// A loss over n samples; a sample's loss is the mean over its positions or elements.
// n >= 1 is the first dimension of outputs and targets. Outputs are one tensor, but where
// takes_all().
class Loss {
 public:
  // "cross_entropy", "mse" or the path of a TorchScript module whose forward(outputs, targets)
  // returns one number, the mean over the samples, or [n]; its outputs are whatever the model
  // gives. Outputs and targets will be on `device`.
  // Errors: InvalidArgument or NotFound, "model.loss: ..."; ResourceExhausted, out of memory.
  static absl::StatusOr<std::unique_ptr<Loss>> Open(const std::string& name,
                                                    const TorchDevice& device);

  virtual ~Loss() = default;

  // Whether the outputs may be other than one tensor.
  virtual bool takes_all() const { return false; }

  // Whether outputs and targets fit together and to this loss. Waits.
  // Errors: InvalidArgument, "model.loss: ..." or "data: ..."; ResourceExhausted, out of memory.
  // Throws what libtorch throws where nobody is to blame.
  virtual absl::Status Fits(const c10::IValue& outputs, const at::Tensor& targets) = 0;

  // The sum over the samples, a scalar that can be differentiated. Throws what libtorch throws.
  virtual at::Tensor Sum(const c10::IValue& outputs, const at::Tensor& targets) = 0;

  // The same of losses times `weights`, float32 [n]. Throws what libtorch throws.
  // Requires: FitsWeights.
  virtual at::Tensor WeightedSum(const c10::IValue& outputs, const at::Tensor& targets,
                                 const at::Tensor& weights) = 0;

  // Whether it tells the losses of single samples, for WeightedSum. Errors: InvalidArgument,
  // "model.loss: ...". Throws what libtorch throws.
  virtual absl::Status FitsWeights(const c10::IValue& /*outputs*/, const at::Tensor& /*targets*/) {
    return absl::OkStatus();
  }

  // How many classes targets are of, where each sample is of one; else 1.
  virtual std::int64_t Classes(const at::Tensor& /*outputs*/, const at::Tensor& /*targets*/) {
    return 1;
  }

  // Right answers; of a sample with many positions, the share of them. Empty: no such notion.
  // Waits.
  virtual std::optional<double> Correct(const c10::IValue& outputs, const at::Tensor& targets) = 0;
};

}  // namespace tactus::model
