// Rounds of members that mix their parameters with their neighbours' alone, in every step.
//
// Each has parameters x and momentum m of its own. With g the mean gradient of its samples, eta the
// learning rate, beta the momentum and w the mixing weights, member i sends
//
//   z_i = x_i - eta g_i
//
// to its neighbours, and takes
//
//   d_i = sum over j of w_ij (z_i - z_j)          what z_i exceeds the mix y_i by
//   m_i <- beta m_i + g_i + d_i / eta             where eta > 0
//   x_i <- x_i - eta m_i
//
// which is momentum SGD by (x_i - y_i) / eta, gradient and mixing together: so momentum does not
// enlarge what members differ by. Written so it is momentum SGD, to the bit, for one member and for
// members that are alike. For eta = 0 x_i <- x_i - d_i. Without correct_bias (DmSGD)
//
//   m_i <- beta m_i + g_i,   z_i = x_i - eta m_i,   x_i <- z_i - d_i
//
// The mean of all members' x takes the steps of momentum SGD by the mean of their gradients.
//
// A gradient or loss that is not finite is one member's own affair: it takes part with g = 0, so
// that the weights stay doubly stochastic. A z that is not finite is not sent: neighbours have that
// member's weight for their own, and it goes on from the mean of theirs, without momentum. It is
// told of as a gradient that is not finite is.
//
// Source: [decentlam]. Differs: the state is m, not eta m, so that it is that of sgd in checkpoints
// and for other plans; a member that joins takes over one member's state, not its neighbours' mean.

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "agent/engine/combine/neighbour_exchange.h"
#include "agent/engine/group.h"
#include "agent/engine/member.h"
#include "agent/engine/synchronizer.h"
#include "base/check.h"
#include "policies/mixing.h"

namespace tactus::engine {
namespace {

class NeighbourRounds : public Synchronizer {
 public:
  NeighbourRounds(Member& member, Group& group)
      : Synchronizer(member, group, {.local_updates = true, .own_parameters = true}) {}

  bool Runs(const policies::Plan& plan) const override {
    return plan.synchronization == policies::Synchronization::kDecentlam;
  }

  void Open(Round& round) override {
    if (!exchange_) {
      exchange_ = std::make_unique<NeighbourExchange>(
          group_.transport(), member_.device, member_.parameters.size(),
          member_.options.mean_gradients, group_.combination().before_leave());
      sent_ = member_.device.Allocate(member_.parameters.size());
      gradient_ = member_.device.Allocate(member_.parameters.size());
      gate_ = member_.device.AllocateSums(cuda::kGateLength);
      gate_on_host_ = member_.device.AllocateOnHost<double>(cuda::kGateLength);
      sound_ = member_.device.AllocateSums(cuda::kGateLength);
      sound_on_host_ = member_.device.AllocateOnHost<double>(1);
    }
    round.aggregator = exchange_.get();
  }

  // The device decides whether the gradient counts; the host learns it with the exchange, for which
  // it waits anyway.
  void Launch(const Round& round, TellLanes lanes) override {
    Round rated = round;
    const auto samples = static_cast<double>(member_.ledger.reserved());
    if (samples > 0) SetRate(rated, samples, member_.ledger.contributors());
    rate_ = rated.rate;
    member_.device.Clear(gate_.span());
    if (round.samples > 0) OpenGate(round);
    member_.device.Copy(gate_.span(), gate_on_host_.span());
    member_.device.Copy(group_.vector(), gradient_.span());
    member_.device.Copy(member_.parameters, sent_.span());
    cuda::SgdStep step = StepOf();
    step.gate = gate_.span().data();
    if (corrects()) step.momentum = 0;
    member_.device.Sgd(step, gradient_.span(), sent_.span(), corrects() ? None() : NextMomentum());
    FindWhetherSound();
    exchange_->Prepare(GraphOf(round), sent_.span(), sound_on_host_.span());
    group_.combination().Begin(*round.aggregator, group_.buffer(), std::move(lanes),
                               {.poison = sound_.span().subspan(cuda::kGatePoison, 1)});
    group_.combination().Finish();
  }

  void Apply(Round& round, const Combined& combined, bool useful) override {
    round.rate = rate_;
    round.exchange = exchange_->taken();
    if (useful) Take();
    member_.optimizers_differ = true;
    member_.parameters_differ = true;
    Learn(round, combined, useful);
    round.gradient_length = 0;  // no gradient was combined
    group_.ClearBuffer();
  }

 private:
  static std::span<float> None() { return {}; }
  bool corrects() const { return member_.options.neighbours.correct_bias; }

  const SgdOptions& sgd() const {
    const auto* const options = std::get_if<SgdOptions>(&member_.options.optimizer);
    TACTUS_CHECK(options != nullptr && !options->nesterov);  // no job has another
    return *options;
  }

  policies::MixingGraph GraphOf(const Round& round) const {
    const policies::Plan& plan = group_.round_plan();
    return policies::Placed(policies::GraphOf(*plan.graph, group_.size(), round.number),
                            plan.circle);
  }

  void OpenGate(const Round& round) {
    const std::span<double> norm2 = norm2_.span();
    member_.device.Clear(norm2);
    member_.device.AddSquaredNorm(group_.vector(), norm2);
    const double sum_of = member_.options.mean_gradients ? 1 : static_cast<double>(round.samples);
    member_.device.Gate({.samples = sum_of, .clip_norm = member_.options.clip_norm.value_or(0)},
                        {.norm2 = norm2, .loss = group_.loss_sum()}, gate_.span());
  }

  // As a gate that is open for what is finite. The device's: the host has it with what it sends.
  void FindWhetherSound() {
    const std::span<double> norm2 = norm2_.span();
    member_.device.Clear(norm2);
    member_.device.AddSquaredNorm(sent_.span(), norm2);
    member_.device.Clear(sound_.span());
    member_.device.Gate({}, {.norm2 = norm2, .loss = norm2}, sound_.span());
    member_.device.Copy(sound_.span().subspan(cuda::kGateOpen, 1), sound_on_host_.span());
  }

  cuda::SgdStep StepOf() const {
    return {.learning_rate = static_cast<float>(rate_.rate),
            .momentum = static_cast<float>(sgd().momentum),
            .weight_decay = static_cast<float>(sgd().weight_decay)};
  }

  std::span<float> Momentum() {
    const std::vector<std::span<float>> state = member_.optimizer.State();
    return state.empty() ? std::span<float>() : state.front();
  }

  // The momentum after this step, until it is known that the step counts.
  std::span<float> NextMomentum() {
    const std::span<float> momentum = Momentum();
    if (momentum.empty()) return momentum;
    if (next_momentum_.size() == 0) next_momentum_ = member_.device.Allocate(momentum.size());
    member_.device.Copy(momentum, next_momentum_.span());
    return next_momentum_.span();
  }

  void Take() {
    if (!exchange_->finite()) return Repair();
    return corrects() ? TakeCorrected() : TakeMixed();
  }

  // What is not finite would stay so: no part of it is its own any more.
  void Repair() {
    if (exchange_->mean().empty()) return;
    member_.device.Copy(exchange_->mean(), member_.parameters);
    member_.optimizer.ResetMomentum();
  }

  // sgd's step by the gradient and what mixing adds to it.
  void TakeCorrected() {
    const std::span<const double> gate = gate_on_host_.span();
    const bool counts = gate[cuda::kGateOpen] != 0;
    const auto rate = static_cast<float>(rate_.rate);
    if (rate == 0) return member_.device.Axpy(-1, exchange_->excess(), member_.parameters);
    cuda::SgdStep step = StepOf();
    if (counts) {
      member_.device.Scale(static_cast<float>(gate[cuda::kGateScale]), gradient_.span());
    } else {
      member_.device.Fill(0, gradient_.span());
      step.weight_decay = 0;
    }
    member_.device.Axpy(1 / rate, exchange_->excess(), gradient_.span());
    member_.device.Sgd(step, gradient_.span(), member_.parameters, Momentum());
  }

  void TakeMixed() {
    member_.device.Copy(sent_.span(), member_.parameters);
    member_.device.Axpy(-1, exchange_->excess(), member_.parameters);
    const std::span<float> momentum = Momentum();
    if (!momentum.empty()) member_.device.Copy(next_momentum_.span(), momentum);
  }

  std::unique_ptr<NeighbourExchange> exchange_;
  cuda::Buffer sent_;           // z
  cuda::Buffer gradient_;       // of this member's samples, as they were added up
  cuda::Buffer next_momentum_;  // without the correction
  cuda::Sums norm2_ = member_.device.AllocateSums(1);
  cuda::Sums gate_;
  cuda::Array<double> gate_on_host_;
  cuda::Sums sound_;  // the gate of z
  cuda::Array<double> sound_on_host_;
  policies::LearningRate::Rate rate_{};  // of the round that is combined
};

}  // namespace

std::unique_ptr<Synchronizer> MakeNeighbourRounds(Member& member, Group& group) {
  return std::make_unique<NeighbourRounds>(member, group);
}

}  // namespace tactus::engine
