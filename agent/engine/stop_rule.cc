#include "agent/engine/stop_rule.h"

#include <array>
#include <cstdio>

namespace tactus::engine {
namespace {

std::string ReasonOf(const StopOptions& options, const ValidationState& validation) {
  std::array<char, 160> text{};
  if (validation.count == 0) return {};
  if (options.validation_loss && validation.loss <= *options.validation_loss) {
    std::snprintf(text.data(), text.size(), "validation_loss %.6g reached %.6g", validation.loss,
                  *options.validation_loss);
  } else if (options.patience && validation.since_best >= *options.patience) {
    const bool any = validation.best_samples > 0;
    std::snprintf(text.data(), text.size(), "patience: %u %s in a row without a new best",
                  validation.since_best, validation.since_best == 1 ? "validation" : "validations");
    if (!any) return text.data();
    const std::string so_far = text.data();
    std::snprintf(text.data(), text.size(), "%s; %.6g after %llu rounds is the best",
                  so_far.c_str(), validation.best_loss,
                  static_cast<unsigned long long>(validation.best_rounds));
  }
  return text.data();
}

}  // namespace

std::string ReasonToStop(const StopOptions& options, const StopFacts& facts) {
  if (options.train_loss && facts.losses->full() && facts.losses->Mean() <= *options.train_loss) {
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "train_loss %.6g reached %.6g", facts.losses->Mean(),
                  *options.train_loss);
    return text.data();
  }
  if (options.epochs && facts.epochs >= *options.epochs) {
    return std::to_string(facts.epochs) + (facts.epochs == 1 ? " epoch" : " epochs") + " completed";
  }
  if (options.rounds && facts.rounds >= *options.rounds) {
    return std::to_string(facts.rounds) + " rounds completed";
  }
  if (options.steps && facts.steps >= *options.steps) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.6g steps completed", *options.steps);
    return text.data();
  }
  return ReasonOf(options, facts.validation);
}

}  // namespace tactus::engine
