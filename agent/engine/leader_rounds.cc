// Rounds of members that each train by themselves and are pulled towards whom trains best.
//
// Each has parameters of its own, and takes local steps with an optimizer of its own. A round ends
// as soon as all have taken their shares of the steps, or as much time as these were expected to
// take and one step: who is ready goes on until then, so that nobody is held up by who is slow.
// Then each is pulled towards the leader of its node, and towards the leader of all:
//
//   x <- x + c_1 (x_node - x)     with each round
//   x <- x + c_2 (x_group - x)    with each round; of groups with nodes of several members, with
//                                 each that ends `period` steps
//
// and between two of them, with each step, towards where these were: by p_1 / tau_1, p_2 / tau_2.
// A step whose gradient or loss is not finite is not taken by the member whose it is. After some in
// a row, or where its parameters are not finite, a member takes over the leader's instead of being
// pulled: of no number part of it is still none.
//
// Source: [lsgd]. Differs: its workers ask a coordinator when to meet; here each knows its share by
// what all took the last time. Its code averages models into the leader that it pulls towards; here
// that is as it was received, until the next is.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "agent/engine/combine/leader_exchange.h"
#include "agent/engine/gradient_facts.h"
#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/start_barrier.h"
#include "agent/engine/synchronizer.h"
#include "base/check.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;

// Of a member's share of steps, so much may be taken until all are ready.
constexpr std::uint64_t kMostShares = 2;
// Steps in a row that were not finite, after which a member goes on from its leader.
constexpr std::uint32_t kSkippedMost = 3;

std::vector<std::uint32_t> NodesOf(const Member& member, const Group& group) {
  if (member.options.nodes.size() == group.size()) return member.options.nodes;
  std::vector<std::uint32_t> apart(group.size());
  for (std::uint32_t rank = 0; rank < group.size(); ++rank) apart[rank] = rank;
  return apart;
}

class LeaderRounds : public Synchronizer {
 public:
  LeaderRounds(Member& member, Group& group)
      : Synchronizer(member, group,
                     {.local_updates = true, .elastic = true, .own_parameters = true}),
        recent_(member.options.leader.loss_window),
        norms2_(member.device.AllocateSums(2)),
        norms2_on_host_(member.device.AllocateOnHost<double>(2)),
        gate_on_host_(member.device.AllocateOnHost<double>(cuda::kGateLength)) {}

  bool Runs(const policies::Plan& plan) const override {
    return plan.synchronization == policies::Synchronization::kLsgd;
  }

  void Open(Round& round) override {
    const policies::Plan& plan = group_.round_plan();
    if (!exchange_) {
      exchange_ = std::make_unique<LeaderExchange>(
          group_.transport(), member_.device, member_.parameters.size(), NodesOf(member_, group_),
          group_.combination().before_leave());
    }
    round.aggregator = exchange_.get();
    period_ = exchange_->tiered()
                  ? std::min(member_.options.leader.NodePeriod(plan.period), plan.period)
                  : plan.period;
    ShareOutSamples(plan);
    step_ = StepOf(plan);
    round.rate = member_.learning_rate.NextOfWindow(round.rule, step_);
    begun_ = member_.edge;
    step_samples_.clear();
    member_.local_steps.Begin(member_.parameters);
    open_ = true;
  }

  // Queued on the device without a wait: the gate decides there whether the step is taken. Each
  // step's loss is looked at by itself.
  Completion EndStep(const Round& round, std::uint64_t samples) override {
    LocalSteps& steps = member_.local_steps;
    const std::span<float> gradients = group_.vector();
    const std::span<double> loss = group_.loss_sum();
    MakeRoomFor(round.steps);
    const std::span<double> norm2 = norms2_.span().first(1);
    member_.device.Clear(norm2);
    member_.device.AddSquaredNorm(gradients, norm2);
    const double sum_of = member_.options.mean_gradients ? 1 : static_cast<double>(samples);
    member_.device.Gate({.samples = sum_of, .clip_norm = member_.options.clip_norm.value_or(0)},
                        {.norm2 = norm2, .loss = loss}, steps.gate());
    member_.optimizer.Step(gradients, {.learning_rate = round.rate.rate, .gate = steps.gate()},
                           member_.parameters);
    const std::span<double> seen = seen_.span().subspan(2 * (round.steps - 1), 2);
    member_.device.Copy(loss, seen.first(1));
    member_.device.Copy(steps.gate().subspan(cuda::kGateOpen, 1), seen.last(1));
    member_.device.Clear(loss);
    step_samples_.push_back(samples);
    const LeaderOptions& options = member_.options.leader;
    PullWithStep(group_leader_.span(), options.step_pull / group_.round_plan().period);
    if (exchange_->tiered()) {
      PullWithStep(node_leader_.span(), options.node_step_pull / period_);
    }
    group_.ClearVector();
    step_over_ = true;
    return {};
  }

  bool MayEnd(const Round& round) const override {
    return round.steps + 1 >= steps_due_ || expected_ > Duration{};
  }

  std::optional<Completion> End(const Round& round, bool exhausted) override {
    const bool step_over = std::exchange(step_over_, false);
    const bool late = expected_ > Duration{} && round.finished - begun_ >= expected_;
    const bool ready = step_over && (round.steps >= steps_due_ || late);
    if (!exhausted && !ready && !(start_.posted() && step_over)) return std::nullopt;
    if (!start_.posted()) start_.Post(group_.transport());
    return start_.Look(round.finished, exhausted);
  }

  // What the device found of the steps comes over in one wait. Parameters that are not finite spoil
  // this member's lanes by their norm.
  void Launch(const Round& round, TellLanes lanes) override {
    length_ = round.finished - begun_;
    const std::span<double> norm2 = norms2_.span().last(1);
    member_.device.Copy(member_.parameters, group_.vector());
    member_.device.Clear(norm2);
    member_.device.AddSquaredNorm(group_.vector(), norm2);
    TakeSeen();
    const bool sound = std::isfinite(norms2_on_host_.span()[1]);
    const bool told = sound && std::isfinite(loss_sum_);
    repairs_ = !sound || recent_.skipped() >= kSkippedMost;
    LeaderScore score = recent_.Score();
    score.sound = sound;
    const std::uint32_t least = std::max(1u, member_.options.leader.loss_window / 2);
    exchange_->Prepare(
        {.score = score, .loss_told = told, .of_group = FollowsGroup(round), .least_steps = least});
    group_.combination().Begin(*round.aggregator, group_.buffer(), std::move(lanes),
                               {.first_loss = member_.local_steps.first_loss()});
    group_.combination().Finish();
  }

  // Nobody else's fault keeps a member from its pull: what is useful is whether there is a leader.
  void Apply(Round& round, const Combined& combined, bool useful) override {
    open_ = false;
    const Leaders& leaders = exchange_->leaders();
    const std::span<const float> of_node = exchange_->of_node();
    const bool of_group = FollowsGroup(round) && leaders.of_group;
    Remember(of_group ? std::span<const float>(combined.vector) : std::span<const float>(),
             leaders.of_nodes[group_.rank()] == group_.rank() ? member_.parameters : of_node);
    if (repairs_) {
      Repair(of_group ? std::span<const float>(combined.vector) : of_node);
    } else {
      Pull(of_node, member_.options.leader.node_pull);
      if (of_group) Pull(combined.vector, member_.options.leader.pull);
    }
    member_.optimizers_differ = true;
    member_.parameters_differ = true;
    round.gradient_norm2 =
        round.steps > 0 ? gate_on_host_.span()[cuda::kGateNorm2Sum] / round.steps : 0;
    round.gradient_length = 0;  // no gradient was combined
    round.updates = static_cast<std::uint32_t>(
        std::max(1.0, std::ceil(combined.lanes.samples / members_samples_)));
    NoteSteps(combined.lanes);
    group_.ClearBuffer();
    if (!useful) return;
    member_.steps += round.updates;
    member_.learning_rate.AppliedWindow(round.rule,
                                        {.step = step_,
                                         .samples = combined.lanes.samples / contributors_,
                                         .updates = round.updates},
                                        {.contributors = 1});
  }

  double SamplesTold(const Lanes& lanes) const override { return exchange_->SamplesTold(lanes); }

  void Abandon() override {
    if (std::exchange(open_, false)) {
      member_.local_steps.Restore(member_.parameters);
      member_.optimizer.ResetMomentum();
      member_.optimizers_differ = true;
    }
    start_.Abandon();
  }

 private:
  // A round of the group's leader is one of them all where no node has several members.
  bool FollowsGroup(const Round& round) const {
    if (!exchange_->tiered()) return true;
    const std::uint64_t every = std::max<std::uint64_t>(1, group_.round_plan().period / period_);
    return (round.number + 1) % every == 0;
  }

  // How many steps each is to take, and so much more as it may until the others are ready.
  void ShareOutSamples(const policies::Plan& plan) {
    std::vector<bool> taking_part;
    members_samples_ = 0;
    contributors_ = 0;
    for (const std::uint32_t size : plan.batch_sizes) {
      taking_part.push_back(size > 0);
      members_samples_ += size;
      contributors_ += size > 0 ? 1 : 0;
    }
    if (steps_before_.size() != taking_part.size()) steps_before_.assign(taking_part.size(), 0);
    const std::vector<std::uint64_t> due = StepsUntilPull(steps_before_, taking_part, period_);
    steps_due_ = std::max<std::uint64_t>(due[group_.rank()], 1);
    expected_ = ExpectedOf(due);
    std::vector<std::uint64_t> shares;
    double sum = 0;
    for (std::size_t rank = 0; rank < due.size(); ++rank) {
      shares.push_back(plan.batch_sizes[rank] * kMostShares * (due[rank] + 1));
      sum += static_cast<double>(shares.back());
    }
    const double most = static_cast<double>(policies::kRoundSamplesMax);
    for (std::size_t rank = 0; sum > most && rank < due.size(); ++rank) {
      const double share = std::floor(static_cast<double>(shares[rank]) * most / sum);
      shares[rank] = static_cast<std::uint64_t>(share);
    }
    member_.ledger.SetShares(std::move(shares), group_.rank());
  }

  // So long as the last one, if that had had as many steps; nothing: none was measured.
  Duration ExpectedOf(const std::vector<std::uint64_t>& due) const {
    std::uint64_t before = 0;
    std::uint64_t now = 0;
    for (const std::uint64_t steps : steps_before_) before += steps;
    for (const std::uint64_t steps : due) now += steps;
    if (before == 0) return {};
    return Seconds(ToSeconds(length_) * static_cast<double>(now) / static_cast<double>(before));
  }

  void NoteSteps(const Lanes& lanes) {
    const policies::Plan& plan = group_.round_plan();
    for (std::size_t rank = 0; rank < plan.batch_sizes.size(); ++rank) {
      const double size = plan.batch_sizes[rank];
      const double steps = size > 0 ? std::ceil(lanes.member_samples[rank] / size) : 0;
      steps_before_[rank] = static_cast<std::uint64_t>(steps);
    }
  }

  // Nothing is averaged, so a step is of one member's samples: on average.
  static policies::LearningRate::LocalStep StepOf(const policies::Plan& plan) {
    double samples = 0;
    double members = 0;
    for (const double size : plan.batch_sizes) {
      samples += size;
      members += size > 0 ? 1 : 0;
    }
    return {.samples = samples / members, .contributors = 1, .own = samples / members};
  }

  // Of the round's steps: the sum of losses, and whether each was taken.
  void MakeRoomFor(std::uint32_t steps) {
    const std::size_t wanted = 2 * static_cast<std::size_t>(steps);
    if (seen_.size() >= wanted) return;
    cuda::Sums more = member_.device.AllocateSums(std::max<std::size_t>(64, 2 * wanted));
    if (seen_.size() > 0) member_.device.Copy(seen_.span(), more.span().first(seen_.size()));
    seen_ = std::move(more);
    seen_on_host_ = member_.device.AllocateOnHost<double>(seen_.size());
  }

  // Waits for the device. Of steps that were not taken the loss counts as that of the others; where
  // none was taken it is no number, which spoils this member's lanes.
  void TakeSeen() {
    const std::size_t steps = step_samples_.size();
    const std::size_t length = 2 * steps;
    if (steps > 0) {
      member_.device.Copy(seen_.span().first(length), seen_on_host_.span().first(length));
    }
    member_.device.Copy(member_.local_steps.gate(), gate_on_host_.span());
    member_.device.Copy(norms2_.span(), norms2_on_host_.span());
    member_.device.Synchronize();
    double taken_loss = 0;
    double taken_samples = 0;
    double samples = 0;
    loss_sum_ = 0;
    for (std::size_t i = 0; i < steps; ++i) {
      const double loss = seen_on_host_.span()[2 * i];
      const bool taken = seen_on_host_.span()[2 * i + 1] != 0;
      recent_.Add(loss, step_samples_[i], taken);
      const auto count = static_cast<double>(step_samples_[i]);
      samples += count;
      if (!taken) continue;
      taken_loss += loss;
      taken_samples += count;
    }
    if (steps == 0) return;
    const double mean =
        taken_samples > 0 ? taken_loss / taken_samples : std::numeric_limits<double>::quiet_NaN();
    const bool first_taken = seen_on_host_.span()[1] != 0;
    const double of_first = static_cast<double>(step_samples_.front());
    loss_sum_ = taken_samples == samples ? taken_loss : mean * samples;
    const std::array<double, 1> all = {loss_sum_};
    const std::array<double, 1> first = {first_taken ? seen_on_host_.span()[0] : mean * of_first};
    member_.device.Copy(all, group_.loss_sum());
    member_.device.Copy(first, member_.local_steps.first_loss());
  }

  // ---- Pulls

  // Between two exchanges: the vector is free. Nothing where no leader is known.
  void PullWithStep(std::span<const float> leader, double share) {
    PullTowards(member_.device, leader, share, group_.vector(), member_.parameters);
  }

  // While the vector holds what was combined.
  void Pull(std::span<const float> leader, double share) {
    if (apart_.size() == 0) apart_ = member_.device.Allocate(member_.parameters.size());
    PullTowards(member_.device, leader, share, apart_.span(), member_.parameters);
  }

  void Repair(std::span<const float> leader) {
    if (leader.empty()) return;
    member_.device.Copy(leader, member_.parameters);
    member_.optimizer.ResetMomentum();
    recent_.Restart();
  }

  // Towards where leaders were, for the steps to come: as they were received.
  void Remember(std::span<const float> of_group, std::span<const float> of_node) {
    const LeaderOptions& options = member_.options.leader;
    const auto keep = [&](std::span<const float> leader, double pull, cuda::Buffer& kept) {
      if (pull == 0 || leader.empty()) return;
      if (kept.size() == 0) kept = member_.device.Allocate(leader.size());
      member_.device.Copy(leader, kept.span());
    };
    keep(of_group, options.step_pull, group_leader_);
    if (exchange_->tiered()) keep(of_node, options.node_step_pull, node_leader_);
  }

  std::unique_ptr<LeaderExchange> exchange_;  // from the first Open on
  RecentLosses recent_;                       // of this member, in this group
  policies::LearningRate::LocalStep step_{};
  double members_samples_ = 1;               // of a step of all
  double contributors_ = 1;                  // members with samples
  std::uint32_t period_ = 1;                 // of this round
  std::uint64_t steps_due_ = 1;              // of this member in it
  Duration expected_{};                      // of it; 0: not known
  Duration length_{};                        // of the round launched last
  Instant begun_{};                          // the running round
  std::vector<std::uint64_t> steps_before_;  // in the round before, by rank
  std::vector<std::uint64_t> step_samples_;  // of the round
  double loss_sum_ = 0;                      // of the round's samples, as the lanes have it
  bool open_ = false;                        // parameters may be within a round
  bool step_over_ = false;                   // the batch before ended a step
  bool repairs_ = false;                     // it takes over the leader's parameters
  StartBarrier start_;                       // the end of the round
  cuda::Sums norms2_;                        // of a step's gradient, of the parameters
  cuda::Array<double> norms2_on_host_;
  cuda::Sums seen_;  // of each step, its loss and its gate
  cuda::Array<double> seen_on_host_;
  cuda::Array<double> gate_on_host_;
  cuda::Buffer apart_;         // of a pull
  cuda::Buffer group_leader_;  // that the steps are pulled towards
  cuda::Buffer node_leader_;
};

}  // namespace

std::unique_ptr<Synchronizer> MakeLeaderRounds(Member& member, Group& group) {
  return std::make_unique<LeaderRounds>(member, group);
}

}  // namespace tactus::engine
