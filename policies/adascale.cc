#include "policies/adascale.h"

#include <algorithm>

#include "base/check.h"

namespace tactus::policies {
namespace {

constexpr double kScaleWithoutMemory = 1000;  // S from which theta is 0

double Weight(const AdascaleOptions& options, double scale) {
  return options.theta ? 1 - *options.theta : std::min(scale / kScaleWithoutMemory, 1.0);
}

// False for what is not a number.
bool IsNorm2(double value) { return value >= 0 && value <= kNorm2Max; }

}  // namespace

bool Usable(const UpdateFacts& facts) {
  return facts.samples > 0 && facts.samples <= kNorm2Max && IsNorm2(facts.gradient_norm2) &&
         IsNorm2(facts.samples_gradient_norm2);
}

std::optional<GradientMoments> EstimateMoments(const UpdateFacts& facts, double base_batch) {
  TACTUS_CHECK(base_batch > 0);
  if (!Usable(facts) || facts.contributors < 2) return std::nullopt;
  const double variance = (facts.samples_gradient_norm2 - facts.samples * facts.gradient_norm2) /
                          (facts.contributors - 1);
  return GradientMoments{.sigma2 = variance / base_batch,
                         .mu2 = facts.gradient_norm2 - variance / facts.samples};
}

GradientMoments Clipped(const GradientMoments& moments) {
  return {.sigma2 = std::max(moments.sigma2, kSigma2Min), .mu2 = std::max(moments.mu2, 0.0)};
}

double Gain(const GradientMoments& moments, double scale) {
  TACTUS_CHECK(moments.sigma2 > 0 && moments.mu2 >= 0 && scale > 0);
  const double gain = (moments.sigma2 + moments.mu2) / (moments.sigma2 / scale + moments.mu2);
  // By algebra it lies there already, up to rounding.
  return std::clamp(gain, std::min(1.0, scale), std::max(1.0, scale));
}

void MomentAverage::Fold(const GradientMoments& sample, double weight) {
  TACTUS_CHECK(weight > 0 && weight <= 1);
  ++state_.count;
  state_.weights += weight * (1 - state_.weights);
  const double share = averaging_ == Averaging::kDebiased
                           ? weight / state_.weights
                           : std::max(1.0 / static_cast<double>(state_.count), weight);
  state_.moments.sigma2 += share * (sample.sigma2 - state_.moments.sigma2);
  state_.moments.mu2 += share * (sample.mu2 - state_.moments.mu2);
}

Adascale::Adascale(const AdascaleOptions& options)
    : options_(options), average_(options.averaging) {
  TACTUS_CHECK(options.base_batch > 0);
  TACTUS_CHECK(!options.theta || (*options.theta >= 0 && *options.theta < 1));
}

double Adascale::GainFor(double samples) const {
  return estimated_ ? Gain(moments(), samples / options_.base_batch) : 1.0;
}

void Adascale::Fold(const UpdateFacts& facts) {
  if (!Usable(facts)) return;
  const std::optional<GradientMoments> moments = EstimateMoments(facts, options_.base_batch);
  if (!moments) return;
  estimated_ = true;
  average_.Fold(Clipped(*moments), Weight(options_, facts.samples / options_.base_batch));
}

Adascale::State Adascale::state() const {
  return {.base_batch = options_.base_batch, .average = average_.state(), .estimated = estimated_};
}

void Adascale::Restore(const State& state) {
  TACTUS_CHECK(state.base_batch > 0);
  MomentAverage::State average = state.average;
  // mu2 stays: the mean of a gradient does not depend on how many samples make a batch.
  average.moments.sigma2 *= state.base_batch / options_.base_batch;
  average_.Restore(average);
  estimated_ = state.estimated;
}

}  // namespace tactus::policies
