#include "agent/engine/optimizer.h"

namespace tactus::engine {

Optimizer::Optimizer(const OptimizerOptions& options, cuda::Device& device, std::size_t length)
    : options_(options), device_(device) {
  if (const auto* sgd = std::get_if<SgdOptions>(&options_)) {
    if (sgd->momentum > 0) momentum_ = device_.Allocate(length);
    return;
  }
  momentum_ = device_.Allocate(length);
  second_ = device_.Allocate(length);
}

void Optimizer::Step(std::span<const float> gradients, double gradient_scale,
                     std::span<float> parameters) {
  ++steps_;
  if (const auto* sgd = std::get_if<SgdOptions>(&options_)) {
    device_.Sgd({.learning_rate = static_cast<float>(sgd->learning_rate),
                 .momentum = static_cast<float>(sgd->momentum),
                 .weight_decay = static_cast<float>(sgd->weight_decay),
                 .gradient_scale = static_cast<float>(gradient_scale),
                 .nesterov = sgd->nesterov},
                gradients, parameters, momentum_.span());
    return;
  }
  const AdamOptions& adam = std::get<AdamOptions>(options_);
  device_.Adam({.learning_rate = adam.learning_rate,
                .beta1 = adam.beta1,
                .beta2 = adam.beta2,
                .epsilon = static_cast<float>(adam.epsilon),
                .weight_decay = adam.weight_decay,
                .decoupled = adam.decoupled,
                .gradient_scale = static_cast<float>(gradient_scale),
                .step = steps_},
               gradients, parameters, momentum_.span(), second_.span());
}

}  // namespace tactus::engine
