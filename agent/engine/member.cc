#include "agent/engine/member.h"

#include <algorithm>

#include "agent/engine/momentum_correction.h"
#include "base/check.h"

namespace tactus::engine {
namespace {

// The optimizer's rate is where the schedule starts.
policies::LearningRateOptions RateOptions(const EngineOptions& options) {
  policies::LearningRateOptions rate = options.learning_rate;
  rate.schedule.base = BaseLearningRate(options.optimizer);
  rate.bending_decay = BendingDecay(options.optimizer);
  return rate;
}

EncodingOptions EncodingOptionsOf(const EngineOptions& options) {
  EncodingOptions encoding = options.encoding;
  encoding.seed = options.seed;
  encoding.carries_momentum = CarriesMomentum(options);
  return encoding;
}

// The one list of counters that a state has of a member; saving and loading both follow it.
void VisitCounters(auto& member, auto& state, const auto& visit) {
  visit(member.rounds, state.rounds);
  visit(member.samples_global, state.samples_global);
  visit(member.steps, state.steps);
  visit(member.nonfinite_rounds, state.nonfinite_rounds);
  visit(member.train_time, state.train_time);
}

// Complete once the device was waited for.
void CopyOut(cuda::Device& device, std::span<const float> values, std::vector<float>& copy) {
  copy.resize(values.size());
  device.Copy(values, copy);
}

}  // namespace

Member::Member(const EngineOptions& engine_options, cuda::Device& its_device,
               const cuda::SegmentTable& its_segments, std::span<float> its_parameters)
    : options(engine_options),
      device(its_device),
      segments(its_segments),
      parameters(its_parameters),
      optimizer(options.optimizer, device, segments,
                options.shards.on() ? StateHeld::kElsewhere : StateHeld::kWhole),
      learning_rate(RateOptions(options)),
      local_steps(device),
      encodings(EncodingOptionsOf(options), device, segments),
      ledger(options.train_samples, options.seed, options.stop.epochs),
      validations(options.validation) {
  TACTUS_CHECK(options.micro_batch >= 1);
  TACTUS_CHECK(parameters.size() == cuda::FlatLength(segments));
  if (options.shards.on()) {
    shard.emplace(device, parameters.size(), StateBuffers(options.optimizer));
  }
}

void Member::CopyNumbers(EngineState& state) const {
  VisitCounters(*this, state, [](const auto& own, auto& saved) { saved = own; });
  state.learning_rate = learning_rate.state();
  state.ledger = ledger.State();
  state.losses.assign(losses.rounds().begin(), losses.rounds().end());
  state.validation = validations.state();
  state.one_bit = optimizer.one_bit();
}

void Member::CopyState(EngineState& state) {
  CopyNumbers(state);
  const std::vector<std::span<float>> buffers = optimizer.State();
  if (shard) shard->CopyOut(state.optimizer);
  if (!shard) state.optimizer.resize(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    CopyOut(device, buffers[i], state.optimizer[i]);
  }
  CopyOut(device, local_steps.Momentum(), state.block_momentum);
  CopyOut(device, optimizer.FreshMoment(), state.fresh_moment);
  encodings.CopyResiduals(state.residuals);
  device.Synchronize();
}

std::string Member::ReasonNotToTake(const EngineState& state) {
  StateFit fit{.length = parameters.size(),
               .optimizer_buffers = StateBuffers(options.optimizer),
               .segments = segments.size(),
               .lamb = std::holds_alternative<LambOptions>(options.optimizer),
               .train_samples = options.train_samples,
               .data_samples = options.subset.samples};
  if (shard && state.optimizer.empty()) fit.optimizer_buffers = 0;
  for (const Residual& residual : encodings.Residuals()) {
    fit.residuals[residual.name] = residual.values.size();
  }
  return ReasonAgainst(state, fit);
}

void Member::Restore(const EngineState& state) {
  TACTUS_CHECK(ReasonNotToTake(state).empty());
  VisitCounters(*this, state, [](auto& own, const auto& saved) { own = saved; });
  PutBack(state);
  window.reset();
  optimizer.GoOnFrom(steps);
  ledger.Restore(state.ledger);
  if (options.subset.kind == SubsetKind::kNone && ledger.subset().number > 0) {
    ledger.Choose({});  // of the job that this one goes on from
    learning_rate.ForgetNoise();
  }
  validations.Restore(state.validation);
  losses = {};
  for (const policies::RoundLosses& round : state.losses) losses.Add(round);
}

// What updates change, but for the parameters.
void Member::PutBack(const EngineState& state) {
  const std::vector<std::span<float>> buffers = optimizer.State();
  for (std::size_t i = 0; i < buffers.size(); ++i) device.Copy(state.optimizer[i], buffers[i]);
  if (shard && !state.optimizer.empty()) shard->PutBack(state.optimizer);
  optimizer.RestoreOneBit(state.one_bit, state.fresh_moment);
  local_steps.RestoreMomentum(state.block_momentum);
  encodings.Restore(state.residuals);
  learning_rate.Restore(state.learning_rate);
}

void Member::Keep() {
  if (!kept_) kept_.emplace();
  CopyOut(device, parameters, kept_->parameters);
  CopyState(kept_->state);  // waits
  kept_->optimizer_steps = optimizer.steps();
  kept_->optimizers_differ = optimizers_differ;
  kept_->loss.reset();
  if (!losses.rounds().empty()) kept_->loss = losses.Mean();
  kept_->since = {};
}

bool Member::EndTrial() {
  const bool led_up =
      kept_ && kept_->loss && kept_->since.Mean() > *kept_->loss && losses.Mean() > *kept_->loss;
  if (led_up) Undo();
  return led_up;
}

void Member::LetGoOfWindow() {
  if (!window) return;
  window.reset();
  optimizer.ResetMomentum();
  optimizers_differ = true;
}

void Member::LetGoOfSteps() {
  window.reset();
  optimizer.BeginAnew(0);
  steps = 0;
  optimizers_differ = true;  // a group that is lost meanwhile leaves others with what they had
}

void Member::KeepOwn() {
  if (own_.size() == 0) own_ = device.Allocate(parameters.size());
  device.Copy(parameters, own_.span());
  at_mean = true;
}

void Member::TakeOwn() {
  if (std::exchange(at_mean, false)) device.Copy(own_.span(), parameters);
}

void Member::AddLosses(const policies::RoundLosses& round) {
  losses.Add(round);
  if (!kept_) return;
  if (!kept_->loss && round.common.samples > 0) kept_->loss = round.common.Mean();
  kept_->since.sum += round.common.sum;
  kept_->since.samples += round.common.samples;
}

void Member::Undo() {
  if (!kept_) return;
  device.Copy(kept_->parameters, parameters);
  PutBack(kept_->state);
  device.Synchronize();
  steps = kept_->state.steps;
  optimizer.GoOnFrom(kept_->optimizer_steps);
  optimizers_differ = kept_->optimizers_differ;
  kept_.reset();
}

std::string Member::ReasonToStop() const {
  return engine::ReasonToStop(options.stop, {.rounds = rounds,
                                             .epochs = ledger.epoch(),
                                             .steps = learning_rate.progress(),
                                             .losses = &losses,
                                             .validation = validations.state()});
}

double Member::progress() const {
  const StopOptions& asked = options.stop;
  double progress = 0;
  if (asked.rounds) {
    progress = static_cast<double>(rounds) / static_cast<double>(*asked.rounds);
  }
  if (asked.epochs) {
    const double of_epoch =
        static_cast<double>(ledger.consumed()) / static_cast<double>(ledger.epoch_size());
    progress = std::max(progress, (static_cast<double>(ledger.epoch()) + of_epoch) / *asked.epochs);
  }
  if (asked.steps) progress = std::max(progress, learning_rate.progress() / *asked.steps);
  return std::min(progress, 1.0);
}

void Member::MoveEdge(Instant now) {
  train_time += now - edge;
  edge = now;
}

}  // namespace tactus::engine
