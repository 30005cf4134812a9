// Model on libtorch: a TorchScript module whose parameters live in the caller's flat buffers.

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "agent/model/builtins.h"
#include "agent/model/model.h"
#include "agent/model/threads.h"
#include "agent/model/torch_loss.h"
#include "agent/model/torch_module.h"
#include "agent/model/torch_parameters.h"
#include "base/check.h"

namespace tactus::model {
namespace {

// A tensor over the caller's bytes, without a copy.
at::Tensor OverBytes(std::span<const std::byte> bytes, const data::TensorSpec& spec,
                     std::uint64_t count) {
  TACTUS_CHECK(bytes.size() == count * spec.BytesPerSample());
  std::vector<std::int64_t> shape = {static_cast<std::int64_t>(count)};
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  return torch::from_blob(const_cast<std::byte*>(bytes.data()), shape,
                          at::TensorOptions().dtype(ToTorch(spec.type)));
}

at::Tensor Inputs(const Examples& examples) {
  return OverBytes(examples.inputs, examples.input_spec, examples.count);
}

at::Tensor Targets(const Examples& examples) {
  return OverBytes(examples.targets, examples.target_spec, examples.count);
}

// The buffers that workers keep in step: floating-point and finite. A constant such as a mask of
// -inf is not among them, for a mean over workers would make it NaN.
std::vector<at::Tensor> SharedBuffers(const torch::jit::Module& module) {
  std::vector<at::Tensor> shared;
  for (const at::Tensor& buffer : module.buffers()) {
    if (!buffer.is_floating_point() || !at::isfinite(buffer).all().item<bool>()) continue;
    const bool known = std::ranges::any_of(
        shared, [&buffer](const at::Tensor& other) { return other.is_same(buffer); });
    if (!known) shared.push_back(buffer);
  }
  return shared;
}

// What a pass in training mode changes besides gradients: buffers and libtorch's random numbers.
// Puts them back when it goes.
class SideEffects {
 public:
  explicit SideEffects(const torch::jit::Module& module)
      : generator_(at::detail::getDefaultCPUGenerator()), random_state_(ReadRandomState()) {
    for (const at::Tensor& buffer : module.buffers()) {
      buffers_.emplace_back(buffer, buffer.clone());
    }
  }
  SideEffects(const SideEffects&) = delete;
  SideEffects& operator=(const SideEffects&) = delete;
  ~SideEffects() {
    const at::NoGradGuard no_grad;
    for (auto& [buffer, before] : buffers_) buffer.copy_(before);
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(random_state_);
  }

 private:
  at::Tensor ReadRandomState() {
    const std::lock_guard<std::mutex> lock(generator_.mutex());
    return generator_.get_state();
  }

  at::Generator generator_;
  const at::Tensor random_state_;
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;
};

// Evaluation mode while it lives.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::jit::Module& module) : module_(module) { module_.eval(); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;
  ~EvaluationMode() { module_.train(); }

 private:
  torch::jit::Module& module_;
};

// What a model is made of.
struct Parts {
  std::string field;  // begins an error that the model is to blame for
  torch::jit::Module module;
  std::unique_ptr<Loss> loss;
  std::unique_ptr<FlatParameters> parameters;
  std::optional<std::uint32_t> context;
};

class TorchModel final : public Model {
 public:
  explicit TorchModel(Parts parts)
      : parts_(std::move(parts)), shared_buffers_(SharedBuffers(parts_.module)) {
    parts_.module.train();
  }

  const cuda::SegmentTable& segments() const override { return parts_.parameters->segments(); }

  void Bind(std::span<float> parameters, std::span<float> gradients) override {
    parts_.parameters->Bind(parameters, gradients);
  }

  absl::Status TryOut(const Examples& examples) override;
  absl::StatusOr<double> ForwardBackward(const Examples& examples,
                                         const SegmentReady& ready) override;
  absl::StatusOr<EvaluationSums> Evaluate(const Examples& examples) override;
  std::vector<float> ReadBuffers() const override;
  void WriteBuffers(std::span<const float> values) override;

  std::optional<std::uint32_t> context() const override { return parts_.context; }

  absl::Status SaveTorchScript(const std::string& path) const override {
    return SaveModule(parts_.module, path);
  }

  absl::Status SaveSafetensors(const std::string& path) const override {
    return SaveTensors(parts_.module, path);
  }

 private:
  // The outputs, or why the model does not take these inputs.
  absl::StatusOr<at::Tensor> TryForward(const at::Tensor& inputs);
  absl::Status TryBackward(const at::Tensor& outputs, const at::Tensor& targets);

  Parts parts_;
  const std::vector<at::Tensor> shared_buffers_;
};

absl::StatusOr<at::Tensor> TorchModel::TryForward(const at::Tensor& inputs) {
  try {
    const c10::IValue outputs = parts_.module.forward({inputs});
    if (outputs.isTensor()) return outputs.toTensor();
    return absl::InvalidArgumentError(parts_.field + ": forward returns a " + outputs.tagKind() +
                                      "; allowed: a tensor");
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError("data: the model's forward fails on inputs " +
                                      Describe(inputs) + ": " + OneLine(error));
  }
}

absl::Status TorchModel::TryBackward(const at::Tensor& outputs, const at::Tensor& targets) {
  try {
    const at::Tensor loss = parts_.loss->Sum(outputs, targets);
    if (!loss.requires_grad()) {
      return absl::InvalidArgumentError(parts_.field + ": the loss depends on no parameter");
    }
    loss.backward();
    return parts_.parameters->CheckGradients();
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(parts_.field + ": backward fails: " + OneLine(error));
  }
}

absl::Status TorchModel::TryOut(const Examples& examples) {
  TACTUS_CHECK(parts_.parameters->bound());
  TACTUS_CHECK(examples.count >= 1);
  const SideEffects side_effects(parts_.module);
  const std::span<float> gradients = parts_.parameters->gradients();
  const std::vector<float> before(gradients.begin(), gradients.end());
  const at::Tensor targets = Targets(examples);
  const absl::StatusOr<at::Tensor> outputs = TryForward(Inputs(examples));
  if (!outputs.ok()) return outputs.status();
  absl::Status status = parts_.loss->Fits(*outputs, targets);
  if (status.ok()) status = TryBackward(*outputs, targets);
  std::ranges::copy(before, gradients.begin());
  return status;
}

absl::StatusOr<double> TorchModel::ForwardBackward(const Examples& examples,
                                                   const SegmentReady& ready) {
  TACTUS_CHECK(parts_.parameters->bound());
  parts_.parameters->BeginBackward(ready);
  double loss_sum = 0;
  if (examples.count > 0) {
    try {
      const at::Tensor outputs = parts_.module.forward({Inputs(examples)}).toTensor();
      const at::Tensor loss = parts_.loss->Sum(outputs, Targets(examples));
      loss.backward();
      loss_sum = loss.item<double>();
    } catch (const std::exception& error) {
      return TorchError("model", error);
    }
  }
  const absl::Status status = parts_.parameters->CheckGradients();
  if (!status.ok()) return status;
  parts_.parameters->EndBackward();
  return loss_sum;
}

absl::StatusOr<EvaluationSums> TorchModel::Evaluate(const Examples& examples) {
  EvaluationSums sums{.samples = examples.count};
  if (examples.count == 0) return sums;
  const EvaluationMode evaluation(parts_.module);
  const at::NoGradGuard no_grad;
  try {
    const at::Tensor outputs = parts_.module.forward({Inputs(examples)}).toTensor();
    const at::Tensor targets = Targets(examples);
    sums.loss_sum = parts_.loss->Sum(outputs, targets).item<double>();
    const std::optional<double> correct = parts_.loss->Correct(outputs, targets);
    sums.has_accuracy = correct.has_value();
    sums.correct_sum = correct.value_or(0);
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
  return sums;
}

std::vector<float> TorchModel::ReadBuffers() const {
  std::vector<float> values;
  for (const at::Tensor& buffer : shared_buffers_) {
    const at::Tensor flat = buffer.detach().to(at::kFloat).contiguous();
    const float* begin = flat.data_ptr<float>();
    values.insert(values.end(), begin, begin + flat.numel());
  }
  return values;
}

void TorchModel::WriteBuffers(std::span<const float> values) {
  const at::NoGradGuard no_grad;
  for (at::Tensor buffer : shared_buffers_) {
    const auto length = static_cast<std::size_t>(buffer.numel());
    TACTUS_CHECK(values.size() >= length);
    buffer.copy_(torch::from_blob(const_cast<float*>(values.data()), buffer.sizes(),
                                  at::TensorOptions().dtype(at::kFloat)));
    values = values.subspan(length);
  }
  TACTUS_CHECK(values.empty());
}

absl::StatusOr<Parts> OpenParts(const ModelOptions& options) {
  Parts parts;
  if (!options.builtin.empty()) {
    const absl::StatusOr<Builtin> builtin = MakeBuiltin(options);
    if (!builtin.ok()) return builtin.status();
    absl::StatusOr<torch::jit::Module> module = BuildModule(builtin->root, options.seed);
    if (!module.ok()) return module.status();
    parts.field = "model.builtin";
    parts.module = *std::move(module);
    parts.context = builtin->context;
    return parts;
  }
  const absl::Status sizes = RefuseSizes(options);
  if (!sizes.ok()) return sizes;
  absl::StatusOr<torch::jit::Module> module = LoadModule(options.torchscript, "model.torchscript");
  if (!module.ok()) return module.status();
  parts.field = "model.torchscript";
  parts.module = *std::move(module);
  if (!parts.module.find_method("forward")) {
    return absl::InvalidArgumentError("model.torchscript: " + options.torchscript +
                                      " has no forward");
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Open(const ModelOptions& options) {
  if (options.builtin.empty() == options.torchscript.empty()) {
    return absl::InvalidArgumentError("model: give one of builtin and torchscript");
  }
  TACTUS_CHECK(options.threads >= 1);
  SetComputeThreads(options.threads);
  at::manual_seed(options.seed);
  // Plain interpretation: the optimising executor recompiles for a second or two whenever a batch
  // size is new, gains nothing on a CPU, and hands over the gradients of many layers at once.
  torch::jit::setGraphExecutorOptimize(false);
  absl::StatusOr<std::unique_ptr<Loss>> loss = Loss::Open(options.loss);
  if (!loss.ok()) return loss.status();
  absl::StatusOr<Parts> parts = OpenParts(options);
  if (!parts.ok()) return parts.status();
  parts->loss = *std::move(loss);
  absl::StatusOr<std::unique_ptr<FlatParameters>> parameters =
      FlatParameters::Of(parts->module, parts->field);
  if (!parameters.ok()) return parameters.status();
  parts->parameters = *std::move(parameters);
  return std::make_unique<TorchModel>(*std::move(parts));
}

}  // namespace tactus::model
