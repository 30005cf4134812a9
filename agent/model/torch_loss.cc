#include "agent/model/torch_loss.h"

#include <cstdint>
#include <filesystem>
#include <utility>

#include "agent/data/field_error.h"
#include "agent/model/torch_module.h"
#include "agent/model/torch_outputs.h"

namespace tactus::model {
namespace {

absl::Status LossError(const std::string& message) {
  return data::AtField("model.loss", absl::InvalidArgumentError(message));
}

absl::Status DataError(const std::string& message) {
  return data::AtField("data", absl::InvalidArgumentError(message));
}

// "[2, 64, classes]": the shape of logits that fit to targets.
std::string LogitsText(const at::Tensor& targets) {
  const std::string shape = ShapeText(targets.sizes());
  return shape.substr(0, shape.size() - 1) + ", classes]";
}

// Outputs [n, classes] with targets int64 [n], or [n, positions, classes] with [n, positions].
class CrossEntropy final : public Loss {
 public:
  absl::Status Fits(const c10::IValue& given, const at::Tensor& targets) override {
    const at::Tensor& outputs = given.toTensor();
    if (targets.is_floating_point()) {
      return DataError("the targets are " + Describe(targets) +
                       "; cross_entropy needs int64 class indices");
    }
    if (targets.dim() != 1 && targets.dim() != 2) {
      return DataError("the targets are " + Describe(targets) +
                       "; cross_entropy needs [n] or [n, positions]");
    }
    const bool fits = outputs.dim() == targets.dim() + 1 &&
                      outputs.sizes().slice(0, targets.sizes().size()) == targets.sizes();
    if (!fits) {
      const std::string needed = targets.dim() == 1 ? "[n, classes]" : LogitsText(targets);
      return LossError("cross_entropy needs logits " + needed + ", the model gives " +
                       ShapeText(outputs.sizes()));
    }
    if (!outputs.is_floating_point()) {
      return LossError("cross_entropy needs floating-point logits, the model gives " +
                       Describe(outputs));
    }
    // On a GPU an index out of range stops a kernel, and with it all further use of the device.
    return CheckRange(targets, outputs.size(-1));
  }

  at::Tensor Sum(const c10::IValue& given, const at::Tensor& targets) override {
    const at::Tensor& outputs = given.toTensor();
    const at::Tensor sum =
        at::cross_entropy_loss(outputs.reshape({-1, outputs.size(-1)}),
                               targets.reshape({-1}).to(at::kLong), {}, at::Reduction::Sum);
    return Positions(targets) == 1 ? sum : sum / static_cast<double>(Positions(targets));
  }

  at::Tensor WeightedSum(const c10::IValue& given, const at::Tensor& targets,
                         const at::Tensor& weights) override {
    const at::Tensor& outputs = given.toTensor();
    const at::Tensor losses =
        at::cross_entropy_loss(outputs.reshape({-1, outputs.size(-1)}),
                               targets.reshape({-1}).to(at::kLong), {}, at::Reduction::None);
    return losses.reshape({targets.size(0), -1}).mean(1).dot(weights);
  }

  std::int64_t Classes(const at::Tensor& outputs, const at::Tensor& targets) override {
    return targets.dim() == 1 ? outputs.size(-1) : 1;
  }

  std::optional<double> Correct(const c10::IValue& given, const at::Tensor& targets) override {
    const std::int64_t right = given.toTensor().argmax(-1).eq(targets).sum().item<std::int64_t>();
    return static_cast<double>(right) / static_cast<double>(Positions(targets));
  }

 private:
  static std::int64_t Positions(const at::Tensor& targets) {
    return targets.dim() == 1 ? 1 : targets.size(1);
  }

  static absl::Status CheckRange(const at::Tensor& targets, std::int64_t classes) {
    if (targets.numel() == 0) return absl::OkStatus();
    const std::int64_t low = targets.min().item<std::int64_t>();
    const std::int64_t high = targets.max().item<std::int64_t>();
    if (high >= classes) {
      return DataError("the targets reach " + std::to_string(high) + " but the model has " +
                       std::to_string(classes) + " classes");
    }
    if (low < 0) {
      return DataError("the targets go down to " + std::to_string(low) + "; allowed: 0 to " +
                       std::to_string(classes - 1));
    }
    return absl::OkStatus();
  }
};

// Outputs and targets of one shape.
class MeanSquaredError final : public Loss {
 public:
  absl::Status Fits(const c10::IValue& given, const at::Tensor& targets) override {
    const at::Tensor& outputs = given.toTensor();
    if (!targets.is_floating_point()) {
      return DataError("the targets are " + Describe(targets) + "; mse needs float32");
    }
    if (outputs.sizes() != targets.sizes()) {
      return LossError("mse needs an output of the targets' shape " + ShapeText(targets.sizes()) +
                       ", the model gives " + ShapeText(outputs.sizes()));
    }
    if (!outputs.is_floating_point()) {
      return LossError("mse needs a floating-point output, the model gives " + Describe(outputs));
    }
    return absl::OkStatus();
  }

  at::Tensor Sum(const c10::IValue& given, const at::Tensor& targets) override {
    const at::Tensor& outputs = given.toTensor();
    const double elements = static_cast<double>(targets.numel() / targets.size(0));
    const at::Tensor sum = at::mse_loss(outputs, targets, at::Reduction::Sum);
    return elements == 1 ? sum : sum / elements;
  }

  at::Tensor WeightedSum(const c10::IValue& given, const at::Tensor& targets,
                         const at::Tensor& weights) override {
    const at::Tensor losses = at::mse_loss(given.toTensor(), targets, at::Reduction::None);
    return losses.reshape({targets.size(0), -1}).mean(1).dot(weights);
  }

  std::optional<double> Correct(const c10::IValue& /*outputs*/,
                                const at::Tensor& /*targets*/) override {
    return std::nullopt;
  }
};

// A user's own module.
class ModuleLoss final : public Loss {
 public:
  explicit ModuleLoss(torch::jit::Module module) : module_(std::move(module)) {}

  bool takes_all() const override { return true; }

  absl::Status Fits(const c10::IValue& outputs, const at::Tensor& targets) override {
    try {
      const c10::IValue value = module_.forward({outputs, targets});
      if (!value.isTensor()) {
        return LossError("the module returns a " + value.tagKind() + "; allowed: a tensor");
      }
      const at::Tensor& loss = value.toTensor();
      if (loss.is_floating_point() && (loss.dim() == 0 || PerSample(loss, targets))) {
        return absl::OkStatus();
      }
      return LossError("the module gives " + Describe(loss) +
                       "; allowed: one number, the mean over the samples, or [" +
                       std::to_string(targets.size(0)) + "], one a sample");
    } catch (const std::exception& error) {
      return Blame("model.loss",
                   "the module fails on outputs " + DescribeOutputs(outputs) + " and targets " +
                       Describe(targets),
                   error);
    }
  }

  at::Tensor Sum(const c10::IValue& outputs, const at::Tensor& targets) override {
    const at::Tensor loss = module_.forward({outputs, targets}).toTensor();
    return loss.dim() == 0 ? loss * static_cast<double>(targets.size(0)) : loss.sum();
  }

  absl::Status FitsWeights(const c10::IValue& outputs, const at::Tensor& targets) override {
    if (PerSample(module_.forward({outputs, targets}).toTensor(), targets)) return absl::OkStatus();
    return LossError(
        "the module gives one number, the mean over the samples; allowed with "
        "data.subset.craig is [" +
        std::to_string(targets.size(0)) + "], one a sample, to be weighted");
  }

  at::Tensor WeightedSum(const c10::IValue& outputs, const at::Tensor& targets,
                         const at::Tensor& weights) override {
    return module_.forward({outputs, targets}).toTensor().dot(weights);
  }

  std::optional<double> Correct(const c10::IValue& /*outputs*/,
                                const at::Tensor& /*targets*/) override {
    return std::nullopt;
  }

 private:
  static bool PerSample(const at::Tensor& loss, const at::Tensor& targets) {
    return loss.dim() == 1 && loss.size(0) == targets.size(0);
  }

  torch::jit::Module module_;
};

bool LooksLikePath(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".pt") || name.ends_with(".pth");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Loss>> Loss::Open(const std::string& name,
                                                 const TorchDevice& device) {
  if (name == "cross_entropy") return std::make_unique<CrossEntropy>();
  if (name == "mse") return std::make_unique<MeanSquaredError>();
  std::error_code failure;
  if (!LooksLikePath(name) && !std::filesystem::exists(name, failure)) {
    return LossError("\"" + name +
                     "\" is unknown; allowed: cross_entropy, mse, or the path of a TorchScript "
                     "module");
  }
  absl::StatusOr<torch::jit::Module> module = LoadModule(name, "model.loss");
  if (!module.ok()) return module.status();
  if (!module->find_method("forward")) {
    return LossError(name + " has no forward");
  }
  // Gradients go through it, to the model's outputs: nothing of it is trained, or saved.
  for (const auto& parameter : module->named_parameters()) {
    if (!parameter.value.requires_grad()) continue;
    return LossError("the parameter " + parameter.name +
                     " of the module wants a gradient, and a loss is not trained; allowed: none, "
                     "or frozen ones (requires_grad_(False))");
  }
  try {
    device.Move(*module);
  } catch (const std::exception& error) {
    return TorchError("model.loss", error);
  }
  return std::make_unique<ModuleLoss>(*std::move(module));
}

}  // namespace tactus::model
