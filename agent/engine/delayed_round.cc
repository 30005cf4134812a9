// The part of RoundEngine that overlaps: a round computes while the former one is combined.

#include <algorithm>
#include <utility>

#include "agent/engine/round_engine.h"

namespace tactus::engine {

using collective::Completion;
using collective::Progress;
using policies::Synchronization;

// Enough for a member that becomes twice as fast: what is left over returns a round later, and too
// much would mix epochs for nothing.
void RoundEngine::SetDelayedShares() {
  std::vector<std::uint64_t> shares;
  shares.reserve(plan_.batch_sizes.size());
  for (std::size_t i = 0; i < plan_.batch_sizes.size(); ++i) {
    const std::uint64_t step = plan_.batch_sizes[i];
    const std::uint64_t pace = paces_.empty() ? 0 : 2 * paces_[i] + step;
    shares.push_back(std::min(step * plan_.period, std::max(step * kStepsReserved, pace)));
  }
  ledger_.SetShares(std::move(shares), rank());
}

// Whether everybody is ready for the next round: READY is posted with the first step, and the
// barrier starts when the pending combination is done here. Who has no sample left waits.
bool RoundEngine::PostReady(bool exhausted) {
  if (running_.steps == 0 && !exhausted) return false;
  if (barrier_ == nullptr) {
    // Adasum is several collectives in a row; the barrier must come after all of them.
    if (pending_ && !pending_->aggregator->by_segments()) {
      if (!exhausted && combination_.Poll() == Progress::kRunning) return false;
      combination_.Wait();
    }
    barrier_ = transport_.StartBarrier();
  }
  return exhausted || barrier_->Poll() != Progress::kRunning;
}

void RoundEngine::CloseDelayed() {
  const bool waits = barrier_->Poll() == Progress::kRunning;
  const Completion start = barrier_->Wait();
  barrier_.reset();
  if (start.progress == Progress::kFailed) return LoseGroup(start.reason);
  const Instant now = waits ? start.at : running_.finished;
  running_.blocked = now - running_.finished;
  running_.length = now - edge_;
  edge_ = now;
  if (pending_) ApplyPending();
  if (outcome_ == Outcome::kGroupLost || outcome_ == Outcome::kDiverged) return;
  LaunchDelayed(now);
  round_open_ = false;
  const bool goes_on =
      outcome_ == Outcome::kTraining && plan_.synchronization == Synchronization::kDelayed;
  if (!goes_on || UsedUp()) Drain();
}

// The running round's gradient leaves in a buffer of its own, so that the next may begin.
void RoundEngine::LaunchDelayed(Instant now) {
  if (delayed_.size() != buffers_.gradients.size()) {
    delayed_ = device_.Allocate(buffers_.gradients.size());
  }
  device_.Copy(buffers_.gradients, delayed_.span());
  device_.Fill(0, buffers_.gradients);
  if (const auto samples = static_cast<float>(running_.samples); samples > 0) {
    Scale(running_.aggregator->FactorOfSum(samples), delayed_.span().first(length_));
  }
  BeginCombination(delayed_.span());
  combination_.Finish(GiveLanes());
  running_.combining = now;
  pending_ = running_;
}

void RoundEngine::ApplyPending() {
  const Completion completion = combination_.Wait();
  Round round = *std::exchange(pending_, {});
  if (completion.progress == Progress::kFailed) return LoseGroup(completion.reason);
  Apply(round, delayed_.span().first(length_), completion);
}

// The pending round must be applied before another may open: rounds or samples are used up.
bool RoundEngine::UsedUp() const {
  return !ledger_.HasFree() || (options_.stop.rounds && rounds_ + 1 >= *options_.stop.rounds);
}

// Applies the pending round without computing meanwhile.
void RoundEngine::Drain() {
  const Duration waited = std::max(Duration{}, combination_.Wait().at - edge_);
  pending_->blocked += waited;
  pending_->length += waited;
  edge_ += waited;
  ApplyPending();
}

}  // namespace tactus::engine
