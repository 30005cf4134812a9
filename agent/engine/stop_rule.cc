#include "agent/engine/stop_rule.h"

#include <array>
#include <cstdio>

namespace tactus::engine {

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
  return {};
}

}  // namespace tactus::engine
