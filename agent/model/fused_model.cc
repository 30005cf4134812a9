#include "agent/model/fused_model.h"

#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
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

// Requires: WhyNotFused(options) is empty.
Architecture ArchitectureOf(const ModelOptions& options) {
  if (options.builtin == "cifar-cnn") return Architecture{.by_channels = true, .run = RunCifarCnn};
  const BytesLmSizes defaults;
  const BytesLmShape shape{.heads = options.heads ? *options.heads : defaults.heads,
                           .layers = options.layers ? *options.layers : defaults.layers};
  return Architecture{.run = [shape](const Stacked& of, const at::Tensor& tokens) {
    return RunBytesLm(of, shape, tokens);
  }};
}

at::Tensor TensorOf(std::span<const std::byte> bytes, const data::TensorSpec& spec,
                    std::uint64_t count) {
  std::vector<std::int64_t> shape = {static_cast<std::int64_t>(count)};
  shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
  return torch::from_blob(const_cast<std::byte*>(bytes.data()), shape,
                          at::TensorOptions().dtype(ToTorch(spec.type)));
}

bool HaveSameInputs(std::span<const FusedPart> parts) {
  const std::span<const std::byte> first = parts.front().examples.inputs;
  return std::ranges::all_of(parts, [&](const FusedPart& part) {
    const std::span<const std::byte> inputs = part.examples.inputs;
    return inputs.data() == first.data() || std::ranges::equal(inputs, first);
  });
}

// [models, n]; not defined: no part has any.
at::Tensor WeightsOf(std::span<const FusedPart> parts) {
  const bool any = std::ranges::any_of(
      parts, [](const FusedPart& part) { return !part.examples.weights.empty(); });
  if (!any) return {};
  std::vector<at::Tensor> weights;
  for (const FusedPart& part : parts) {
    const auto count = static_cast<std::int64_t>(part.examples.count);
    const std::span<const float> own = part.examples.weights;
    TACTUS_CHECK(own.empty() || own.size() == part.examples.count);
    weights.push_back(own.empty() ? at::ones({count}, at::kFloat)
                                  : torch::from_blob(const_cast<float*>(own.data()), {count},
                                                     at::TensorOptions().dtype(at::kFloat)));
  }
  return at::stack(weights);
}

class TorchFusedModel final : public FusedModel {
 public:
  TorchFusedModel(const cuda::SegmentTable& segments, Architecture architecture, TorchDevice device)
      : segments_(segments), architecture_(std::move(architecture)), device_(std::move(device)) {}

  absl::StatusOr<std::vector<FusedSums>> ForwardBackward(std::span<const FusedPart> parts) override;

 private:
  // Gradients of all parts, by segment, [models, ...].
  struct Gradients {
    std::vector<at::Tensor> by_segment{};
  };

  // A segment of one model, over the caller's memory.
  at::Tensor ViewOf(const FusedPart& part, const cuda::Segment& segment) const {
    const std::vector<std::int64_t> sizes(segment.shape.begin(), segment.shape.end());
    const float* const values = part.parameters.data() + segment.offset;
    return torch::from_blob(const_cast<float*>(values), sizes,
                            at::TensorOptions().dtype(at::kFloat).device(device_.device()));
  }

  Stacked StackedOf(std::span<const FusedPart> parts) const {
    Stacked stacked;
    for (const cuda::Segment& segment : segments_) {
      std::vector<at::Tensor> views;
      for (const FusedPart& part : parts) views.push_back(ViewOf(part, segment));
      stacked[segment.name] = at::stack(views).requires_grad_(true);
    }
    return stacked;
  }

  at::Tensor InputsOf(std::span<const FusedPart> parts) const {
    const bool shared = HaveSameInputs(parts);
    std::vector<at::Tensor> inputs;
    for (const FusedPart& part : shared ? parts.first(1) : parts) {
      const Examples& one = part.examples;
      inputs.push_back(device_.Bring(TensorOf(one.inputs, one.input_specs.front(), one.count)));
    }
    const auto models = static_cast<std::int64_t>(parts.size());
    if (architecture_.by_channels) return shared ? inputs.front() : at::cat(inputs, 1);
    if (!shared) return at::stack(inputs);
    return inputs.front().unsqueeze(0).expand({models, -1, -1});
  }

  at::Tensor TargetsOf(std::span<const FusedPart> parts) const {
    std::vector<at::Tensor> targets;
    for (const FusedPart& part : parts) {
      const Examples& one = part.examples;
      targets.push_back(
          device_.Bring(TensorOf(one.targets, one.target_spec, one.count)).to(at::kLong));
    }
    return at::stack(targets);
  }

  // By model, the sum over its samples of the mean over a sample's positions, by its weight.
  at::Tensor LossesOf(const at::Tensor& logits, const at::Tensor& targets,
                      const at::Tensor& weights) const {
    const at::Tensor each = at::cross_entropy_loss(logits.reshape({-1, logits.size(-1)}),
                                                   targets.reshape({-1}), {}, at::Reduction::None);
    const at::Tensor samples = each.reshape({targets.size(0), targets.size(1), -1}).mean(2);
    return weights.defined() ? (samples * weights.to(device_.device())).sum(1) : samples.sum(1);
  }

  const cuda::SegmentTable segments_;
  const Architecture architecture_;
  const TorchDevice device_;
};

absl::StatusOr<std::vector<FusedSums>> TorchFusedModel::ForwardBackward(
    std::span<const FusedPart> parts) {
  TACTUS_CHECK(!parts.empty());
  for (const FusedPart& part : parts) {
    if (absl::Status s = CheckIndices(segments_, part.examples); !s.ok()) return s;
  }
  const OnStream on_stream(device_);
  try {
    const Stacked stacked = StackedOf(parts);
    const at::Tensor logits = architecture_.run(stacked, InputsOf(parts));
    const at::Tensor by_model = LossesOf(logits, TargetsOf(parts), WeightsOf(parts));
    // The sum, not the mean: each model's gradients are its own loss's.
    by_model.sum().backward();
    auto gradients = std::make_shared<Gradients>();
    for (const cuda::Segment& segment : segments_) {
      gradients->by_segment.push_back(stacked.at(segment.name).grad().contiguous());
    }
    // Waits, for all that was queued before as well.
    const at::Tensor losses = by_model.detach().to(at::kDouble).cpu().contiguous();
    std::vector<FusedSums> sums;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      FusedSums one{.loss = losses.data_ptr<double>()[i], .memory = gradients};
      for (std::size_t k = 0; k < segments_.size(); ++k) {
        one.gradients.push_back(gradients->by_segment[k].data_ptr<float>() +
                                i * segments_[k].length);
      }
      sums.push_back(std::move(one));
    }
    return sums;
  } catch (const std::exception& error) {
    return TorchError("model", error);
  }
}

// what: "the inputs"; of: what the model has, "classes".
absl::Status CheckBelow(const at::Tensor& indices, std::int64_t limit, const std::string& what,
                        const std::string& of) {
  if (indices.numel() == 0) return absl::OkStatus();
  const auto high = indices.max().item<std::int64_t>();
  const auto low = indices.min().item<std::int64_t>();
  if (low >= 0 && high < limit) return absl::OkStatus();
  const std::string found =
      low < 0 ? " go down to " + std::to_string(low) : " reach " + std::to_string(high);
  return data::AtField("data", absl::InvalidArgumentError(what + found + "; the model has " + of +
                                                          " 0 to " + std::to_string(limit - 1)));
}

// The first dimension of the tensor; 0: the model has none of that name.
std::int64_t RowsOf(const cuda::SegmentTable& segments, std::string_view name) {
  const auto found = std::ranges::find(segments, name, &cuda::Segment::name);
  return found == segments.end() ? 0 : static_cast<std::int64_t>(found->shape.front());
}

std::string TextOf(const std::optional<std::uint32_t>& size) {
  return size ? std::to_string(*size) : "-";
}

}  // namespace

std::string WhyNotFused(const ModelOptions& options) {
  if (options.builtin.empty()) {
    return "model.torchscript: only built-in models are computed together";
  }
  if (options.builtin != "cifar-cnn" && options.builtin != "bytes-lm") {
    return "model.builtin: \"" + options.builtin +
           "\" is not fused; allowed are bytes-lm and cifar-cnn, which keep no statistics of their "
           "batches";
  }
  if (options.precision != Precision::kFloat32) {
    return "model.precision: found bfloat16, fused jobs compute in float32";
  }
  if (options.loss != "cross_entropy") {
    return "model.loss: found \"" + options.loss + "\", fused jobs have cross_entropy";
  }
  if (options.recompute || options.mesh.kind != MeshKind::kNone) {
    return "model: computed again or split over devices, a fused model is neither";
  }
  return "";
}

absl::Status CheckIndices(const cuda::SegmentTable& segments, const Examples& examples) {
  const std::int64_t tokens = RowsOf(segments, "token.weight");
  if (tokens > 0) {
    const at::Tensor inputs =
        TensorOf(examples.inputs, examples.input_specs.front(), examples.count);
    if (absl::Status s = CheckBelow(inputs, tokens, "the inputs", "tokens"); !s.ok()) return s;
  }
  const std::int64_t classes = std::max(RowsOf(segments, "head.weight"),     // bytes-lm's
                                        RowsOf(segments, "output.weight"));  // cifar-cnn's
  const at::Tensor targets = TensorOf(examples.targets, examples.target_spec, examples.count);
  return CheckBelow(targets, classes, "the targets", "classes");
}

std::string FusedShapeOf(const ModelOptions& options) {
  std::string shape = options.builtin;
  for (const auto& size : {options.width, options.heads, options.layers, options.context,
                           options.classes, options.channels}) {
    shape += " " + TextOf(size);
  }
  return shape;
}

absl::StatusOr<std::unique_ptr<FusedModel>> FusedModel::Open(const ModelOptions& options,
                                                             const cuda::SegmentTable& segments) {
  const std::string reason = WhyNotFused(options);
  if (!reason.empty()) return absl::InvalidArgumentError(reason);
  absl::StatusOr<TorchDevice> device = TorchDevice::Open(options.device, options.stream);
  if (!device.ok()) return device.status();
  return std::make_unique<TorchFusedModel>(segments, ArchitectureOf(options), *std::move(device));
}

}  // namespace tactus::model
