#include "agent/engine/stop_rule.h"

#include <array>
#include <cstdio>

namespace tactus::engine {

void LossWindow::Add(double loss_sum, double samples, std::uint64_t steps) {
  rounds_.push_back({.loss_sum = loss_sum, .samples = samples, .steps = steps});
  steps_ += steps;
  while (steps_ - rounds_.front().steps >= kSteps) {
    steps_ -= rounds_.front().steps;
    rounds_.pop_front();
  }
}

double LossWindow::Mean() const {
  double loss_sum = 0;
  double samples = 0;
  for (const Entry& round : rounds_) {
    loss_sum += round.loss_sum;
    samples += round.samples;
  }
  return samples > 0 ? loss_sum / samples : 0;
}

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
