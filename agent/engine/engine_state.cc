#include "agent/engine/engine_state.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace tactus::engine {
namespace {

constexpr std::uint64_t kStepsMax = std::numeric_limits<std::uint32_t>::max();  // of a round
constexpr Duration kTrainTimeMax = std::chrono::hours(24 * 365 * 50);

bool IsAmount(double value) { return std::isfinite(value) && value >= 0; }

std::string ReasonAgainst(const policies::Adascale::State& state) {
  if (!std::isfinite(state.base_batch) || state.base_batch <= 0) {
    return "its base batch is not a number of samples";
  }
  const policies::MomentAverage::State& average = state.average;
  if (!IsAmount(average.moments.sigma2) || !IsAmount(average.moments.mu2) ||
      !IsAmount(average.weights)) {
    return "its gradient moments are not finite, or below zero";
  }
  if (state.estimated && !(average.moments.sigma2 > 0)) {
    return "its gradient moments have no variance";
  }
  return {};
}

std::string ReasonAgainst(const policies::LearningRate::State& state) {
  if (!IsAmount(state.progress)) return "its progress is not a number of steps";
  const bool bent = state.bending_weight > 0 && state.bending >= state.bending_weight;
  if (!IsAmount(state.bending) || !IsAmount(state.bending_weight) ||
      !(bent || state.bending == 0)) {
    return "its steps were divided by what no gradient is";
  }
  const std::string reason = ReasonAgainst(state.adascale);
  return reason.empty() ? ReasonAgainst(state.windows) : reason;
}

std::string ReasonAgainst(const std::vector<policies::RoundLosses>& losses) {
  if (losses.size() > policies::LossWindow::kRounds) return "it has the losses of too many rounds";
  for (const policies::RoundLosses& round : losses) {
    const bool some = round.steps >= 1 && round.steps <= kStepsMax;
    // A sum itself may be infinite: finite ones of a job that diverges overflow in their lane.
    if (!IsAmount(round.common.samples) || !IsAmount(round.local.samples) || !some) {
      return "a loss is of no number of samples or steps that a round has";
    }
  }
  return {};
}

std::string ReasonAgainst(const ValidationState& state) {
  const Duration trained = state.last.trained;
  const bool sane = trained >= Duration{} && trained <= kTrainTimeMax && state.cost >= Duration{} &&
                    state.total_cost >= state.cost && state.total_cost <= kTrainTimeMax;
  if (!sane) {
    return "a time of its validations is below zero or above 50 years";
  }
  const bool sound = std::isfinite(state.best_loss) && std::isfinite(state.best_accuracy);
  return state.best_samples == 0 || sound ? "" : "its best validation is not finite";
}

std::string ReasonAgainst(const OneBitState& state, std::size_t segments) {
  const auto fits = [&](const auto& list) { return list.empty() || list.size() == segments; };
  if (!fits(state.scales) || !fits(state.layers)) {
    return "its signs are of " + std::to_string(state.scales.size()) + " scales and " +
           std::to_string(state.layers.size()) + " layers, the model has " +
           std::to_string(segments) + " tensors";
  }
  bool amounts = IsAmount(state.begun) && IsAmount(state.variance);
  for (const double scale : state.scales) amounts = amounts && IsAmount(scale);
  for (const LayerRatio& layer : state.layers) {
    amounts = amounts && IsAmount(layer.sum) && IsAmount(layer.weight) && IsAmount(layer.factor) &&
              layer.factor > 0;
  }
  return amounts ? "" : "a number of its signs is not finite, or below zero";
}

std::string ReasonAgainstFrozen(const EngineState& state, const StateFit& fit) {
  const OneBitState& one_bit = state.one_bit;
  const std::size_t fresh = state.fresh_moment.size();
  if (fresh != 0 && fresh != fit.length) {
    return "its fresh second moment has " + std::to_string(fresh) + " elements, the model " +
           std::to_string(fit.length);
  }
  const bool of_lamb = !fit.lamb || (fresh != 0 && !one_bit.layers.empty());
  if (one_bit.frozen && (one_bit.scales.empty() || !of_lamb)) {
    return "its second moment is frozen, without what that takes";
  }
  if (fresh != 0 && !(one_bit.frozen && fit.lamb)) {
    return "it has a fresh second moment beside none that is frozen";
  }
  const bool none = !one_bit.frozen && one_bit.frozen_steps == 0;
  if (none || one_bit.frozen_steps < state.steps) return {};
  return "its second moment was frozen for " + std::to_string(one_bit.frozen_steps) + " of " +
         std::to_string(state.steps) + " steps";
}

std::string ReasonAgainstLength(const char* what, std::size_t length, std::size_t wanted) {
  if (length == wanted) return {};
  return std::string(what) + " has " + std::to_string(length) + " elements, the model " +
         std::to_string(wanted);
}

// Its samples rise.
std::string ReasonAgainstData(const Subset& subset, std::uint64_t samples) {
  if (samples == 0 || subset.samples.empty() || subset.samples.back() < samples) return {};
  return "its subset has the sample " + std::to_string(subset.samples.back()) + ", the data has " +
         std::to_string(samples);
}

std::string ReasonAgainstResiduals(const EngineState& state, const StateFit& fit) {
  for (const auto& [name, length] : fit.residuals) {
    const auto found = state.residuals.find(name);
    if (found != state.residuals.end() && found->second.size() != length) {
      return "its residual " + name + " has " + std::to_string(found->second.size()) +
             " elements, the job's encoding " + std::to_string(length);
    }
  }
  return {};
}

}  // namespace

std::string ReasonAgainst(const EngineState& state, const StateFit& fit) {
  if (state.train_time < Duration{} || state.train_time > kTrainTimeMax) {
    return "its training time is below zero or above 50 years";
  }
  if (state.optimizer.size() != fit.optimizer_buffers) {
    return "its optimizer has " + std::to_string(state.optimizer.size()) +
           " buffers of state, the job's has " + std::to_string(fit.optimizer_buffers);
  }
  std::string reason;
  for (const std::vector<float>& buffer : state.optimizer) {
    if (reason.empty()) {
      reason = ReasonAgainstLength("its optimizer's state", buffer.size(), fit.length);
    }
  }
  if (reason.empty() && !state.block_momentum.empty()) {
    reason = ReasonAgainstLength("its block momentum", state.block_momentum.size(), fit.length);
  }
  if (reason.empty()) reason = ReasonAgainst(state.one_bit, fit.segments);
  if (reason.empty()) reason = ReasonAgainstFrozen(state, fit);
  if (reason.empty()) reason = ReasonAgainst(state.learning_rate);
  if (reason.empty()) reason = ReasonAgainst(state.losses);
  if (reason.empty()) reason = ReasonAgainst(state.validation);
  if (reason.empty()) reason = ReasonAgainst(state.ledger, fit.train_samples);
  if (reason.empty()) reason = ReasonAgainstData(state.ledger.subset, fit.data_samples);
  if (reason.empty()) reason = ReasonAgainstResiduals(state, fit);
  return reason;
}

}  // namespace tactus::engine
