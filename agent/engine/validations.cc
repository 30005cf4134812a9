#include "agent/engine/validations.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tactus::engine {

// By multiples, so that a job that went back to a checkpoint validates where it would have.
bool Validations::DueByCount(const ValidationMark& mark) const {
  if (!on()) return false;
  if (options_.rounds)
    return mark.rounds / *options_.rounds > state_.last.rounds / *options_.rounds;
  if (options_.epochs)
    return mark.epochs / *options_.epochs > state_.last.epochs / *options_.epochs;
  return false;
}

bool Validations::DueByTime(const ValidationMark& mark) const {
  if (!on() || options_.rounds || options_.epochs) return false;
  const Duration since = mark.trained - state_.last.trained;
  if (options_.every) return since >= *options_.every;
  if (since < kLeastBetween) return false;
  // With the next one, which takes as long as the last.
  const double cost = ToSeconds(state_.total_cost + state_.cost);
  if (state_.count > 0) return cost <= kShare * ToSeconds(mark.trained);
  // Nobody knows yet how long it takes: by samples, which cost time both ways.
  return kForwardShare * static_cast<double>(options_.samples) <=
         kShare * static_cast<double>(mark.samples);
}

bool Validations::IsBest(double loss) const {
  return std::isfinite(loss) && (state_.best_samples == 0 || loss < state_.best_loss);
}

void Validations::Take(const Validation& validation, const ValidationMark& mark, Duration cost) {
  const bool best = IsBest(validation.loss);
  ++state_.count;
  state_.last = mark;
  state_.cost = cost;
  state_.total_cost += cost;
  state_.samples = options_.samples;
  state_.loss = validation.loss;
  if (validation.samples > 0) state_.since_best = best ? 0 : state_.since_best + 1;
  if (!best) return;
  state_.best_loss = validation.loss;
  state_.best_accuracy = validation.accuracy;
  state_.best_samples = validation.samples;
  state_.best_rounds = mark.rounds;
}

// No loss is reached by one that is no number.
void Validations::Restore(const ValidationState& state) {
  state_ = state;
  if (!on() || state_.count == 0 || state_.samples == options_.samples) return;
  ForgetBest(state_);
  state_.loss = std::numeric_limits<double>::quiet_NaN();
}

void ForgetBest(ValidationState& state) {
  state.best_samples = 0;
  state.since_best = 0;
}

}  // namespace tactus::engine
