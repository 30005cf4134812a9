#include "policies/auto_encoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "policies/figures.h"
#include "policies/round_forecast.h"
#include "policies/round_rates.h"

namespace tactus::policies {
namespace {

// Rounds are as many, and as long but for what the exchange takes.
bool SameWindows(const Plan& one, const Plan& other) {
  return one.synchronization == other.synchronization && one.period == other.period &&
         one.aggregation == other.aggregation;
}

// E of an encoding that is not dense. [s]
double EncodeSeconds(const Observations& seen) {
  std::vector<double> updates;
  for (auto at = seen.rounds().rbegin();
       at != seen.rounds().rend() && updates.size() < Observations::kTransfersKept; ++at) {
    if (std::isfinite(at->update_seconds)) updates.push_back(at->update_seconds);
  }
  if (updates.empty()) return 0;
  const auto middle = updates.begin() + static_cast<std::ptrdiff_t>(updates.size() / 2);
  std::ranges::nth_element(updates, middle);
  const WholeRound& latest = seen.rounds().back();
  const double values =
      static_cast<double>(latest.bytes_sent) / (sizeof(float) * RowOf(latest.encoding).share);
  return std::min(AutoEncoding::kUpdates * *middle, AutoEncoding::kSecondsPerValue * values);
}

// The rounds without the first, where there are others: it may have what comes but once.
Observations::Range Settled(Observations::Range range) {
  if (range.to - range.from > 1) ++range.from;
  return range;
}

// Whether the latest round was lost, as none was that was dense.
bool LostByEncoding(const Observations& seen) {
  const auto lost_dense = [](const WholeRound& round) {
    return round.skipped && round.encoding == Encoding::kDense;
  };
  const std::deque<WholeRound>& rounds = seen.rounds();
  return !rounds.empty() && rounds.back().skipped && std::ranges::none_of(rounds, lost_dense);
}

}  // namespace

std::string AutoEncoding::Start(Plan& first, const Observations& seen) {
  if (trial_) found_ = former_;
  trial_.reset();
  in_force_.reset();
  if (seen.members() == 1) {
    first.encoding = Encoding::kDense;
    return "dense: one member has nobody to exchange with";
  }
  const std::optional<Prior>& prior = seen.group().prior;
  const bool handed_on = seen.rounds().empty() && prior;
  if (handed_on) found_ = prior->encoding;
  first.encoding = first.aggregation == Aggregation::kAverage ? found_ : Encoding::kDense;
  if (first.encoding == Encoding::kDense) {
    return "dense until it is found that fewer bytes would pay";
  }
  return std::string(NameOf(first.encoding)) +
         (handed_on ? ": as a former job of this kind found" : ": as was found before");
}

void AutoEncoding::Resume(const Plan& in_force) {
  trial_.reset();
  in_force_.reset();
  if (in_force.aggregation == Aggregation::kAverage) found_ = in_force.encoding;
}

std::string AutoEncoding::Follow(Plan& plan, const Observations& seen) const {
  const bool sums = plan.aggregation == Aggregation::kAverage && seen.members() > 1;
  const Encoding wanted = sums ? found_ : Encoding::kDense;
  if (plan.encoding == wanted) return {};
  plan.encoding = wanted;
  return sums ? std::string(NameOf(wanted)) + ": averages travel as they did before"
              : "dense: adasum goes by products of whole vectors";
}

std::optional<Proposal> AutoEncoding::Decide(const Situation& situation) {
  if (situation.seen.members() < 2) return std::nullopt;
  Note(situation);
  if (trial_) return Judge(situation);
  if (situation.in_force.encoding != Encoding::kDense && LostByEncoding(situation.seen)) {
    return GoBack(situation, Encoding::kDense,
                  "a round was lost to numbers that are not finite, as none was that was dense");
  }
  return Try(situation);
}

// A trial whose rounds become others, or which never came into force, says nothing.
void AutoEncoding::Note(const Situation& situation) {
  const Plan& now = situation.in_force;
  const bool same = in_force_ && SameWindows(now, *in_force_);
  if (trial_ && (!same || now.encoding != found_)) {
    trial_.reset();
    due_ = kPause * situation.seen.seconds();
  }
  if (!trial_ && now.aggregation == Aggregation::kAverage) found_ = now.encoding;
  if (!same || now.encoding != in_force_->encoding) version_ = now.version;
  in_force_ = now;
}

AutoEncoding::Candidate AutoEncoding::Price(Encoding encoding, const Situation& situation) const {
  const Observations& seen = situation.seen;
  Candidate candidate{.plan = situation.in_force, .transfer = *seen.TransferSeconds()};
  const Encoding now = candidate.plan.encoding;
  if (encoding != now) {
    const double encode = EncodeSeconds(seen);
    const auto of = [&](Encoding each) { return each == Encoding::kDense ? 0 : encode; };
    const double bytes = std::max(candidate.transfer - of(now), 0.0);
    candidate.transfer = bytes * RowOf(encoding).share / RowOf(now).share + of(encoding);
  }
  candidate.plan.encoding = encoding;
  const RoundForecast round = Forecast(candidate.plan, seen, candidate.transfer);
  if (round.seconds > 0 && round.samples > 0) {
    candidate.useful = UsefulRate(round, {.rule = candidate.plan.learning_rate_rule,
                                          .base_batch = base_batch_,
                                          .noise_scale = seen.NoiseScale()});
  }
  return candidate;
}

std::optional<Proposal> AutoEncoding::Try(const Situation& situation) {
  const Observations& seen = situation.seen;
  const Plan& in_force = situation.in_force;
  if (situation.other_on_trial || seen.seconds() < due_) return std::nullopt;
  if (!seen.SpeedsKnown() || !seen.TransferSeconds()) return std::nullopt;
  const double now = Price(in_force.encoding, situation).useful;
  Candidate best;
  for (const EncodingRow& row : kEncodings) {
    if (!row.for_auto || row.encoding == in_force.encoding) continue;
    Candidate candidate = Price(row.encoding, situation);
    if (candidate.useful > best.useful) best = std::move(candidate);
  }
  if (!(now > 0) || !(best.useful >= now * (1 + kGainMin))) return std::nullopt;
  if (!situation.complete(best.plan)) return std::nullopt;
  promised_ = best.useful / now - 1;
  former_ = std::exchange(found_, best.plan.encoding);
  trial_.emplace(ChangeTrial::Setting{.version_before = version_,
                                      .version = in_force.version + 1,
                                      .seconds_start = seen.seconds(),
                                      .base_batch = base_batch_,
                                      .loss_floor = loss_floor_});
  return Change(situation, best, now);
}

Proposal AutoEncoding::Change(const Situation& situation, const Candidate& to, double now) const {
  const Observations& seen = situation.seen;
  const double step = seen.StepSeconds(situation.in_force.batch_sizes);
  const double transfer = *seen.TransferSeconds();
  Proposal proposal{.plan = to.plan, .trial = Trial::kBegins};
  proposal.decision = {
      .inputs = {{"transfer of a round", transfer, "s"},
                 {"transfer of a round then", to.transfer, "s"},
                 {"bytes of a round", static_cast<double>(seen.rounds().back().bytes_sent), ""},
                 {"encoding of a round", EncodeSeconds(seen), "s"},
                 {"longest step", step, "s"},
                 {"useful samples/s", now, "samples/s"}},
      .metric = kUsefulSamplesPerSecond,
      .predicted_gain = promised_,
      .alternatives = {{ValueOf(situation.in_force, Axis::kEncoding), 0}},
      .reason = "a transfer of " + Figure(transfer) + " s against a step of " + Figure(step) +
                " s: " + ValueOf(to.plan, Axis::kEncoding) + ", in " +
                Percent(RowOf(to.plan.encoding).share) + " of float32's bytes, should teach " +
                Percent(promised_) + " more in a second; tried out"};
  return proposal;
}

std::optional<double> AutoEncoding::MeasuredGain(const Observations& seen) const {
  constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();
  const ChangeTrial::Setting& setting = trial_->setting();
  const auto rate = [&](const Observations::Span& span) {
    return UsefulSamplesPerSecond(seen, Settled(seen.Find(span)), base_batch_, seen.NoiseScale());
  };
  const std::optional<double> before =
      rate({.first = setting.version_before, .end = setting.version, .most = ChangeTrial::kRounds});
  const std::optional<double> after = rate({.first = setting.version, .end = kNoEnd});
  return before && after ? std::optional(*after / *before - 1) : std::nullopt;
}

std::optional<Proposal> AutoEncoding::Judge(const Situation& situation) {
  const Observations& seen = situation.seen;
  const ChangeTrial::Judgement judgement = trial_->Look(seen);
  if (judgement.verdict == ChangeTrial::Verdict::kRegretted) {
    Proposal back = GoBack(situation, former_, judgement.reason);
    if (judgement.undo) back.trial = Trial::kUndone;
    return back;
  }
  const std::optional<double> gain = MeasuredGain(seen);
  if (!gain || !seen.TransferSeconds()) return std::nullopt;
  const bool over = judgement.verdict == ChangeTrial::Verdict::kKept;
  if (*gain < kGainKept && (over || promised_ >= kGainLarge)) {
    return GoBack(situation, former_,
                  Percent(promised_) + " more in a second were promised, and " + Percent(*gain) +
                      " were measured");
  }
  if (!over && *gain < promised_ / 2) return std::nullopt;
  trial_.reset();
  due_ = kPause * seen.seconds();
  return std::nullopt;
}

Proposal AutoEncoding::GoBack(const Situation& situation, Encoding to, std::string reason) {
  const double seconds = situation.seen.seconds();
  due_ = kPauseRegretted * seconds;
  trial_.reset();
  found_ = to;
  Proposal proposal{.plan = situation.in_force};
  proposal.plan.encoding = to;
  proposal.decision.alternatives = {{ValueOf(situation.in_force, Axis::kEncoding), 0}};
  proposal.decision.reason = std::string(NameOf(situation.in_force.encoding)) +
                             " did not pay: " + std::move(reason) + "; not tried again for " +
                             Figure(due_ - seconds) + " s";
  return proposal;
}

}  // namespace tactus::policies
