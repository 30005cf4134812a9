// Rounds of one step: the combined gradient is applied at once.
//
// All that the step needs besides the combined vector is known before: members use what the ledger
// reserved for them, so that their samples, and with these the rate under every rule, follow from
// the plan and from earlier rounds. So the step is queued behind the combination; what only that
// can tell (is it finite, how long is it) the gate decides.
//
// Where the optimizer's state is cut up among the members, the step waits for what comes of the
// combination, as members have to tell one another of it: see sharded_step.h.
//
// AdaScale knows the noise of gradients by how far those of the members differ. A single member's
// passes are added up in two halves, whose gradients differ as those of two members of as many
// samples would.

#include <optional>
#include <utility>

#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/sharded_step.h"
#include "agent/engine/synchronizer.h"

namespace tactus::engine {
namespace {

using collective::Progress;

class GradientRounds : public Synchronizer {
 public:
  GradientRounds(Member& member, Group& group)
      : Synchronizer(member, group, {.early_segments = true}) {
    if (member.shard) sharded_.emplace(member, group);
  }

  bool Runs(const policies::Plan& plan) const override {
    return plan.synchronization == policies::Synchronization::kEveryStep;
  }

  void Open(Round& round) override {
    halves_ = group_.size() == 1 && round.rule == policies::LearningRateRule::kAdascale &&
              round.aggregation == policies::Aggregation::kAverage;
  }

  // The first half ends with the pass that brings half of the samples.
  bool EndSum(const Round& round) override {
    const bool half = 2 * round.samples >= member_.ledger.reserved();
    if (!halves_ || round.first_sum > 0 || !half) return false;
    const std::span<float> gradients = group_.vector();
    if (first_sum_.size() != gradients.size()) {
      first_sum_ = member_.device.Allocate(gradients.size());
      norms2_ = member_.device.AllocateSums(2);
      norms2_on_host_ = member_.device.AllocateOnHost<double>(2);
    }
    member_.device.Copy(gradients, first_sum_.span());
    member_.device.Clear(norms2_.span());
    member_.device.AddSquaredNorm(gradients, norms2_.span().first(1));
    group_.ClearVector();
    return true;
  }

  // Their squared norms come over with what is read of the combination, in the same wait.
  collective::Completion EndStep(const Round& round, std::uint64_t) override {
    if (round.first_sum == 0) return {};
    member_.device.AddSquaredNorm(group_.vector(), norms2_.span().last(1));
    member_.device.Copy(norms2_.span(), norms2_on_host_.span());
    member_.device.Axpy(1, first_sum_.span(), group_.vector());
    return {};
  }

  void Launch(const Round& round, TellLanes lanes) override {
    ScaleSum(round, group_.vector());
    // It is open where segments left during the backward pass.
    if (!group_.combination().open()) {
      group_.combination().Begin(*round.aggregator, group_.buffer(), std::move(lanes));
    }
    group_.combination().Finish();
  }

  Progress Follow(Round& round) override {
    const Progress progress =
        group_.combination().Follow(GateOf(round, member_.options.clip_norm.value_or(0)));
    if (progress == Progress::kFailed) return progress;
    const auto samples = static_cast<double>(member_.ledger.reserved());
    if (samples > 0) SetRateOf(round);
    if (sharded_) return progress;
    if (samples > 0) {
      const collective::Completion stepped = member_.optimizer.Step(
          group_.vector(), {.learning_rate = round.rate.rate, .gate = group_.combination().gate()},
          member_.parameters, group_.replica_sums());
      if (stepped.progress == Progress::kFailed) {
        group_.combination().Lose(stepped);
        return stepped.progress;
      }
      queued_ = true;
    }
    group_.ClearBuffer();
    return progress;
  }

  collective::Completion Share(Round& round, const Combined& combined) override {
    if (!sharded_) return {};
    if (group_.size() > 1) round.shared_bytes = group_.vector().size_bytes();
    return sharded_->Share({.gradient = combined.scale, .learning_rate = round.rate.rate});
  }

  void Apply(Round& round, const Combined& combined, bool useful) override {
    if (sharded_ && useful) sharded_->Take();
    if (sharded_) group_.ClearBuffer();
    if (useful && round.first_sum > 0) {
      const std::span<const double> norms2 = norms2_on_host_.span();
      const auto first = static_cast<double>(round.first_sum);
      const double second = static_cast<double>(round.samples) - first;
      round.sums_norm2 = round.unit * round.unit * (norms2[0] / first + norms2[1] / second);
    }
    Learn(round, combined, useful);
    if (useful) queued_ = false;
    Abandon();
  }

  // The optimizer has counted a step that its gate did not let through.
  void Abandon() override {
    if (queued_) member_.optimizer.Uncount();
    queued_ = false;
  }

 private:
  void SetRateOf(Round& round) const {
    SetRate(round, static_cast<double>(member_.ledger.reserved()),
            round.first_sum > 0 ? 2 : member_.ledger.contributors());
  }

  std::optional<ShardedStep> sharded_;
  bool queued_ = false;     // a step of which it is not known yet whether it was taken
  bool halves_ = false;     // passes are added up in two
  cuda::Buffer first_sum_;  // the first; empty until it is needed
  cuda::Sums norms2_;       // of both
  cuda::Array<double> norms2_on_host_;
};

}  // namespace

std::unique_ptr<Synchronizer> MakeGradientRounds(Member& member, Group& group) {
  return std::make_unique<GradientRounds>(member, group);
}

}  // namespace tactus::engine
