#include "policies/gradient_noise.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace tactus::policies {

void GradientNoise::Observe(const UpdateFacts& facts) {
  if (const auto moments = EstimateMoments(facts, 1)) average_.Fold(*moments, kWeight);
}

std::optional<double> GradientNoise::Samples() const {
  if (state().count < kUpdatesMin) return std::nullopt;
  // Chance may leave an average below 0. Over a mean of 0 phi is infinite, so kSamplesMax.
  const double variance = std::max(state().moments.sigma2, 0.0);
  const double mean = std::max(state().moments.mu2, 0.0);
  if (variance == 0 && mean == 0) return std::nullopt;
  return std::min(variance / mean, kSamplesMax);
}

UpdateFacts NoiseFacts(const Report& report) {
  return {.samples = report.gradient_samples,
          .contributors = report.gradient_samples > 0 ? report.contributors : 0,
          .samples_gradient_norm2 = report.samples_gradient_norm2,
          .gradient_norm2 = report.gradient_norm2_global};
}

void RoundNoise::Observe(const Report& report) {
  const bool window = report.local_samples_global > 0;
  GradientNoise& noise = window ? windows_ : steps_;
  if (window != window_) {
    if (rounds_ >= GradientNoise::kUpdatesMin) noise.Restore({});
    rounds_ = 0;
  }
  window_ = window;
  ++rounds_;
  noise.Observe(NoiseFacts(report));
}

std::optional<double> RoundNoise::Samples() const {
  const std::optional<double> steps = steps_.Samples();
  const std::optional<double> windows = windows_.Samples();
  return window_ ? (windows ? windows : steps) : (steps ? steps : windows);
}

double StatisticalEfficiency(const Efficiency& of) {
  TACTUS_CHECK(of.batch > 0 && of.base_batch > 0 && of.noise_samples >= 0);
  return (of.noise_samples + of.base_batch) / (of.noise_samples + of.batch);
}

}  // namespace tactus::policies
