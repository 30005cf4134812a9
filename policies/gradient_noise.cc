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

UpdateFacts NoiseFacts(const Report& report, const Plan& plan, std::uint32_t steps) {
  const bool periodic = plan.synchronization == Synchronization::kPeriodic;
  const double length = periodic ? report.learning_rate * steps : 1;
  const bool mean = plan.aggregation == Aggregation::kAverage && length > 0;
  const double scale = mean ? 1 / (length * length) : 0;
  return {.samples = static_cast<double>(report.samples_global),
          .contributors = mean ? report.contributors : 0,
          .samples_gradient_norm2 = scale * report.samples_gradient_norm2,
          .gradient_norm2 = scale * report.gradient_norm2_global};
}

double StatisticalEfficiency(const Efficiency& of) {
  TACTUS_CHECK(of.batch > 0 && of.base_batch > 0 && of.noise_samples >= 0);
  return (of.noise_samples + of.base_batch) / (of.noise_samples + of.batch);
}

}  // namespace tactus::policies
