#include "policies/prior_trial.h"

#include <algorithm>
#include <cmath>

#include "policies/figures.h"

namespace tactus::policies {
namespace {

std::string RegretOfLoss(const Observations& seen, double loss_floor) {
  const std::deque<WholeRound>& rounds = seen.rounds();
  if (seen.AnySkipped({0, rounds.size()})) return "numbers were not finite";
  const double first = rounds.front().loss;
  const double latest = rounds.back().loss;
  if (latest - first <= ChangeTrial::kLossMargin * std::abs(first - loss_floor)) return {};
  return "the loss rose from " + Figure(first) + " to " + Figure(latest);
}

std::string RegretOfTransfer(const Prior& prior, const Observations& seen) {
  const std::deque<WholeRound>& rounds = seen.rounds();
  const double before = prior.transfer_seconds;
  const double least = std::ranges::min(rounds, {}, &WholeRound::transfer_seconds).transfer_seconds;
  const double usual = seen.TransferSeconds().value_or(before);
  const bool faster = kPriorTransferFactor * least < before;
  if (!faster && usual <= kPriorTransferFactor * before) return {};
  return "a transfer takes " + Figure(faster ? least : usual) + " s, and " + Figure(before) +
         " s were expected";
}

}  // namespace

ChangeTrial::Judgement JudgePrior(const Prior& prior, const Observations& seen, double loss_floor) {
  using Verdict = ChangeTrial::Verdict;
  if (seen.rounds().empty()) return {};
  std::string rise = RegretOfLoss(seen, loss_floor);
  if (!rise.empty()) {
    return {.verdict = Verdict::kRegretted, .reason = std::move(rise), .undo = true};
  }
  std::string regret = RegretOfTransfer(prior, seen);
  if (!regret.empty()) return {.verdict = Verdict::kRegretted, .reason = std::move(regret)};
  const bool known = seen.SpeedsKnown() && seen.TransferSeconds() &&
                     seen.rounds().size() >= Observations::kObservationsMin;
  return {.verdict = known ? Verdict::kKept : Verdict::kOpen};
}

}  // namespace tactus::policies
