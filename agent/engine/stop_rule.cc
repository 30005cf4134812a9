#include "agent/engine/stop_rule.h"

#include <array>
#include <cstdio>

namespace tactus::engine {
namespace {

std::string Shown(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

std::string ReasonOf(const StopOptions& options, const ValidationState& validation) {
  if (validation.count == 0) return {};
  if (options.validation_loss && validation.loss <= *options.validation_loss) {
    return "validation_loss " + Shown(validation.loss) + " reached " +
           Shown(*options.validation_loss);
  }
  if (!options.patience || validation.since_best < *options.patience) return {};
  const std::string reason = "patience: " + std::to_string(validation.since_best) +
                             (validation.since_best == 1 ? " validation" : " validations") +
                             " in a row without a new best";
  if (validation.best_samples == 0) return reason;
  return reason + "; " + Shown(validation.best_loss) + " after " +
         std::to_string(validation.best_rounds) + " rounds is the best";
}

}  // namespace

std::string ReasonToStop(const StopOptions& options, const StopFacts& facts) {
  if (options.train_loss && facts.losses->full() && facts.losses->Mean() <= *options.train_loss) {
    return "train_loss " + Shown(facts.losses->Mean()) + " reached " + Shown(*options.train_loss);
  }
  if (options.epochs && facts.epochs >= *options.epochs) {
    return std::to_string(facts.epochs) + (facts.epochs == 1 ? " epoch" : " epochs") + " completed";
  }
  if (options.rounds && facts.rounds >= *options.rounds) {
    return std::to_string(facts.rounds) + " rounds completed";
  }
  if (options.steps && facts.steps >= *options.steps) {
    return Shown(*options.steps) + " steps completed";
  }
  return ReasonOf(options, facts.validation);
}

}  // namespace tactus::engine
