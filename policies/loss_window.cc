#include "policies/loss_window.h"

#include <algorithm>

namespace tactus::policies {
namespace {

bool IsWindow(const RoundLosses& round) {
  return round.local.samples > 0 && round.common.samples > 0;
}

}  // namespace

RoundLosses LossesOf(const Report& report) {
  const auto samples = static_cast<double>(report.samples_global);
  const double local = std::min(static_cast<double>(report.local_samples_global), samples);
  return {
      .common = {.sum = report.loss_mean_global * (samples - local), .samples = samples - local},
      .local = {.sum = report.local_loss_mean_global * local, .samples = local},
      .steps = std::max(report.steps, 1U)};
}

void LossWindow::Add(const RoundLosses& round) {
  rounds_.push_back(round);
  if (rounds_.size() > kRounds) rounds_.pop_front();
}

std::size_t LossWindow::Latest() const {
  std::uint64_t steps = 0;
  std::size_t from = rounds_.size();
  while (from > 0 && steps < kSteps) steps += rounds_[--from].steps;
  return from;
}

bool LossWindow::full() const {
  std::uint64_t steps = 0;
  for (const RoundLosses& round : rounds_) steps += round.steps;
  if (steps < kSteps) return false;
  const auto latest = rounds_.begin() + static_cast<std::ptrdiff_t>(Latest());
  if (std::none_of(latest, rounds_.end(), IsWindow)) return true;
  return static_cast<std::size_t>(std::ranges::count_if(rounds_, IsWindow)) >= kWindowsMin;
}

double LossWindow::DriftOfAStep() const {
  double drift = 0;
  double steps = 0;
  for (const RoundLosses& round : rounds_) {
    if (!IsWindow(round)) continue;
    drift += round.local.Mean() - round.common.Mean();
    steps += static_cast<double>(round.steps);
  }
  return steps > 0 ? drift / steps : 0;
}

double LossWindow::Mean() const {
  const double drift = DriftOfAStep();
  LossSum all;
  for (std::size_t k = Latest(); k < rounds_.size(); ++k) {
    const RoundLosses& round = rounds_[k];
    const double added = drift * static_cast<double>(round.steps) * round.local.samples;
    all.sum += round.common.sum + round.local.sum - added;
    all.samples += round.common.samples + round.local.samples;
  }
  return all.Mean();
}

}  // namespace tactus::policies
