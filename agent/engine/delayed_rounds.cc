// Rounds that overlap: a round computes while the former one is combined, until everybody is ready
// for the next.
//
// A gradient that is one round late is taken at x and applied to where the step between has taken x
// meanwhile. Of that step all but its gradient is known when the round begins. With look_ahead it
// computes there, at
//
//   y = x - eta beta m    m: the optimizer's momentum; with nesterov beta^2
//
// so that only the one step's gradient is missing. All members move by the same bits, and back
// before the next step is taken: at an edge the parameters are x.
//
// Source: [abs-sgd], whose READY and START are a barrier here; looking ahead: design, after what
// pipelines do about weights that are late; memory, unverified: [spectrain].

#include <algorithm>
#include <utility>

#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/start_barrier.h"
#include "agent/engine/synchronizer.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;

// Of what is reserved for a member while its pace is not known. [steps]
constexpr std::uint64_t kStepsReserved = 4;

class DelayedRounds : public Synchronizer {
 public:
  DelayedRounds(Member& member, Group& group)
      : Synchronizer(member, group, {.overlapping = true, .elastic = true}) {}

  bool Runs(const policies::Plan& plan) const override {
    return plan.synchronization == policies::Synchronization::kDelayed;
  }

  // How many samples a member will need is not known, so a round reserves what it is likely to,
  // from its pace in the round applied last: enough for a member that becomes twice as fast. What
  // is left over returns a round later, and too much would mix epochs for nothing.
  void Open(Round&) override {
    const policies::Plan& plan = group_.plan();
    const std::vector<std::uint64_t> paces = ToCounts(group_.combination().lanes().member_samples);
    std::vector<std::uint64_t> shares;
    shares.reserve(plan.batch_sizes.size());
    for (std::size_t i = 0; i < plan.batch_sizes.size(); ++i) {
      const std::uint64_t step = plan.batch_sizes[i];
      shares.push_back(
          std::min(step * plan.period, std::max(step * kStepsReserved, 2 * paces[i] + step)));
    }
    member_.ledger.SetShares(std::move(shares), group_.rank());
    LookAhead();
  }

  bool MayEnd(const Round&) const override { return true; }

  std::optional<Completion> End(const Round& round, bool exhausted) override {
    if (!start_.posted() && !Ready(round, exhausted)) return std::nullopt;
    return start_.Look(round.finished, exhausted);
  }

  void Abandon() override {
    start_.Abandon();
    LookBack();
    under_way_ = false;
  }

  // The gradient leaves in a buffer of its own, so that the next round may begin.
  void Launch(const Round& round, TellLanes lanes) override {
    const std::span<float> gradients = group_.buffer();
    if (launched_.size() != gradients.size()) launched_ = member_.device.Allocate(gradients.size());
    member_.device.Copy(gradients, launched_.span());
    group_.ClearBuffer();
    ScaleSum(round, launched_.span().first(group_.vector().size()));
    group_.combination().Begin(*round.aggregator, launched_.span(), std::move(lanes));
    group_.combination().Finish();
    under_way_ = true;
  }

  // Of how many samples it is the lanes tell, and they are here before the step is due: behind the
  // barrier that ended the round computed meanwhile.
  void Apply(Round& round, const Combined& combined, bool useful) override {
    LookBack();
    under_way_ = false;
    const double samples = combined.lanes.samples;
    if (samples > 0) SetRate(round, samples, round.spread.contributors);
    if (useful) {
      const double scale =
          cuda::ClippedScale(round.aggregator->Divisor(round.InUnits(samples)), combined.norm2,
                             member_.options.clip_norm.value_or(0));
      member_.optimizer.Step(launched_.span().first(combined.vector.size()),
                             {.gradient = scale, .learning_rate = round.rate.rate},
                             member_.parameters);
      rate_ = round.rate.rate;
    }
    Learn(round, combined, useful);
  }

 private:
  // By the rate of the step before, as how many samples the next will be of is not known. A round
  // of which nothing is under way is applied to the very parameters that it computes with.
  void LookAhead() {
    if (!under_way_) rate_ = 0;  // of rounds before others
    if (!member_.options.look_ahead || rate_ == 0) return;
    ahead_ = rate_;
    member_.optimizer.MoveAhead(ahead_, member_.parameters);
  }

  void LookBack() {
    if (ahead_ != 0) member_.optimizer.MoveAhead(-std::exchange(ahead_, 0), member_.parameters);
  }

  // READY is posted with the first step, and the barrier starts when the pending combination is
  // done here. Who has no sample left waits.
  bool Ready(const Round& round, bool exhausted) {
    if (round.steps == 0 && !exhausted) return false;
    Combination& pending = group_.combination();
    // Of several collectives in a row, the barrier must come after all.
    if (pending.open() && !pending.by_segments()) {
      if (!exhausted && pending.Poll() == Progress::kRunning) return false;
      pending.Wait();
    }
    start_.Post(group_.transport());
    return true;
  }

  cuda::Buffer launched_;   // gradients and lanes of the round that is combined; outlives that
  StartBarrier start_;      // when everybody is ready for the next
  bool under_way_ = false;  // a round was launched and is not applied
  double rate_ = 0;         // of the step before
  double ahead_ = 0;        // with which parameters have been moved ahead; 0: they are in place
};

}  // namespace

std::unique_ptr<Synchronizer> MakeDelayedRounds(Member& member, Group& group) {
  return std::make_unique<DelayedRounds>(member, group);
}

}  // namespace tactus::engine
