#include "policies/learning_rate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tactus::policies {
namespace {

// A window is many steps: five of them tell as much as is worth remembering.
constexpr double kWindowTheta = 0.8;

// cos(pi u) = -sin(x), x = pi (u - 1/2), for u in [0, 1], by the Taylor series of the sine to x^21:
// the rest is below (pi/2)^23 / 23! = 2e-18.
double CosineOfTurn(double u) {
  const double x = std::numbers::pi * (u - 0.5);
  double series = 1;
  for (int k = 20; k >= 2; k -= 2) series = 1 - x * x / (k * (k + 1)) * series;
  return -x * series;
}

double Shape(const Schedule& schedule, double step) {
  const double warmup = schedule.warmup_steps;
  switch (schedule.shape) {
    case Schedule::Shape::kConstant:
      return schedule.base;
    case Schedule::Shape::kStep: {
      double rate = schedule.base;
      for (const std::uint64_t boundary : schedule.boundaries) {
        if (static_cast<double>(boundary) <= step) rate *= schedule.factor;
      }
      return rate;
    }
    case Schedule::Shape::kCosine: {
      const double steps = static_cast<double>(schedule.steps);
      if (step >= std::max(steps, warmup)) return schedule.final_rate;
      if (step <= warmup) return schedule.base;
      const double cosine = CosineOfTurn((step - warmup) / (steps - warmup));
      return schedule.final_rate + (schedule.base - schedule.final_rate) * (1 + cosine) / 2;
    }
  }
  TACTUS_CHECK(false);
}

}  // namespace

double ScheduledRate(const Schedule& schedule, double progress) {
  TACTUS_CHECK(progress >= 0);
  const double step = std::floor(progress);
  const double ramp = std::min(1.0, (step + 1) / (schedule.warmup_steps + 1.0));
  return ramp * Shape(schedule, step);
}

std::optional<std::uint64_t> StepOfFall(const Schedule& schedule, double fraction) {
  const double low = fraction * schedule.base;
  const auto fallen = [&](std::uint64_t step) {
    return ScheduledRate(schedule, static_cast<double>(step)) <= low;
  };
  // Behind the last step of its shape the rate stays as it is.
  std::uint64_t risen = schedule.warmup_steps;
  std::uint64_t last = std::max(risen, schedule.steps);
  for (const std::uint64_t boundary : schedule.boundaries) last = std::max(last, boundary);
  if (!fallen(last)) return std::nullopt;
  while (risen < last) {
    const std::uint64_t middle = risen + (last - risen) / 2;
    if (fallen(middle)) {
      last = middle;
    } else {
      risen = middle + 1;
    }
  }
  return last;
}

LearningRate::LearningRate(const LearningRateOptions& options)
    : options_(options),
      adascale_({.base_batch = static_cast<double>(options.base_batch)}),
      windows_({.base_batch = static_cast<double>(options.base_batch), .theta = kWindowTheta}) {}

LearningRate::Rate LearningRate::Next(LearningRateRule rule, double samples) const {
  TACTUS_CHECK(samples > 0);
  const double scale = samples / options_.base_batch;
  Rate next;
  switch (rule) {
    case LearningRateRule::kConstant:
      next.gain = 1;
      break;
    case LearningRateRule::kLinear:
      next.gain = scale;
      break;
    case LearningRateRule::kSqrt:
      next.gain = std::sqrt(scale);
      break;
    case LearningRateRule::kAdascale:
      next.gain = adascale_.GainFor(samples);
      break;
  }
  next.rate = next.gain * ScheduledRate(options_.schedule, progress_);
  return Bent(rule, next);
}

// So many steps were divided by gradients whose square is so many times that of all samples.
void LearningRate::Bend(double length2, std::uint32_t steps) {
  if (!options_.bending_decay) return;
  const double decay = *options_.bending_decay;
  for (std::uint32_t step = 0; step < steps; ++step) {
    bending_ = decay * bending_ + (1 - decay) * length2;
    bending_weight_ = decay * bending_weight_ + (1 - decay);
  }
}

LearningRate::Rate LearningRate::Bent(LearningRateRule rule, Rate rate) const {
  if (rule != LearningRateRule::kSqrt || !(bending_weight_ > 0)) return rate;
  const double more = std::sqrt(bending_ / bending_weight_);
  return {.rate = rate.rate * more, .gain = rate.gain * more};
}

LearningRate::Rate LearningRate::NextOfWindow(LearningRateRule rule, const LocalStep& step) const {
  TACTUS_CHECK(step.own > 0 && step.own <= step.samples && step.contributors >= 1);
  if (rule == LearningRateRule::kAdascale && step.contributors < 2) {
    return Next(LearningRateRule::kConstant, step.samples);
  }
  const Rate next = Next(rule, step.samples);
  if (rule != LearningRateRule::kAdascale) return next;
  const double more = OfWindows().GainFor(step.samples) / next.gain;
  return {.rate = next.rate * more, .gain = next.gain * more};
}

void LearningRate::Applied(LearningRateRule rule, const UpdateFacts& facts) {
  if (!Usable(facts)) return;
  if (rule != LearningRateRule::kAdascale) {
    progress_ += facts.samples / options_.base_batch;
  } else {
    progress_ += facts.contributors >= 2 ? adascale_.GainFor(facts.samples) : 1.0;
  }
  adascale_.Fold(facts);
  Bend(1, 1);
}

void LearningRate::AppliedWindow(LearningRateRule rule, const Window& window,
                                 const UpdateFacts& facts) {
  if (!(window.samples > 0)) return;
  if (rule != LearningRateRule::kAdascale) {
    progress_ += window.samples / options_.base_batch;
  } else {
    const double gain = OfWindows().GainFor(window.samples / window.updates);
    progress_ += facts.contributors >= 2 ? window.updates * gain : window.updates;
  }
  windows_.Fold(facts);
  // phi drops out: r(B) / r(b) = (1 + phi / b) / (1 + phi / B).
  const LocalStep& step = window.step;
  Bend(windows_.GainFor(step.samples) / windows_.GainFor(step.own), window.updates);
}

void LearningRate::Restore(const State& state) {
  // The quotient first: with an equal base batch it is 1, and the progress keeps its bits.
  progress_ = state.progress * (state.adascale.base_batch / options_.base_batch);
  adascale_.Restore(state.adascale);
  windows_.Restore(state.windows);
  bending_ = state.bending;
  bending_weight_ = state.bending_weight;
}

void LearningRate::ForgetNoise() {
  adascale_.Restore({.base_batch = adascale_.state().base_batch});
  windows_.Restore({.base_batch = windows_.state().base_batch});
}

}  // namespace tactus::policies
