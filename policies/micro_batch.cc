#include "policies/micro_batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "policies/figures.h"
#include "policies/proportional_shares.h"
#include "policies/round_rates.h"

namespace tactus::policies {
namespace {

std::uint64_t Sum(const std::vector<std::uint32_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

bool Off(const std::vector<std::uint32_t>& sizes, const std::vector<std::uint32_t>& wanted) {
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    const double least = std::min(sizes[rank], wanted[rank]);
    const double most = std::max(sizes[rank], wanted[rank]);
    // One sample is rounding, however large a share of a small batch it is.
    if (most > least + 1 && most > least * (1 + MicroBatch::kOffMin)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::uint32_t> MicroBatches(const Observations& seen, std::uint64_t total,
                                        const BatchOptions& options) {
  const std::vector<double>& speeds = seen.speeds();
  const double step = static_cast<double>(total) / seen.SpeedSum();
  const double seconds = std::clamp(seen.TransferSeconds().value_or(0) * MicroBatch::kFraction,
                                    MicroBatch::kShareMin * step, step);
  std::vector<std::uint32_t> sizes;
  sizes.reserve(speeds.size());
  for (const double speed : speeds) {
    sizes.push_back(static_cast<std::uint32_t>(std::clamp(std::round(speed * seconds),
                                                          static_cast<double>(options.batch_min),
                                                          static_cast<double>(options.batch_max))));
  }
  return sizes;
}

MicroBatch::MicroBatch(const BatchOptions& options, std::unique_ptr<AxisPolicy> otherwise)
    : options_(options), otherwise_(std::move(otherwise)) {
  TACTUS_CHECK(otherwise_ != nullptr);
}

std::string MicroBatch::Start(Plan& first, const Observations& seen) {
  std::string reason = otherwise_->Start(first, seen);
  total_ = Sum(first.batch_sizes);
  rested_ = TrainingWait::From(seen);
  rest_seconds_ = kRestSeconds;
  seconds_ = seen.seconds();
  return reason;
}

void MicroBatch::Resume(const Plan& in_force) {
  otherwise_->Resume(in_force);
  // Sizes of delayed rounds are micro-batches: the total to go back to is then the one of Start().
  if (in_force.synchronization != Synchronization::kDelayed) total_ = Sum(in_force.batch_sizes);
}

std::optional<Proposal> MicroBatch::Decide(const Situation& situation) {
  const Plan& in_force = situation.in_force;
  if (in_force.synchronization != Synchronization::kDelayed) {
    // `otherwise` may move the total: what delayed rounds come back to is the last one.
    total_ = Sum(in_force.batch_sizes);
    return otherwise_->Decide(situation);
  }
  const Observations& seen = situation.seen;
  const double passed = seen.seconds() - std::exchange(seconds_, seen.seconds());
  rest_seconds_ = std::max(kRestSeconds, rest_seconds_ * std::exp2(-passed / kHalfLifeSeconds));
  ++rested_.rounds;
  if (!rested_.Over(seen, rest_seconds_, kRestRounds)) return std::nullopt;
  std::optional<std::vector<std::uint32_t>> sizes = Better(in_force.batch_sizes, seen);
  if (!sizes) return std::nullopt;
  rested_ = TrainingWait::From(seen);
  rest_seconds_ = std::min(2 * rest_seconds_, kRestSecondsMax);
  Proposal proposal{.plan = in_force};
  const double before = seen.StepSeconds(in_force.batch_sizes);
  const double after = seen.StepSeconds(*sizes);
  proposal.plan.batch_sizes = *std::move(sizes);
  const double transfer = *seen.TransferSeconds();
  proposal.decision = {.inputs = {{"longest micro-batch", before, "s"},
                                  {"longest micro-batch with the new sizes", after, "s"},
                                  {"transfer of a round", transfer, "s"}},
                       .metric = kSamplesPerSecond,
                       .predicted_gain = 0,
                       .alternatives = {{ValueOf(in_force, Axis::kBatch), 0}},
                       .reason = "micro-batches of equal time, a part of the transfer of " +
                                 Figure(transfer) + " s: " + Figure(before) + " s → " +
                                 Figure(after) +
                                 " s, so that no reduction waits long for the last of them"};
  return proposal;
}

std::string MicroBatch::Follow(Plan& plan, const Observations& seen) const {
  if (plan.synchronization == Synchronization::kDelayed) {
    std::optional<std::vector<std::uint32_t>> sizes = Better(plan.batch_sizes, seen);
    if (!sizes) return {};
    plan.batch_sizes = *std::move(sizes);
    return "delayed rounds are made of micro-batches of equal time, a part of the transfer";
  }
  if (Sum(plan.batch_sizes) == total_ || !seen.SpeedsKnown()) return {};
  plan.batch_sizes = ProportionalShares(seen.speeds(), total_, options_);
  return "rounds that are not delayed have a batch of " + std::to_string(total_) +
         " samples a step again";
}

std::optional<std::vector<std::uint32_t>> MicroBatch::Better(
    const std::vector<std::uint32_t>& sizes, const Observations& seen) const {
  if (!seen.SpeedsKnown() || !seen.TransferSeconds()) return std::nullopt;
  std::vector<std::uint32_t> wanted = MicroBatches(seen, total_, options_);
  if (sizes.size() != wanted.size() || !Off(sizes, wanted)) return std::nullopt;
  return wanted;
}

}  // namespace tactus::policies
