// Rounds of local steps: each member trains by itself for a window, then what they changed is
// combined.
//
// A single step is run so, too, where Adasum combines what an optimizer with memory does: Adasum is
// of updates then, as such a step is not linear in the gradient.
//
// Source: [adacomm].

#include <cmath>
#include <utility>
#include <variant>

#include "agent/engine/gradient_facts.h"
#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/synchronizer.h"
#include "policies/delta_weights.h"

namespace tactus::engine {
namespace {

using collective::Progress;
using policies::Synchronization;

class LocalRounds : public Synchronizer {
 public:
  LocalRounds(Member& member, Group& group)
      : Synchronizer(member, group, {.local_updates = true}),
        gate_(member.device.AllocateSums(cuda::kGateLength)),
        step_norm2_(member.device.AllocateSums(1)),
        first_loss_(member.device.AllocateSums(1)),
        gate_on_host_(member.device.AllocateOnHost<double>(cuda::kGateLength)) {}

  bool Runs(const policies::Plan& plan) const override {
    if (plan.synchronization == Synchronization::kPeriodic) return true;
    return plan.synchronization == Synchronization::kEveryStep &&
           plan.aggregation == policies::Aggregation::kAdasum && !member_.optimizer.linear();
  }

  // The rate holds for the window: what the members will have done by its end is not known yet, so
  // it is that of a step of the plan's samples.
  void Open(Round& round) override {
    const policies::Plan& plan = group_.plan();
    // A single step that Adasum combines is no window: it is the optimizer's own step.
    window_ = plan.synchronization == Synchronization::kPeriodic;
    step_ = StepOf(plan);
    round.rate = window_ ? member_.learning_rate.NextOfWindow(round.rule, step_)
                         : member_.learning_rate.Next(round.rule, step_.samples);
    member_.local_steps.Begin(member_.parameters);
    member_.device.Clear(gate_.span());
    member_.device.Clear(first_loss_.span());
    open_ = true;
  }

  // Queued on the device without a wait: the gate decides there whether the step is taken.
  void EndStep(const Round& round, std::uint64_t samples) override {
    const std::span<float> gradients = group_.vector();
    if (round.steps == 1) member_.device.Copy(group_.loss_sum(), first_loss_.span());
    member_.device.Clear(step_norm2_.span());
    member_.device.AddSquaredNorm(gradients, step_norm2_.span());
    member_.device.Gate({.samples = static_cast<double>(samples),
                         .clip_norm = member_.options.clip_norm.value_or(0)},
                        {.norm2 = step_norm2_.span(), .loss = group_.loss_sum()}, gate_.span());
    member_.optimizer.Step(gradients, {.learning_rate = round.rate.rate, .gate = gate_.span()},
                           member_.parameters);
    group_.ClearVector();
  }

  // A window with a step that was not taken is of no use: its gate poisons what is combined. The
  // gate's row comes over with what is read of the combination, in the same wait.
  void Launch(const Round& round, TellLanes lanes) override {
    member_.local_steps.TakeDelta(member_.parameters, group_.vector());
    Scale(round.aggregator->FactorOfMean(static_cast<float>(round.samples)), group_.vector());
    group_.combination().Begin(
        *round.aggregator, group_.buffer(), std::move(lanes),
        {.poison = gate_.span().subspan(cuda::kGatePoison, 1), .first_loss = first_loss_.span()});
    member_.device.Copy(gate_.span(), gate_on_host_.span());
    group_.combination().Finish();
  }

  // Shut, the gate has the window undone.
  Progress Follow(Round& round) override {
    const Progress progress = group_.combination().Follow(GateOf(round, 0));
    if (progress == Progress::kFailed) return progress;
    member_.local_steps.Apply(group_.vector(),
                              {.learning_rate = MomentumUnit(round),
                               .momentum = window_ ? member_.options.block_momentum : 0,
                               .gate = group_.combination().gate().data()},
                              member_.parameters);
    group_.ClearBuffer();
    return progress;
  }

  void Apply(Round& round, const Combined& combined, bool useful) override {
    open_ = false;
    round.gradient_norm2 = gate_on_host_.span()[cuda::kGateNorm2Sum] / round.steps;
    const bool keeps = !window_ || member_.options.keep_local_momentum;
    if (!useful || !keeps) member_.optimizer.ResetMomentum();
    member_.optimizers_differ = true;  // a reset leaves Adam's moments as each member has them
    // An epoch's last window may be shorter.
    round.updates = static_cast<std::uint32_t>(std::ceil(combined.lanes.samples / step_.samples));
    SetGradient(round);
    if (!useful) return;
    member_.steps += round.updates;
    if (window_) {
      member_.learning_rate.AppliedWindow(
          round.rule, {.step = step_, .samples = combined.lanes.samples, .updates = round.updates},
          GradientFactsOf(round, combined));
    } else {
      member_.learning_rate.Applied(round.rule, {.samples = combined.lanes.samples});
    }
  }

  void Abandon() override {
    if (open_) member_.local_steps.Restore(member_.parameters);
    open_ = false;
  }

 private:
  // What block momentum is a momentum of: sgd's gradients, which a rate that falls makes shorter
  // steps of; of what an adaptive optimizer did with its own, the change of parameters itself.
  double MomentumUnit(const Round& round) const {
    return std::holds_alternative<SgdOptions>(member_.options.optimizer) ? round.rate.rate : 1;
  }

  // Of the plan's samples.
  static policies::LearningRate::LocalStep StepOf(const policies::Plan& plan) {
    double samples = 0;
    double squares = 0;
    std::uint32_t contributors = 0;
    for (const double size : plan.batch_sizes) {
      samples += size;
      squares += size * size;
      if (size > 0) ++contributors;
    }
    return {.samples = samples, .contributors = contributors, .own = squares / samples};
  }

  // What the window's delta tells of its gradients, or of what an adaptive optimizer divided by
  // their root mean square: where momentum weighs them unequally, as fewer would.
  void SetGradient(Round& round) const {
    const std::optional<policies::WindowMomentum> momentum =
        WindowMomentumOf(member_.options.optimizer, member_.options.keep_local_momentum);
    policies::DeltaWeights weights = {.sum = 1.0 * round.updates, .squares = 1.0 * round.updates};
    if (momentum) weights = policies::WeightsOfDelta(round.updates, *momentum);
    round.gradient_length = round.rate.rate * weights.sum;
    round.gradient_share =
        momentum ? weights.sum * weights.sum / (weights.squares * round.updates) : 0;
  }

  cuda::Sums gate_;                   // of the steps of the running window
  cuda::Sums step_norm2_;             // of the gradient of one of them
  cuda::Sums first_loss_;             // the sum of losses of the first, at common parameters
  cuda::Array<double> gate_on_host_;  // as it was when the window was combined
  policies::LearningRate::LocalStep step_{};
  bool open_ = false;    // from Open until Apply parameters are this member's own
  bool window_ = false;  // whether the plan asks for local steps
};

}  // namespace

std::unique_ptr<Synchronizer> MakeLocalRounds(Member& member, Group& group) {
  return std::make_unique<LocalRounds>(member, group);
}

}  // namespace tactus::engine
