#include "agent/engine/optimizer.h"

namespace tactus::engine {
namespace {

const double* GateOf(const StepScale& scale) {
  return scale.gate.empty() ? nullptr : scale.gate.data();
}

std::optional<policies::WindowMomentum> MomentumOf(const SgdOptions& sgd, bool kept) {
  return policies::WindowMomentum{.momentum = sgd.momentum, .nesterov = sgd.nesterov, .kept = kept};
}

// Their first moment is an average, and is never forgotten.
std::optional<policies::WindowMomentum> MomentumOf(const auto& moments, bool) {
  return policies::WindowMomentum{.momentum = moments.beta1, .weight = 1 - moments.beta1};
}

// The sign of a sum is as long whatever is in it.
std::optional<policies::WindowMomentum> MomentumOf(const LionOptions&, bool) { return {}; }

}  // namespace

std::size_t StateBuffers(const OptimizerOptions& options) {
  return std::visit([](const auto& one) { return one.buffers(); }, options);
}

std::string_view NameOf(const OptimizerOptions& options) {
  return std::visit([](const auto& one) { return one.name(); }, options);
}

double BaseLearningRate(const OptimizerOptions& options) {
  return std::visit([](const auto& one) { return one.learning_rate; }, options);
}

std::optional<double> BendingDecay(const OptimizerOptions& options) {
  if (std::holds_alternative<SgdOptions>(options)) return std::nullopt;
  const auto* const adam = std::get_if<AdamOptions>(&options);
  return adam != nullptr ? adam->beta2 : 0;
}

std::optional<policies::WindowMomentum> WindowMomentumOf(const OptimizerOptions& options,
                                                         bool kept) {
  return std::visit([&](const auto& one) { return MomentumOf(one, kept); }, options);
}

Optimizer::Optimizer(const OptimizerOptions& options, cuda::Device& device,
                     const cuda::SegmentTable& segments)
    : options_(options), segments_(segments), device_(device) {
  const std::size_t length = cuda::FlatLength(segments_);
  const std::size_t buffers = StateBuffers(options_);
  if (buffers >= 1) momentum_ = device_.Allocate(length);
  if (buffers >= 2) second_ = device_.Allocate(length);
}

void Optimizer::Step(std::span<const float> gradients, StepScale scale,
                     std::span<float> parameters) {
  ++steps_;
  std::visit([&](const auto& options) { StepBy(options, gradients, scale, parameters); }, options_);
}

void Optimizer::MoveAhead(double learning_rate, std::span<float> parameters) {
  const double known = std::visit([](const auto& options) { return options.known(); }, options_);
  if (known == 0) return;
  device_.Axpy(static_cast<float>(-learning_rate * known), momentum_.span(), parameters);
}

void Optimizer::ResetMomentum() {
  const bool counts =
      std::visit([](const auto& options) { return options.kCountsSteps; }, options_);
  // A first moment at zero would be corrected as one of many steps.
  if (!counts) device_.Fill(0, momentum_.span());
}

bool Optimizer::linear() const {
  return std::visit([](const auto& options) { return options.linear(); }, options_);
}

std::vector<std::span<float>> Optimizer::State() {
  std::vector<std::span<float>> state;
  for (cuda::Buffer* buffer : {&momentum_, &second_}) {
    if (buffer->size() > 0) state.push_back(buffer->span());
  }
  return state;
}

void Optimizer::StepBy(const SgdOptions& sgd, std::span<const float> gradients, StepScale scale,
                       std::span<float> parameters) {
  device_.Sgd({.learning_rate = static_cast<float>(scale.learning_rate),
               .momentum = static_cast<float>(sgd.momentum),
               .weight_decay = static_cast<float>(sgd.weight_decay),
               .gradient_scale = static_cast<float>(scale.gradient),
               .nesterov = sgd.nesterov,
               .gate = GateOf(scale)},
              gradients, parameters, momentum_.span());
}

void Optimizer::StepBy(const AdamOptions& adam, std::span<const float> gradients, StepScale scale,
                       std::span<float> parameters) {
  device_.Adam({.learning_rate = scale.learning_rate,
                .beta1 = adam.beta1,
                .beta2 = adam.beta2,
                .epsilon = static_cast<float>(adam.epsilon),
                .weight_decay = adam.weight_decay,
                .decoupled = adam.decoupled,
                .gradient_scale = static_cast<float>(scale.gradient),
                .step = steps_,
                .gate = GateOf(scale)},
               gradients, parameters, momentum_.span(), second_.span());
}

void Optimizer::StepBy(const LambOptions& lamb, std::span<const float> gradients, StepScale scale,
                       std::span<float> parameters) {
  device_.Lamb({.learning_rate = scale.learning_rate,
                .beta1 = lamb.beta1,
                .beta2 = lamb.beta2,
                .epsilon = static_cast<float>(lamb.epsilon),
                .weight_decay = lamb.weight_decay,
                .ratio_min = lamb.ratio_min,
                .ratio_max = lamb.ratio_max,
                .gradient_scale = static_cast<float>(scale.gradient),
                .step = steps_,
                .gate = GateOf(scale)},
               segments_,
               {.gradients = gradients,
                .parameters = parameters,
                .first_moment = momentum_.span(),
                .second_moment = second_.span()});
}

void Optimizer::StepBy(const LionOptions& lion, std::span<const float> gradients, StepScale scale,
                       std::span<float> parameters) {
  device_.Lion({.learning_rate = scale.learning_rate,
                .beta1 = lion.beta1,
                .beta2 = lion.beta2,
                .weight_decay = lion.weight_decay,
                .gradient_scale = static_cast<float>(scale.gradient),
                .gate = GateOf(scale)},
               gradients, parameters, momentum_.span());
}

}  // namespace tactus::engine
