// What a model is trained to: the loss of outputs against targets. Private to this folder.

#pragma once

#include <torch/script.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tactus::model {

// A loss over n samples; a sample's loss is the mean over its positions or elements.
// n >= 1 is the first dimension of outputs and targets.
class Loss {
 public:
  // "cross_entropy", "mse" or the path of a TorchScript module whose forward(outputs, targets)
  // returns one number, the mean over the samples, or [n]. Errors: InvalidArgument or NotFound,
  // "model.loss: ...".
  static absl::StatusOr<std::unique_ptr<Loss>> Open(const std::string& name);

  virtual ~Loss() = default;

  // Whether outputs and targets fit together and to this loss.
  // Errors: InvalidArgument, "model.loss: ..." or "data: ...".
  virtual absl::Status Fits(const at::Tensor& outputs, const at::Tensor& targets) = 0;

  // The sum over the samples, a scalar that can be differentiated. Throws what libtorch throws.
  virtual at::Tensor Sum(const at::Tensor& outputs, const at::Tensor& targets) = 0;

  // Right answers; of a sample with many positions, the share of them. Empty: no such notion.
  virtual std::optional<double> Correct(const at::Tensor& outputs, const at::Tensor& targets) = 0;
};

}  // namespace tactus::model
