#include "agent/engine/local_steps.h"

#include "base/check.h"

namespace tactus::engine {

LocalSteps::LocalSteps(cuda::Device& device)
    : device_(device),
      gate_(device.AllocateSums(cuda::kGateLength)),
      loss_(device.AllocateSums(1)),
      first_loss_(device.AllocateSums(1)) {}

void LocalSteps::Begin(std::span<const float> parameters) {
  if (start_.size() != parameters.size()) start_ = device_.Allocate(parameters.size());
  device_.Copy(parameters, start_.span());
  for (const std::span<double> sums : {gate(), loss(), first_loss()}) device_.Clear(sums);
}

void LocalSteps::TakeDelta(std::span<const float> parameters, std::span<float> delta) {
  device_.ParameterDelta(parameters, start_.span(), delta);
}

void LocalSteps::Apply(std::span<const float> delta, const cuda::BlockMomentumStep& step,
                       std::span<float> parameters, double share) {
  const bool momentum = step.momentum != 0 && step.learning_rate != 0;
  if (momentum && momentum_.size() != delta.size()) momentum_ = device_.Allocate(delta.size());
  if (momentum && share < 1) return ApplyShort(delta, step, parameters, share);
  device_.BlockMomentum(step, {.start = start_.span(),
                               .delta = delta,
                               .momentum = momentum ? momentum_.span() : std::span<float>(),
                               .parameters = parameters});
}

void LocalSteps::ApplyShort(std::span<const float> delta, const cuda::BlockMomentumStep& step,
                            std::span<float> parameters, double share) {
  TACTUS_CHECK(step.gate == nullptr && share > 0);
  const double rate = step.learning_rate;
  device_.Copy(start_.span(), parameters);
  device_.Axpy(static_cast<float>(step.scale), delta, parameters);
  device_.Axpy(static_cast<float>(-rate * share * step.momentum), momentum_.span(), parameters);
  device_.Scale(static_cast<float>(1 - share * (1 - step.momentum)), momentum_.span());
  device_.Axpy(static_cast<float>(-step.scale / rate), delta, momentum_.span());
}

void LocalSteps::Restore(std::span<float> parameters) { device_.Copy(start_.span(), parameters); }

void LocalSteps::ChangePlaces(std::span<float> parameters, std::span<float> scratch) {
  device_.Copy(parameters, scratch);
  device_.Copy(start_.span(), parameters);
  device_.Copy(scratch, start_.span());
}

void LocalSteps::RestoreMomentum(std::span<const float> momentum) {
  if (momentum.empty() && momentum_.size() == 0) return;
  if (momentum.empty()) return device_.Fill(0, momentum_.span());
  if (momentum_.size() != momentum.size()) momentum_ = device_.Allocate(momentum.size());
  device_.Copy(momentum, momentum_.span());
}

}  // namespace tactus::engine
