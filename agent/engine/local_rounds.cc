// Rounds of local steps: each member trains by itself for a window, then what they changed is
// combined.
//
// A single step is run so, too, where Adasum combines what an optimizer with memory does: Adasum is
// of updates then, as such a step is not linear in the gradient.
//
// An elastic window lasts until all members have taken the period's steps, or know that training
// ends: who is done early goes on instead of waiting, up to kMostPeriods times the period. Of
// member i with n_i samples in tau_i steps, N samples of all, a(tau) the weight of tau steps'
// gradients in what they change (DeltaWeights::sum), what is combined is
//
//   delta = a  sum_i (n_i / N) delta_i / a(tau_i),   a = sum_i (n_i / N) a(tau_i)
//
// so that who took more steps has the say of its samples, and not of its longer way. Its share of a
// whole window, by which block momentum moves it (local_steps.h), is sum_i (n_i / N) tau_i of the
// period, 1 at most: who is done early makes no window longer.
//
// A window that is under way as its group is lost is kept, and the next group may go on with it:
// open_window.h.
//
// Source: [adacomm]; elastic windows: design, after [abs-sgd]; their weights: memory, unverified:
// [fednova].

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "agent/engine/gradient_facts.h"
#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/open_window.h"
#include "agent/engine/start_barrier.h"
#include "agent/engine/synchronizer.h"
#include "base/check.h"
#include "policies/delta_weights.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;
using policies::Synchronization;

constexpr std::uint64_t kMostPeriods = 2;

class LocalRounds : public Synchronizer {
 public:
  LocalRounds(Member& member, Group& group)
      : Synchronizer(member, group, {.local_updates = true, .elastic = member.options.elastic}),
        step_norm2_(member.device.AllocateSums(1)),
        replica_(group.replica_sums(), member.device, member.segments),
        loss_on_host_(member.device.AllocateOnHost<double>(1)),
        gate_on_host_(member.device.AllocateOnHost<double>(cuda::kGateLength)) {}

  bool Runs(const policies::Plan& plan) const override {
    if (plan.synchronization == Synchronization::kPeriodic) return true;
    return plan.synchronization == Synchronization::kEveryStep &&
           plan.aggregation == policies::Aggregation::kAdasum && !member_.optimizer.linear();
  }

  // The rate holds for the window: what the members will have done by its end is not known yet, so
  // it is that of a step of the plan's samples.
  void Open(Round& round) override {
    const policies::Plan& plan = group_.round_plan();
    // A single step that Adasum combines is no window: it is the optimizer's own step.
    window_ = plan.synchronization == Synchronization::kPeriodic;
    elastic_ = window_ && member_.options.elastic;
    step_ = StepOf(group_.ReplicaSizes(plan));
    step_over_ = false;
    launched_ = false;
    if (const ResumedWindow* const resumed = group_.resumed()) {
      round.rate = resumed->rate;
    } else {
      if (elastic_) Reserve(plan);
      round.rate = window_ ? member_.learning_rate.NextOfWindow(round.rule, step_)
                           : member_.learning_rate.Next(round.rule, step_.samples);
    }
    TACTUS_CHECK(!member_.window || group_.resumed() != nullptr);
    if (member_.window) {
      GoOn(round, *member_.window);
    } else {
      member_.local_steps.Begin(member_.parameters);
    }
    taken_ = round;
    open_ = true;
  }

  // Queued on the device without a wait, but for members that have parts: the gate decides there
  // whether the step is taken.
  Completion EndStep(const Round& round, std::uint64_t samples) override {
    step_over_ = true;
    const std::span<float> gradients = group_.vector();
    Completion normed = TakeStepNorm(gradients);
    if (normed.progress == Progress::kFailed) return normed;
    LocalSteps& steps = member_.local_steps;
    if (group_.replica_sums().in_parts()) {
      member_.device.Copy(steps.gate(), gate_on_host_.span());
    }
    if (round.steps == 1) member_.device.Copy(group_.loss_sum(), steps.first_loss());
    const double sum_of = member_.options.mean_gradients ? 1 : static_cast<double>(samples);
    member_.device.Gate({.samples = sum_of, .clip_norm = member_.options.clip_norm.value_or(0)},
                        {.norm2 = step_norm2_.span(), .loss = group_.loss_sum()}, steps.gate());
    Completion stepped =
        member_.optimizer.Step(gradients, {.learning_rate = round.rate.rate, .gate = steps.gate()},
                               member_.parameters, group_.replica_sums());
    if (stepped.progress == Progress::kFailed) {
      member_.device.Copy(gate_on_host_.span(), steps.gate());  // the step was not
      return stepped;
    }
    group_.ClearVector();
    member_.device.Copy(group_.loss_sum(), steps.loss());
    taken_ = round;
    return {};
  }

  bool MayEnd(const Round& round) const override {
    return elastic_ && (round.steps + 1 >= group_.round_plan().period || TrainingEnds(round));
  }

  std::optional<Completion> End(const Round& round, bool exhausted) override {
    if (!elastic_) return Synchronizer::End(round, exhausted);
    const bool step_over = std::exchange(step_over_, false);
    const bool taken =
        step_over && (round.steps >= group_.round_plan().period || TrainingEnds(round));
    if (!exhausted && !taken) return std::nullopt;
    if (!start_.posted()) start_.Post(group_.transport());
    return start_.Look(round.finished, exhausted);
  }

  // A window with a step that was not taken is of no use: its gate poisons what is combined. The
  // gate's row comes over with what is read of the combination, in the same wait.
  void Launch(const Round& round, TellLanes lanes) override {
    taken_ = round;
    launched_ = true;
    LocalSteps& steps = member_.local_steps;
    steps.TakeDelta(member_.parameters, group_.vector());
    float factor = round.aggregator->FactorOfMean(static_cast<float>(round.replica_samples));
    if (elastic_ && round.steps > 0) factor /= static_cast<float>(WeightsOf(round.steps).sum);
    Scale(factor, group_.vector());
    group_.combination().Begin(
        *round.aggregator, group_.buffer(), std::move(lanes),
        {.poison = steps.gate().subspan(cuda::kGatePoison, 1), .first_loss = steps.first_loss()});
    member_.device.Copy(steps.gate(), gate_on_host_.span());
    group_.combination().Finish();
  }

  // Shut, the gate has the window undone. How many samples an elastic one has it does not know.
  Progress Follow(Round& round) override {
    if (elastic_) return Synchronizer::Follow(round);
    const Progress progress = group_.combination().Follow(GateOf(round, 0));
    if (progress == Progress::kFailed) return progress;
    cuda::BlockMomentumStep step = StepTo(round);
    step.gate = group_.combination().gate().data();
    member_.local_steps.Apply(group_.vector(), step, member_.parameters);
    group_.ClearBuffer();
    return progress;
  }

  void Apply(Round& round, const Combined& combined, bool useful) override {
    open_ = false;
    member_.window.reset();
    ApplyWindow(round, combined, useful);
    group_.EndResumed();
  }

  // The optimizer has taken the window's steps: it goes on by them with the window, or as after one
  // that is undone.
  void Abandon() override {
    if (open_ && window_) {
      Keep();
    } else if (open_) {
      member_.local_steps.Restore(member_.parameters);
      member_.optimizer.ResetMomentum();
      member_.optimizers_differ = true;
    }
    open_ = false;
    start_.Abandon();
  }

 private:
  // Whether this window is known to be the last of the group, by a request or by the time, of which
  // each member's clock says nearly the same: then nobody needs all of its period.
  bool TrainingEnds(const Round& round) const {
    return member_.stop.wanted() || member_.TimeIsUpAt(round.finished);
  }

  // step_norm2_ <- the squared norm of all of the replica's gradient. A member's loss that is not
  // finite shuts its gate, so it has to shut those of the others: their parameters are one model's.
  Completion TakeStepNorm(std::span<const float> gradients) {
    if (replica_.in_parts()) {
      const std::span<double> loss = loss_on_host_.span();
      member_.device.Copy(group_.loss_sum(), loss);
      member_.device.Synchronize();
      loss[0] -= loss[0];  // 0, or not a number
      member_.device.Copy(loss, step_norm2_.span());
    } else {
      member_.device.Clear(step_norm2_.span());
    }
    replica_.AddNorm(gradients, 0, step_norm2_.span());
    return replica_.in_parts() ? replica_.Add(step_norm2_.span()) : Completion{};
  }

  // With what this member had of a window as its group was lost: up to the end of its last step.
  void GoOn(Round& round, const OpenWindow& window) {
    round.samples = window.taken.samples;
    round.replica_samples = window.taken.replica_samples;
    round.first_samples = window.taken.first_samples;
    round.steps = window.taken.steps;
    round.compute = window.taken.compute;
    round.before = window.length;
    member_.train_time += window.uncounted;
    member_.local_steps.ChangePlaces(member_.parameters, group_.vector());
    group_.ClearVector();
    member_.device.Copy(member_.local_steps.loss(), group_.loss_sum());
  }

  // Who has no samples in it has nothing to keep. Nor has one of several members of a replica
  // before the first step: the others may not have begun the window.
  void Keep() {
    if (member_.options.replica_members > 1 && taken_.steps == 0) return;
    const std::optional<OpenWindow> former = std::exchange(member_.window, {});
    const policies::Plan& plan = group_.round_plan();
    Block block = member_.ledger.OwnBlock();
    if (block.empty()) return;
    // What was launched was counted up to there.
    const Duration since = launched_ ? Duration{} : taken_.finished - member_.edge;
    const Duration length = launched_ ? taken_.length : taken_.before + since;
    member_.window = {.id = former ? former->id : IdOf(member_, plan, taken_.rate),
                      .period = plan.period,
                      .batch_size = static_cast<std::uint32_t>(group_.batch_size()),
                      .block = std::move(block),
                      .taken = taken_,
                      .length = length,
                      .uncounted = since};
    member_.window->taken.aggregator = nullptr;  // the group's
    member_.local_steps.ChangePlaces(member_.parameters, group_.vector());
    member_.optimizers_differ = true;
  }

  void ApplyWindow(Round& round, const Combined& combined, bool useful) {
    if (elastic_) ApplyElastic(round, combined, useful);
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

  // What is left over of a share comes back with the next window. Other plans' shares come with
  // them, by Group.
  void Reserve(const policies::Plan& plan) {
    const auto step = static_cast<std::uint64_t>(step_.samples);
    const std::uint64_t steps =
        std::min(kMostPeriods * plan.period, policies::kRoundSamplesMax / step);
    std::vector<std::uint64_t> shares;
    shares.reserve(plan.batch_sizes.size());
    for (const std::uint64_t size : plan.batch_sizes) shares.push_back(size * steps);
    member_.ledger.SetShares(std::move(shares), group_.rank());
  }

  void ApplyElastic(const Round& round, const Combined& combined, bool useful) {
    if (useful) {
      cuda::BlockMomentumStep step = StepTo(round);
      const double weight =
          MeanOfSteps(combined.lanes, [this](double steps) { return WeightsOf(steps).sum; });
      step.scale = weight / round.aggregator->Divisor(combined.lanes.samples);
      const double share = MeanOfSteps(combined.lanes, [](double steps) { return steps; }) /
                           group_.round_plan().period;
      member_.local_steps.Apply(group_.vector(), step, member_.parameters, std::min(1.0, share));
    } else {
      member_.local_steps.Restore(member_.parameters);
    }
    group_.ClearBuffer();
  }

  // Of a window with samples what its members' steps come to, by their samples.
  template <typename Of>
  double MeanOfSteps(const Lanes& lanes, const Of& of) const {
    const policies::Plan& plan = group_.round_plan();
    double sum = 0;
    for (std::size_t rank = 0; rank < plan.batch_sizes.size(); ++rank) {
      const double samples = lanes.member_samples[rank];
      if (!(samples > 0)) continue;
      sum += samples * of(std::ceil(samples / plan.batch_sizes[rank]));
    }
    return sum / lanes.samples;
  }

  // How a member's change over so many steps, >= 1, weighs their gradients.
  policies::DeltaWeights WeightsOf(double steps) const {
    const std::optional<policies::WindowMomentum> momentum =
        WindowMomentumOf(member_.options.optimizer, member_.options.keep_local_momentum);
    if (!momentum) return {.sum = steps, .squares = steps};
    return policies::WeightsOfDelta(static_cast<std::uint32_t>(steps), *momentum);
  }

  cuda::BlockMomentumStep StepTo(const Round& round) const {
    return {.learning_rate = MomentumUnit(round), .momentum = window_ ? BlockMomentum() : 0};
  }

  // Of a window, whose steps are not counted yet, by its first one. Not 0 in the first window: what
  // that changed is remembered.
  double BlockMomentum() const {
    const double grown = member_.options.block_momentum_steps;
    const double step = static_cast<double>(member_.steps) + 1;
    return member_.options.block_momentum * (step < grown ? step / grown : 1);
  }

  // What block momentum is a momentum of: sgd's gradients, which a rate that falls makes shorter
  // steps of; of what an adaptive optimizer did with its own, the change of parameters itself.
  double MomentumUnit(const Round& round) const {
    return std::holds_alternative<SgdOptions>(member_.options.optimizer) ? round.rate.rate : 1;
  }

  // sizes: samples of it by the plan, of each replica.
  static policies::LearningRate::LocalStep StepOf(const std::vector<std::uint64_t>& sizes) {
    double samples = 0;
    double squares = 0;
    std::uint32_t contributors = 0;
    for (const std::uint64_t each : sizes) {
      const auto size = static_cast<double>(each);
      samples += size;
      squares += size * size;
      if (size > 0) ++contributors;
    }
    return {.samples = samples, .contributors = contributors, .own = squares / samples};
  }

  // What the window's delta tells of its gradients, or of what an adaptive optimizer divided by
  // their root mean square: where momentum weighs them unequally, as fewer would.
  void SetGradient(Round& round) const {
    const policies::DeltaWeights weights = WeightsOf(round.updates);
    round.gradient_length = round.rate.rate * (elastic_ ? 1 : weights.sum);
    const bool told =
        WindowMomentumOf(member_.options.optimizer, member_.options.keep_local_momentum)
            .has_value();
    round.gradient_share = told ? weights.sum * weights.sum / (weights.squares * round.updates) : 0;
  }

  cuda::Sums step_norm2_;  // of the gradient of one of the window's steps
  collective::DeviceReplicaSums replica_;
  cuda::Array<double> loss_on_host_;  // there, up to the step
  cuda::Array<double> gate_on_host_;  // as it was when the window was combined
  policies::LearningRate::LocalStep step_{};
  Round taken_{};           // as it was at the window's last step, or launched
  bool launched_ = false;   // and is combined
  bool open_ = false;       // from Open until Apply parameters are this member's own
  bool window_ = false;     // whether the plan asks for local steps
  bool elastic_ = false;    // the window lasts until all are done with it
  bool step_over_ = false;  // the batch before ended a step
  StartBarrier start_;      // of an elastic window
};

}  // namespace

std::unique_ptr<Synchronizer> MakeLocalRounds(Member& member, Group& group) {
  return std::make_unique<LocalRounds>(member, group);
}

}  // namespace tactus::engine
