// Rounds of one step: the combined gradient is applied at once.

#include <utility>

#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/synchronizer.h"

namespace tactus::engine {
namespace {

class GradientRounds : public Synchronizer {
 public:
  GradientRounds(Member& member, Group& group)
      : Synchronizer(member, group, {.early_segments = true}) {}

  bool Runs(const policies::Plan& plan) const override {
    return plan.synchronization == policies::Synchronization::kEveryStep;
  }

  void Open(Round&) override {}

  void Launch(const Round& round, std::vector<cuda::LaneValue> lanes) override {
    ScaleSum(round, group_.vector());
    // It is open where segments left during the backward pass.
    if (!group_.combination().open()) {
      group_.combination().Begin(*round.aggregator, group_.buffer());
    }
    group_.combination().Finish(std::move(lanes));
  }

  void Apply(Round& round, const Combined& combined, bool useful) override {
    ApplyGradient(round, combined, useful);
    member_.device.Fill(0, group_.buffer());
  }
};

}  // namespace

std::unique_ptr<Synchronizer> MakeGradientRounds(Member& member, Group& group) {
  return std::make_unique<GradientRounds>(member, group);
}

}  // namespace tactus::engine
