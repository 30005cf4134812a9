#include "agent/engine/engine_state.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "agent/engine/round_engine.h"
#include "base/check.h"

namespace tactus::engine {
namespace {

constexpr std::uint64_t kStepsMax = std::numeric_limits<std::uint32_t>::max();  // of a round
constexpr Duration kTrainTimeMax = std::chrono::hours(24 * 365 * 50);

bool IsAmount(double value) { return std::isfinite(value) && value >= 0; }

std::string ReasonAgainst(const policies::LearningRate::State& state) {
  const policies::MomentAverage::State& average = state.adascale.average;
  if (!IsAmount(state.progress)) return "its progress is not a number of steps";
  if (!std::isfinite(state.adascale.base_batch) || state.adascale.base_batch <= 0) {
    return "its base batch is not a number of samples";
  }
  if (!IsAmount(average.moments.sigma2) || !IsAmount(average.moments.mu2) ||
      !IsAmount(average.weights)) {
    return "its gradient moments are not finite, or below zero";
  }
  return {};
}

std::string ReasonAgainst(const std::vector<LossWindow::Entry>& losses) {
  if (losses.size() > LossWindow::kSteps) return "it has the losses of too many rounds";
  for (const LossWindow::Entry& entry : losses) {
    const bool some = entry.steps >= 1 && entry.steps <= kStepsMax;
    // The sum itself may be infinite: finite ones of a job that diverges overflow in their lane.
    if (!IsAmount(entry.samples) || !some) {
      return "a loss is of no number of samples or steps that a round has";
    }
  }
  return {};
}

std::string ReasonAgainstLength(const char* what, std::size_t length, std::size_t wanted) {
  if (length == wanted) return {};
  return std::string(what) + " has " + std::to_string(length) + " elements, the model " +
         std::to_string(wanted);
}

std::string ReasonAgainstResiduals(const EngineState& state, const StateFit& fit) {
  for (const auto& [name, length] : fit.residuals) {
    const auto found = state.residuals.find(name);
    if (found == state.residuals.end()) return "it has no residual " + name;
    if (found->second.size() != length) {
      return "its residual " + name + " has " + std::to_string(found->second.size()) +
             " elements, the job's encoding " + std::to_string(length);
    }
  }
  for (const auto& [name, values] : state.residuals) {
    if (!fit.residuals.contains(name)) {
      return "it has a residual " + name + ", the job's encoding none";
    }
  }
  return {};
}

// Complete once the device was waited for.
std::vector<float> CopyOf(cuda::Device& device, std::span<const float> values) {
  std::vector<float> copy(values.size());
  device.Copy(values, copy);
  return copy;
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
  if (reason.empty()) reason = ReasonAgainst(state.learning_rate);
  if (reason.empty()) reason = ReasonAgainst(state.losses);
  if (reason.empty()) reason = ReasonAgainst(state.ledger, fit.train_samples);
  if (reason.empty()) reason = ReasonAgainstResiduals(state, fit);
  return reason;
}

EngineState RoundEngine::State() {
  TACTUS_CHECK(outcome_ == Outcome::kSuspended || outcome_ == Outcome::kFinished);
  EngineState state{.rounds = rounds_,
                    .samples_global = samples_global_,
                    .steps = steps_,
                    .nonfinite_rounds = nonfinite_rounds_,
                    .train_time = train_time(),
                    .learning_rate = learning_rate_.state(),
                    .ledger = ledger_.State(),
                    .losses = {losses_.rounds().begin(), losses_.rounds().end()},
                    .block_momentum = CopyOf(device_, local_steps_.Momentum())};
  for (const std::span<float> buffer : optimizer_.State()) {
    state.optimizer.push_back(CopyOf(device_, buffer));
  }
  for (const Residual& residual : encoding_->Residuals()) {
    state.residuals[residual.name] = CopyOf(device_, residual.values);
  }
  device_.Synchronize();
  return state;
}

void RoundEngine::Restore(const EngineState& state) {
  TACTUS_CHECK(rounds_ == 0 && !round_open_ && outcome_ == Outcome::kTraining);
  std::vector<std::span<float>> buffers = optimizer_.State();
  StateFit fit{.length = length_,
               .optimizer_buffers = buffers.size(),
               .train_samples = options_.train_samples};
  const std::vector<Residual> residuals = encoding_->Residuals();
  for (const Residual& residual : residuals) fit.residuals[residual.name] = residual.values.size();
  TACTUS_CHECK(ReasonAgainst(state, fit).empty());
  for (const Residual& residual : residuals) {
    device_.Copy(state.residuals.at(residual.name), residual.values);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) device_.Copy(state.optimizer[i], buffers[i]);
  optimizer_.set_steps(state.steps);
  if (!state.block_momentum.empty()) local_steps_.RestoreMomentum(state.block_momentum);
  learning_rate_.Restore(state.learning_rate);
  ledger_.Restore(state.ledger);
  for (const LossWindow::Entry& entry : state.losses) {
    losses_.Add(entry.loss_sum, entry.samples, entry.steps);
  }
  rounds_ = state.rounds;
  samples_global_ = state.samples_global;
  steps_ = state.steps;
  nonfinite_rounds_ = state.nonfinite_rounds;
  trained_before_ = state.train_time;
}

}  // namespace tactus::engine
