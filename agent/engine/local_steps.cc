#include "agent/engine/local_steps.h"

namespace tactus::engine {

void LocalSteps::Begin(std::span<const float> parameters) {
  if (start_.size() != parameters.size()) start_ = device_.Allocate(parameters.size());
  device_.Copy(parameters, start_.span());
}

void LocalSteps::TakeDelta(std::span<const float> parameters, std::span<float> delta) {
  device_.Copy(parameters, delta);
  device_.Axpy(-1, start_.span(), delta);
}

void LocalSteps::Apply(std::span<const float> delta, const BlockStep& step,
                       std::span<float> parameters) {
  device_.Copy(start_.span(), parameters);
  // At a rate of zero nothing moved, and the momentum has no unit to be told in.
  if (step.momentum == 0 || step.learning_rate == 0) {
    device_.Axpy(static_cast<float>(step.scale), delta, parameters);
    return;
  }
  if (momentum_.size() != delta.size()) momentum_ = device_.Allocate(delta.size());
  device_.Scale(static_cast<float>(step.momentum), momentum_.span());
  device_.Axpy(static_cast<float>(-step.scale / step.learning_rate), delta, momentum_.span());
  device_.Axpy(static_cast<float>(-step.learning_rate), momentum_.span(), parameters);
}

void LocalSteps::Restore(std::span<float> parameters) { device_.Copy(start_.span(), parameters); }

void LocalSteps::RestoreMomentum(std::span<const float> momentum) {
  momentum_ = device_.Allocate(momentum.size());
  device_.Copy(momentum, momentum_.span());
}

}  // namespace tactus::engine
