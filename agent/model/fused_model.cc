#include "agent/model/fused_model.h"

#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "agent/data/field_error.h"
#include "agent/model/builtins.h"
#include "agent/model/fused_ops.h"
#include "agent/model/torch_device.h"
#include "agent/model/torch_module.h"
#include "base/check.h"

namespace tactus::model {
namespace {

// Parameters of some models by name, [models, ...].
using Stacked = std::map<std::string, at::Tensor>;

at::Tensor Linear(const Stacked& of, const std::string& layer, const at::Tensor& x) {
  return FusedLinear(x, of.at(layer + ".weight"), of.at(layer + ".bias"));
}
at::Tensor Norm(const Stacked& of, const std::string& layer, const at::Tensor& x) {
  return FusedLayerNorm(x, of.at(layer + ".weight"), of.at(layer + ".bias"));
}

// ---- The forward passes, layer by layer as in cifar_cnn.cc and bytes_lm.cc

at::Tensor PooledConvolution(const Stacked& of, const std::string& layer, const at::Tensor& x) {
  const at::Tensor y = FusedConvolution(x, of.at(layer + ".weight"), of.at(layer + ".bias"));
  return at::max_pool2d(y, {2, 2}, {2, 2}).relu_();
}

// images [n, channels, 32, 32] of all models, or [n, models channels, 32, 32].
at::Tensor RunCifarCnn(const Stacked& of, const at::Tensor& images) {
  at::Tensor x = PooledConvolution(of, "conv1", images);
  x = PooledConvolution(of, "conv3", PooledConvolution(of, "conv2", x));
  const at::Tensor flat = ToDense(x, of.at("conv1.weight").size(0));
  return Linear(of, "output", Linear(of, "hidden", flat).relu_());
}

struct BytesLmShape {
  std::int64_t heads = 1;
  std::int64_t layers = 1;
};

at::Tensor RunBlock(const Stacked& of, const std::string& block, std::int64_t heads, at::Tensor x,
                    const at::Tensor& mask) {
  const std::int64_t models = x.size(0);
  const std::int64_t n = x.size(1);
  const std::int64_t t = x.size(2);
  const std::int64_t width = x.size(3);
  const std::int64_t depth = width / heads;
  const std::vector<at::Tensor> parts = Linear(of, block + "qkv", Norm(of, block + "norm1", x))
                                            .view({models, n, t, 3, heads, depth})
                                            .permute({3, 0, 1, 4, 2, 5})
                                            .unbind(0);
  const double scale = std::pow(static_cast<double>(depth), -0.5);
  const at::Tensor scores = at::matmul(parts[0], parts[1].transpose(-2, -1)) * scale + mask;
  const at::Tensor y =
      at::matmul(scores.softmax(-1), parts[2]).transpose(2, 3).reshape({models, n, t, width});
  x = x + Linear(of, block + "out", y);
  const at::Tensor up = at::gelu(Linear(of, block + "up", Norm(of, block + "norm2", x)));
  return x + Linear(of, block + "down", up);
}

// tokens [models, n, t].
at::Tensor RunBytesLm(const Stacked& of, const BytesLmShape& shape, const at::Tensor& tokens) {
  const std::int64_t t = tokens.size(2);
  at::Tensor x = FusedEmbedding(tokens, of.at("token.weight")) +
                 of.at("position.weight").slice(1, 0, t).unsqueeze(1);
  const at::Tensor mask =
      at::triu(at::full({t, t}, -std::numeric_limits<double>::infinity(), x.options()), 1);
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    x = RunBlock(of, "blocks." + std::to_string(i) + ".", shape.heads, x, mask);
  }
  return Linear(of, "head", Norm(of, "norm", x));
}

// ---- Around them

// How inputs become one tensor, and logits [models, n, ..., classes].
struct Architecture {
  bool by_channels = false;
  std::function<at::Tensor(const Stacked& of, const at::Tensor& inputs)> run{};
};

absl::StatusOr<Architecture> ArchitectureOf(const ModelOptions& options) {
  if (options.precision != Precision::kFloat32) {
    return data::AtField("model.precision", absl::InvalidArgumentError(
                                                "found bfloat16, fused jobs compute in float32"));
  }
  if (options.builtin == "cifar-cnn") return Architecture{.by_channels = true, .run = RunCifarCnn};
  if (options.builtin == "bytes-lm") {
    const BytesLmSizes defaults;
    const BytesLmShape shape{.heads = options.heads ? *options.heads : defaults.heads,
                             .layers = options.layers ? *options.layers : defaults.layers};
    return Architecture{.run = [shape](const Stacked& of, const at::Tensor& tokens) {
      return RunBytesLm(of, shape, tokens);
    }};
  }
  return data::AtField("model.builtin",
                       absl::InvalidArgumentError(
                           "\"" + options.builtin +
                           "\" is not fused; allowed are bytes-lm and cifar-cnn, which keep no "
                           "statistics of their batches"));
}

at::Tensor TensorOf(std::span<const std::byte> bytes, const data::TensorSpec& spec,
                    std::uint64_t count) {
  std::vector<std::int64_t> shape = {static_cast<std::int64_t>(count)};
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  return torch::from_blob(const_cast<std::byte*>(bytes.data()), shape,
                          at::TensorOptions().dtype(ToTorch(spec.type)));
}

class TorchFusedModel final : public FusedModel {
 public:
  // The models as they would be by themselves; they go once their weights were copied.
  TorchFusedModel(std::vector<std::unique_ptr<Model>> solo, Architecture architecture,
                  TorchDevice device)
      : solo_(std::move(solo)),
        models_(solo_.size()),
        segments_(solo_.front()->segments()),
        context_(solo_.front()->context()),
        architecture_(std::move(architecture)),
        device_(std::move(device)) {}

  std::size_t models() const override { return models_; }
  const cuda::SegmentTable& segments() const override { return segments_; }
  std::optional<std::uint32_t> context() const override { return context_; }

  void Bind(Rows parameters) noexcept override {
    TACTUS_CHECK(parameters.values.size() >= models_ * parameters.stride && !solo_.empty());
    parameters_ = parameters;
    double unused = 0;
    for (std::size_t i = 0; i < solo_.size(); ++i) {
      solo_[i]->Bind(parameters.Row(i).first(cuda::FlatLength(segments_)), std::span(&unused, 1));
    }
    solo_.clear();
  }

  absl::Status ForwardBackward(std::span<const std::size_t> models,
                               std::span<const Examples> examples, Rows gradients,
                               std::span<double> losses) override;
  absl::StatusOr<std::vector<EvaluationSums>> Evaluate(std::span<const std::size_t> models,
                                                       std::span<const Examples> examples) override;

 private:
  // A segment of all models, [models, ...], over the rows' memory.
  at::Tensor ViewOf(Rows rows, const cuda::Segment& segment) const {
    std::vector<std::int64_t> sizes = {static_cast<std::int64_t>(models_)};
    sizes.insert(sizes.end(), segment.shape.begin(), segment.shape.end());
    std::vector<std::int64_t> strides(sizes.size(), 1);
    for (std::size_t i = sizes.size() - 1; i > 1; --i) strides[i - 1] = strides[i] * sizes[i];
    strides[0] = static_cast<std::int64_t>(rows.stride);
    return torch::from_blob(rows.values.data() + segment.offset, sizes, strides,
                            at::TensorOptions().dtype(at::kFloat).device(device_.device()));
  }

  at::Tensor PlacesOf(std::span<const std::size_t> models) const {
    std::vector<std::int64_t> places(models.begin(), models.end());
    return torch::tensor(places, at::TensorOptions().dtype(at::kLong)).to(device_.device());
  }

  Stacked StackedOf(std::span<const std::size_t> models, bool for_gradients) const {
    const bool all = models.size() == models_;
    const at::Tensor places = all ? at::Tensor() : PlacesOf(models);
    Stacked stacked;
    for (const cuda::Segment& segment : segments_) {
      at::Tensor view = ViewOf(parameters_, segment);
      if (!all) view = view.index_select(0, places);
      stacked[segment.name] = for_gradients ? view.detach().requires_grad_(true) : view;
    }
    return stacked;
  }

  static bool Shared(std::span<const Examples> examples) {
    return std::ranges::all_of(examples, [&](const Examples& one) {
      return one.inputs.data() == examples.front().inputs.data();
    });
  }

  at::Tensor InputsOf(std::span<const Examples> examples) const {
    std::vector<at::Tensor> inputs;
    const bool shared = Shared(examples);
    for (const Examples& one : shared ? examples.first(1) : examples) {
      inputs.push_back(device_.Bring(TensorOf(one.inputs, one.input_specs.front(), one.count)));
    }
    const auto models = static_cast<std::int64_t>(examples.size());
    if (architecture_.by_channels) return shared ? inputs.front() : at::cat(inputs, 1);
    if (!shared) return at::stack(inputs);
    return inputs.front().unsqueeze(0).expand({models, -1, -1});
  }

  at::Tensor TargetsOf(std::span<const Examples> examples) const {
    std::vector<at::Tensor> targets;
    for (const Examples& one : examples) {
      targets.push_back(
          device_.Bring(TensorOf(one.targets, one.target_spec, one.count)).to(at::kLong));
    }
    return at::stack(targets);
  }

  // By model, the sum over its samples of the mean over a sample's positions.
  static at::Tensor LossesOf(const at::Tensor& logits, const at::Tensor& targets) {
    const at::Tensor each = at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}),
                                                   targets.reshape({-1}), {}, at::Reduction::None);
    return each.reshape({targets.size(0), targets.size(1), -1}).mean(2).sum(1);
  }

  std::vector<std::unique_ptr<Model>> solo_;  // until Bind
  const std::size_t models_;
  const cuda::SegmentTable segments_;
  const std::optional<std::uint32_t> context_;
  const Architecture architecture_;
  const TorchDevice device_;
  Rows parameters_;
};

absl::Status TorchFusedModel::ForwardBackward(std::span<const std::size_t> models,
                                              std::span<const Examples> examples, Rows gradients,
                                              std::span<double> losses) {
  TACTUS_CHECK(!models.empty() && models.size() == examples.size() && parameters_.stride > 0);
  const OnStream on_stream(device_);
  try {
    const Stacked stacked = StackedOf(models, true);
    const at::Tensor logits = architecture_.run(stacked, InputsOf(examples));
    const at::Tensor by_model = LossesOf(logits, TargetsOf(examples));
    // The sum, not the mean: each model's gradients are its own loss's.
    by_model.sum().backward();
    const at::NoGradGuard no_grad;
    const at::Tensor places = PlacesOf(models);
    for (const cuda::Segment& segment : segments_) {
      ViewOf(gradients, segment).index_add_(0, places, stacked.at(segment.name).grad());
    }
    const at::Tensor found = by_model.detach().to(at::kDouble).cpu().contiguous();
    for (std::size_t i = 0; i < models.size(); ++i) {
      losses[models[i]] += found.data_ptr<double>()[i];
    }
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
}

absl::StatusOr<std::vector<EvaluationSums>> TorchFusedModel::Evaluate(
    std::span<const std::size_t> models, std::span<const Examples> examples) {
  const OnStream on_stream(device_);
  const at::NoGradGuard no_grad;
  try {
    const at::Tensor logits = architecture_.run(StackedOf(models, false), InputsOf(examples));
    const at::Tensor targets = TargetsOf(examples);
    const at::Tensor losses = LossesOf(logits, targets).to(at::kDouble).cpu().contiguous();
    const at::Tensor right = logits.argmax(-1)
                                 .eq(targets)
                                 .to(at::kDouble)
                                 .reshape({targets.size(0), targets.size(1), -1})
                                 .mean(2)
                                 .sum(1)
                                 .cpu()
                                 .contiguous();
    std::vector<EvaluationSums> sums;
    for (std::size_t i = 0; i < models.size(); ++i) {
      sums.push_back({.loss_sum = losses.data_ptr<double>()[i],
                      .correct_sum = right.data_ptr<double>()[i],
                      .has_accuracy = true,
                      .samples = examples[i].count});
    }
    return sums;
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<FusedModel>> FusedModel::Open(const ModelOptions& options,
                                                             std::span<const std::uint64_t> seeds) {
  TACTUS_CHECK(!seeds.empty());
  absl::StatusOr<Architecture> architecture = ArchitectureOf(options);
  if (!architecture.ok()) return architecture.status();
  std::vector<std::unique_ptr<Model>> solo;
  for (const std::uint64_t seed : seeds) {
    ModelOptions one = options;
    one.seed = seed;
    absl::StatusOr<std::unique_ptr<Model>> opened = Model::Open(one);
    if (!opened.ok()) return opened.status();
    solo.push_back(*std::move(opened));
  }
  absl::StatusOr<TorchDevice> device = TorchDevice::Open(options.device, options.stream);
  if (!device.ok()) return device.status();
  return std::make_unique<TorchFusedModel>(std::move(solo), *std::move(architecture),
                                           *std::move(device));
}

}  // namespace tactus::model
