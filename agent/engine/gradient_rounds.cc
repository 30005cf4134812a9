// Rounds of one step: the combined gradient is applied at once.
//
// All that the step needs besides the combined vector is known before: members use what the ledger
// reserved for them, so that their samples, and with these the rate under every rule, follow from
// the plan and from earlier rounds. So the step is queued behind the combination; what only that
// can tell (is it finite, how long is it) the gate decides.

#include <utility>

#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/synchronizer.h"

namespace tactus::engine {
namespace {

using collective::Progress;

class GradientRounds : public Synchronizer {
 public:
  GradientRounds(Member& member, Group& group)
      : Synchronizer(member, group, {.early_segments = true}) {}

  bool Runs(const policies::Plan& plan) const override {
    return plan.synchronization == policies::Synchronization::kEveryStep;
  }

  void Open(Round&) override {}

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
    if (samples > 0) {
      SetRate(round, samples, member_.ledger.contributors());
      member_.optimizer.Step(
          group_.vector(), {.learning_rate = round.rate.rate, .gate = group_.combination().gate()},
          member_.parameters);
      queued_ = true;
    }
    group_.ClearBuffer();
    return progress;
  }

  void Apply(Round& round, const Combined& combined, bool useful) override {
    Learn(round, combined, useful);
    if (useful) queued_ = false;
    Abandon();
  }

  // The optimizer has counted a step that its gate did not let through.
  void Abandon() override {
    if (queued_) member_.optimizer.set_steps(member_.optimizer.steps() - 1);
    queued_ = false;
  }

 private:
  bool queued_ = false;  // a step of which it is not known yet whether it was taken
};

}  // namespace

std::unique_ptr<Synchronizer> MakeGradientRounds(Member& member, Group& group) {
  return std::make_unique<GradientRounds>(member, group);
}

}  // namespace tactus::engine
