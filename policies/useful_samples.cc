#include "policies/useful_samples.h"

#include <algorithm>
#include <cmath>

#include "policies/gradient_noise.h"

namespace tactus::policies {
namespace {

double RateMultiplier(LearningRateRule rule, double scale, double gain) {
  switch (rule) {
    case LearningRateRule::kConstant:
      return 1;
    case LearningRateRule::kLinear:
      return scale;
    case LearningRateRule::kSqrt:
      return std::sqrt(scale);
    case LearningRateRule::kAdascale:
      return gain;
  }
  return 1;
}

double BestGain(double batch, const BatchWorth& worth) {
  return batch / worth.base_batch *
         StatisticalEfficiency(
             {.batch = batch, .base_batch = worth.base_batch, .noise_samples = *worth.noise_scale});
}

}  // namespace

double GainOf(double batch, const BatchWorth& worth) {
  const double best = worth.noise_scale ? BestGain(batch, worth) : 1;
  return RateMultiplier(worth.rule, batch / worth.base_batch, best);
}

double UsefulSamples(double batch, const BatchWorth& worth) {
  const double scale = batch / worth.base_batch;
  const double least = std::min(scale, 1.0);
  if (!worth.noise_scale) return worth.base_batch * least;
  const double gain = BestGain(batch, worth);
  double multiplier = RateMultiplier(worth.rule, scale, gain);
  if (worth.rule == LearningRateRule::kSqrt) multiplier = std::min(multiplier, gain);
  const double progress = multiplier * (2 - multiplier / gain);
  return worth.base_batch * std::clamp(progress, kWorthMin * least, std::max(scale, least));
}

}  // namespace tactus::policies
