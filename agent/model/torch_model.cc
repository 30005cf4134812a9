// Model on libtorch: a TorchScript module whose parameters live in the caller's flat buffers.

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "agent/data/field_error.h"
#include "agent/model/builtins.h"
#include "agent/model/model.h"
#include "agent/model/threads.h"
#include "agent/model/torch_device.h"
#include "agent/model/torch_loss.h"
#include "agent/model/torch_module.h"
#include "agent/model/torch_outputs.h"
#include "agent/model/torch_parameters.h"
#include "base/check.h"

namespace tactus::model {
namespace {

// A tensor over the caller's bytes, which may be more, without a copy.
at::Tensor OverBytes(std::span<const std::byte> bytes, const data::TensorSpec& spec,
                     std::uint64_t count) {
  TACTUS_CHECK(bytes.size() >= count * spec.BytesPerSample());
  std::vector<std::int64_t> shape = {static_cast<std::int64_t>(count)};
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  return torch::from_blob(const_cast<std::byte*>(bytes.data()), shape,
                          at::TensorOptions().dtype(ToTorch(spec.type)));
}

std::vector<at::Tensor> Inputs(const Examples& examples) {
  const data::TensorPlaces places = data::PlacesOf(examples.input_specs, examples.count);
  TACTUS_CHECK(examples.inputs.size() == places.bytes);
  std::vector<at::Tensor> inputs;
  for (std::size_t i = 0; i < examples.input_specs.size(); ++i) {
    inputs.push_back(OverBytes(examples.inputs.subspan(places.offsets[i]), examples.input_specs[i],
                               examples.count));
  }
  return inputs;
}

// "float32 [2, 3], bool [2]".
std::string DescribeAll(const std::vector<at::Tensor>& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors) {
    text += (text.empty() ? "" : ", ") + Describe(tensor);
  }
  return text;
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

// What a pass in training mode changes besides the gradients, as it was: buffers and libtorch's
// random numbers. Throws what libtorch throws.
class Before {
 public:
  Before(std::vector<at::Tensor> tensors, std::vector<at::Generator> generators) {
    for (at::Tensor& tensor : tensors) tensors_.emplace_back(tensor, tensor.detach().clone());
    for (at::Generator& generator : generators) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generators_.emplace_back(generator, generator.get_state());
    }
  }

  void PutBack() {
    const at::NoGradGuard no_grad;
    for (auto& [tensor, before] : tensors_) tensor.copy_(before);
    for (auto& [generator, state] : generators_) {
      const std::lock_guard<std::mutex> lock(generator.mutex());
      generator.set_state(state);
    }
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> tensors_;
  std::vector<std::pair<at::Generator, at::Tensor>> generators_;
};

// A row a sample; of many positions, [n, positions, classes], their sum.
at::Tensor SampleRows(const at::Tensor& gradient, const at::Tensor& targets) {
  const bool positions = gradient.dim() == 3 && !targets.is_floating_point() && targets.dim() == 2;
  return positions ? gradient.sum(1) : gradient.reshape({gradient.size(0), -1});
}

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
  TorchDevice device;
  Precision precision = Precision::kFloat32;
  std::string output;  // ModelOptions::output
};

class TorchModel final : public Model {
 public:
  explicit TorchModel(Parts parts)
      : parts_(std::move(parts)), shared_buffers_(SharedBuffers(parts_.module)) {
    parts_.module.train();
  }

  const cuda::SegmentTable& segments() const override { return parts_.parameters->segments(); }

  void Bind(std::span<float> parameters, std::span<double> loss_sum) noexcept override {
    const OnStream on_stream(parts_.device);
    parts_.parameters->Bind(parameters);
    TACTUS_CHECK(loss_sum.size() == 1);
    const auto options = at::TensorOptions().dtype(at::kDouble).device(parts_.device.device());
    loss_sum_ = torch::from_blob(loss_sum.data(), {}, options);
  }

  absl::Status TryOut(const Examples& examples) override;
  absl::Status ForwardBackward(const Examples& examples, const TakeGradient& take) override;
  void ReleaseCachedMemory() override {
    if (!parts_.device.is_host()) ReleaseCudaCache();
  }
  absl::StatusOr<GradientProxies> Proxies(const Examples& examples) override;
  absl::StatusOr<EvaluationSums> Evaluate(const Examples& examples) override;
  std::vector<float> ReadBuffers() const noexcept override;
  void WriteBuffers(std::span<const float> values) noexcept override;

  std::optional<std::uint32_t> context() const override { return parts_.context; }

  absl::Status SaveTorchScript(const std::string& path) const override {
    const OnStream on_stream(parts_.device);
    return SaveModule(parts_.module, path);
  }

  absl::Status SaveSafetensors(const std::string& path) const override {
    const OnStream on_stream(parts_.device);
    return SaveTensors(parts_.module, path);
  }
  absl::Status CopyTensors(tensors::TensorsCopy& copy) const override {
    const OnStream on_stream(parts_.device);
    return model::CopyTensors(parts_.module, copy);
  }
  absl::Status LoadSafetensors(const std::string& path) override {
    const OnStream on_stream(parts_.device);
    return LoadTensors(parts_.module, path);
  }

 private:
  // What the loss takes of the outputs, in float32, whatever the precision.
  c10::IValue Run(const std::vector<at::Tensor>& inputs, Precision precision);
  std::vector<at::Tensor> Bring(std::vector<at::Tensor> inputs) const;
  void AddLoss(const at::Tensor& loss);
  at::Tensor LossOf(const c10::IValue& outputs, const at::Tensor& targets,
                    std::span<const float> weights) const;

  // A pass that finds out who is to blame when it fails.
  absl::Status TryPass(const Examples& examples, Precision precision);
  // The outputs, or why the model does not take these inputs.
  absl::StatusOr<c10::IValue> TryForward(const std::vector<at::Tensor>& inputs,
                                         Precision precision);
  absl::Status TryBackward(const c10::IValue& outputs, const at::Tensor& targets);

  Parts parts_;
  const std::vector<at::Tensor> shared_buffers_;
  at::Tensor loss_sum_;  // over the caller's number
};

c10::IValue TorchModel::Run(const std::vector<at::Tensor>& inputs, Precision precision) {
  const ComputeIn compute(precision, parts_.device);
  const c10::IValue outputs =
      parts_.module.forward(std::vector<c10::IValue>(inputs.begin(), inputs.end()));
  const c10::IValue output = parts_.output.empty() ? outputs : OutputOf(outputs, parts_.output);
  return precision == Precision::kBfloat16 ? InFloat32(output) : output;
}

std::vector<at::Tensor> TorchModel::Bring(std::vector<at::Tensor> inputs) const {
  for (at::Tensor& input : inputs) input = parts_.device.Bring(input);
  return inputs;
}

void TorchModel::AddLoss(const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  loss_sum_.add_(loss);
}

absl::StatusOr<c10::IValue> TorchModel::TryForward(const std::vector<at::Tensor>& inputs,
                                                   Precision precision) {
  try {
    const c10::IValue outputs = Run(inputs, precision);
    if (outputs.isTensor() || parts_.loss->takes_all()) return outputs;
    return data::AtField(parts_.output.empty() ? parts_.field : "model.output",
                         absl::InvalidArgumentError(
                             "forward returns " + DescribeOutputs(outputs) +
                             "; allowed: a tensor, or model.output says which of them the loss "
                             "takes"));
  } catch (const NoSuchOutput& error) {
    return data::AtField("model.output", absl::InvalidArgumentError(error.what()));
  } catch (const std::exception& error) {
    // A model of one's own may raise, or be for others; a built-in one is right about its inputs.
    const std::string field = parts_.field == "model.builtin" ? "data" : parts_.field;
    return Blame(field, "the model's forward fails on inputs " + DescribeAll(inputs), error);
  }
}

absl::Status TorchModel::TryBackward(const c10::IValue& outputs, const at::Tensor& targets) {
  try {
    const at::Tensor loss = parts_.loss->Sum(outputs, targets);
    if (!loss.requires_grad()) {
      return data::AtField(parts_.field,
                           absl::InvalidArgumentError("the loss depends on no parameter"));
    }
    const TakeGradient drop = [](const SegmentGradient&) {};
    FlatParameters::Pass pass(*parts_.parameters, drop);
    loss.backward();
    loss.item<double>();  // what a device was asked to do fails when it is waited for
    return pass.Complete();
  } catch (const std::exception& error) {
    return Blame(parts_.field, "backward fails", error);
  }
}

absl::Status TorchModel::TryPass(const Examples& examples, Precision precision) {
  try {
    const at::Tensor targets = parts_.device.Bring(Targets(examples));
    const absl::StatusOr<c10::IValue> outputs = TryForward(Bring(Inputs(examples)), precision);
    if (!outputs.ok()) return outputs.status();
    absl::Status fits = parts_.loss->Fits(*outputs, targets);
    if (fits.ok() && !examples.weights.empty()) {
      fits = parts_.loss->FitsWeights(*outputs, targets);
    }
    return fits.ok() ? TryBackward(*outputs, targets) : fits;
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
}

absl::Status TorchModel::TryOut(const Examples& examples) {
  TACTUS_CHECK(parts_.parameters->bound());
  TACTUS_CHECK(examples.count >= 1);
  const OnStream on_stream(parts_.device);
  std::vector<at::Tensor> changed;
  for (const at::Tensor& buffer : parts_.module.buffers()) changed.push_back(buffer);
  try {
    Before before(std::move(changed), parts_.device.Generators());
    absl::Status status = TryPass(examples, parts_.precision);
    if (absl::IsInvalidArgument(status) && parts_.precision != Precision::kFloat32 &&
        TryPass(examples, Precision::kFloat32).ok()) {
      status = data::AtField("model.precision",
                             absl::InvalidArgumentError("float32 works, but bfloat16 does not: " +
                                                        std::string(status.message())));
    }
    before.PutBack();
    return status;
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
}

absl::Status TorchModel::ForwardBackward(const Examples& examples, const TakeGradient& take) {
  TACTUS_CHECK(parts_.parameters->bound());
  const OnStream on_stream(parts_.device);
  FlatParameters::Pass pass(*parts_.parameters, take);
  try {
    if (examples.count > 0) {
      const c10::IValue outputs = Run(Bring(Inputs(examples)), parts_.precision);
      const at::Tensor loss =
          LossOf(outputs, parts_.device.Bring(Targets(examples)), examples.weights);
      AddLoss(loss);  // before the hooks, of which the last sends it off
      loss.backward();
    }
    return pass.Complete();
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
}

at::Tensor TorchModel::LossOf(const c10::IValue& outputs, const at::Tensor& targets,
                              std::span<const float> weights) const {
  if (weights.empty()) return parts_.loss->Sum(outputs, targets);
  TACTUS_CHECK(static_cast<std::int64_t>(weights.size()) == targets.size(0));
  const at::Tensor on_host = torch::from_blob(const_cast<float*>(weights.data()), {targets.size(0)},
                                              at::TensorOptions().dtype(at::kFloat));
  return parts_.loss->WeightedSum(outputs, targets, parts_.device.Bring(on_host));
}

absl::StatusOr<GradientProxies> TorchModel::Proxies(const Examples& examples) {
  TACTUS_CHECK(examples.count >= 1);
  const OnStream on_stream(parts_.device);
  const EvaluationMode evaluation(parts_.module);
  const auto wrong = [](const std::string& what) {
    return data::AtField("data.subset.craig", absl::InvalidArgumentError(what));
  };
  try {
    c10::IValue outputs;
    {
      const at::NoGradGuard no_grad;
      outputs = Run(Bring(Inputs(examples)), parts_.precision);
    }
    if (!outputs.isTensor()) {
      return wrong("the model gives " + DescribeOutputs(outputs) +
                   "; allowed is one tensor, by whose gradients samples are told apart");
    }
    const at::Tensor output = outputs.toTensor().detach().requires_grad_(true);
    const at::Tensor targets = parts_.device.Bring(Targets(examples));
    parts_.loss->Sum(output, targets).backward();
    const at::Tensor gradient = output.grad();
    const at::Tensor flat = SampleRows(gradient, targets).to(at::kFloat).cpu().contiguous();
    const auto width = static_cast<std::size_t>(flat.size(1));
    if (width > GradientProxies::kWidthMax) {
      return wrong("the model gives " + std::to_string(width) + " numbers a sample; allowed are " +
                   std::to_string(GradientProxies::kWidthMax) + ", or random in place of craig");
    }
    GradientProxies proxies{.width = width};
    const float* const begin = flat.data_ptr<float>();
    proxies.values.assign(begin, begin + flat.numel());
    proxies.class_count = static_cast<std::uint32_t>(parts_.loss->Classes(output, targets));
    proxies.classes.assign(examples.count, 0);
    if (proxies.class_count == 1) return proxies;
    const at::Tensor classes = targets.to(at::kLong).cpu().contiguous();
    for (std::uint64_t i = 0; i < examples.count; ++i) {
      proxies.classes[i] = static_cast<std::uint32_t>(classes.data_ptr<std::int64_t>()[i]);
    }
    return proxies;
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
}

absl::StatusOr<EvaluationSums> TorchModel::Evaluate(const Examples& examples) {
  EvaluationSums sums{.samples = examples.count};
  if (examples.count == 0) return sums;
  const OnStream on_stream(parts_.device);
  const EvaluationMode evaluation(parts_.module);
  const at::NoGradGuard no_grad;
  try {
    const c10::IValue outputs = Run(Bring(Inputs(examples)), parts_.precision);
    const at::Tensor targets = parts_.device.Bring(Targets(examples));
    sums.loss_sum = parts_.loss->Sum(outputs, targets).item<double>();
    const std::optional<double> correct = parts_.loss->Correct(outputs, targets);
    sums.has_accuracy = correct.has_value();
    sums.correct_sum = correct.value_or(0);
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
  return sums;
}

std::vector<float> TorchModel::ReadBuffers() const noexcept {
  const OnStream on_stream(parts_.device);
  std::vector<float> values;
  for (const at::Tensor& buffer : shared_buffers_) {
    const at::Tensor flat = buffer.detach().to(at::kFloat).contiguous().cpu();
    const float* begin = flat.data_ptr<float>();
    values.insert(values.end(), begin, begin + flat.numel());
  }
  return values;
}

void TorchModel::WriteBuffers(std::span<const float> values) noexcept {
  const OnStream on_stream(parts_.device);
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
    return data::AtField("model.torchscript",
                         absl::InvalidArgumentError(options.torchscript + " has no forward"));
  }
  return parts;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> Model::Open(const ModelOptions& options) {
  if (options.builtin.empty() == options.torchscript.empty()) {
    return data::AtField("model",
                         absl::InvalidArgumentError("give one of builtin and torchscript"));
  }
  TACTUS_CHECK(options.threads >= 1);
  TACTUS_CHECK(options.mesh.kind == MeshKind::kNone && !options.recompute);  // PartitionedModel's
  SetComputeThreads(options.threads);
  const absl::StatusOr<TorchDevice> device = TorchDevice::Open(options.device, options.stream);
  if (!device.ok()) return device.status();
  const OnStream on_stream(*device);
  device->Seed(options.seed);
  // Plain interpretation: the optimising executor recompiles for a second or two whenever a batch
  // size is new, gains nothing on a CPU, and hands over the gradients of many layers at once.
  torch::jit::setGraphExecutorOptimize(false);
  absl::StatusOr<std::unique_ptr<Loss>> loss = Loss::Open(options.loss, *device);
  if (!loss.ok()) return loss.status();
  absl::StatusOr<Parts> parts = OpenParts(options);
  if (!parts.ok()) return parts.status();
  parts->loss = *std::move(loss);
  absl::StatusOr<std::unique_ptr<FlatParameters>> parameters =
      FlatParameters::Of(parts->module, parts->field);
  if (!parameters.ok()) return parameters.status();
  parts->parameters = *std::move(parameters);
  parts->device = *device;
  parts->precision = options.precision;
  parts->output = options.output;
  try {
    // Behind FlatParameters, as moving would part tensors that share memory.
    device->Move(parts->module);
    return std::make_unique<TorchModel>(*std::move(parts));
  } catch (const std::exception& error) {
    return TorchError(parts->field, error);
  }
}

}  // namespace tactus::model
