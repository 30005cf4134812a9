#include "policies/auto_encoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "policies/figures.h"
#include "policies/median.h"
#include "policies/round_forecast.h"
#include "policies/round_rates.h"

namespace tactus::policies {
namespace {

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

// Rounds are as many, and as long but for what the exchange takes.
bool SameWindows(const Plan& one, const Plan& other) {
  return one.synchronization == other.synchronization && one.period == other.period &&
         one.aggregation == other.aggregation;
}

bool LeavesRest(Encoding encoding) { return RowOf(encoding).deviation == Deviation::kResidual; }

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

// why: a clause.
Decision DidNotPay(Encoding encoding, const std::string& why) {
  return {.reason = std::string(NameOf(encoding)) + " did not pay: " + why};
}

}  // namespace

// Shares are of as many members.
std::string AutoEncoding::Start(Plan& first, const Observations& seen) {
  for (Finding& finding : found_of_) finding.share = 0;
  if (OnTrial()) found_ = former_;
  trial_.reset();
  canary_.reset();
  in_force_.reset();
  if (seen.members() == 1) {
    first.encoding = Encoding::kDense;
    return "dense: " + std::string(seen.WhyAlone());
  }
  const StartingGroup& group = seen.group();
  const bool averages = first.aggregation == Aggregation::kAverage;
  const bool begins = seen.rounds().empty();
  const bool handed_on = begins && group.prior;
  const Encoding linked =
      begins && !handed_on && averages ? group.EncodingByLinks() : Encoding::kDense;
  const bool by_links = linked != Encoding::kDense;
  if (handed_on) found_ = group.prior->encoding;
  if (by_links) found_ = linked;
  const bool may = averages && group.Knows(found_);
  first.encoding = may ? found_ : Encoding::kDense;
  if (first.encoding == Encoding::kDense) {
    return "dense until it is found that fewer bytes would pay";
  }
  const std::string name(NameOf(first.encoding));
  if (handed_on) return name + ": as a former job of this kind found";
  if (!by_links) return name + ": as in the group before";
  return name + ": a dense exchange should take " + Figure(group.exchange_seconds) +
         " s, by what the links brought before";
}

void AutoEncoding::Resume(const Plan& in_force) {
  trial_.reset();
  canary_.reset();
  in_force_.reset();
  if (in_force.aggregation == Aggregation::kAverage) found_ = in_force.encoding;
}

std::string AutoEncoding::Follow(Plan& plan, const Observations& seen) const {
  const bool sums =
      plan.aggregation == Aggregation::kAverage && seen.members() > 1 && seen.group().Knows(found_);
  const Encoding wanted = sums ? found_ : Encoding::kDense;
  if (plan.encoding == wanted) return {};
  plan.encoding = wanted;
  return sums ? std::string(NameOf(wanted)) + ": averages travel as they did before"
              : "dense: adasum goes by products of whole vectors";
}

std::optional<Proposal> AutoEncoding::Decide(const Situation& situation) {
  if (situation.seen.members() < 2) return std::nullopt;
  Note(situation);
  NoteBytes(situation.seen);
  if (trial_) return by_transfer_ ? JudgeByTransfer(situation) : Judge(situation);
  if (canary_) return JudgeByLoss(situation);
  if (situation.in_force.encoding != Encoding::kDense && LostByEncoding(situation.seen)) {
    return Regret(situation, Encoding::kDense,
                  DidNotPay(situation.in_force.encoding,
                            "a round was lost to numbers that are not finite, as none was that "
                            "was dense"));
  }
  return Try(situation);
}

// Of a trial whose rounds become others the transfer alone tells; one that never came into force,
// or is judged by the loss, says nothing.
void AutoEncoding::Note(const Situation& situation) {
  const Plan& now = situation.in_force;
  const bool same = in_force_ && SameWindows(now, *in_force_);
  const bool averages = now.aggregation == Aggregation::kAverage;
  if (trial_ && !same && averages && now.encoding == found_) {
    by_transfer_ = true;
  } else if (OnTrial() && (!same || now.encoding != found_)) {
    trial_.reset();
    canary_.reset();
    due_ = kPause * situation.seen.seconds();
  }
  if (!OnTrial() && now.aggregation == Aggregation::kAverage) found_ = now.encoding;
  if (!same || now.encoding != in_force_->encoding ||
      now.learning_rate_rule != in_force_->learning_rate_rule) {
    version_ = now.version;
    seconds_ = situation.seen.seconds();
  }
  in_force_ = now;
}

// The latest rounds of this group with what is in force tell: what has gathered at first, and what
// is calibrated, comes but once.
void AutoEncoding::NoteBytes(const Observations& seen) {
  if (seen.rounds().empty() || seen.rounds().back().bytes_sent == 0) return;
  const Encoding encoding = seen.rounds().back().encoding;
  if (TellsNoise(encoding)) {
    const double bytes = static_cast<double>(seen.rounds().back().bytes_sent);
    values_ = bytes / sizeof(float) / ShareOf(encoding, seen.members());
    return;
  }
  const auto [from, to] =
      seen.Find({.first = version_, .end = kNoEnd, .most = Observations::kTransfersKept});
  std::vector<double> bytes;
  for (std::size_t i = from; i < to; ++i) {
    bytes.push_back(static_cast<double>(seen.rounds()[i].bytes_sent));
  }
  if (values_ > 0 && bytes.size() >= Observations::kObservationsMin) {
    Of(encoding).share = Median(std::move(bytes)) / sizeof(float) / values_;
  }
}

double AutoEncoding::ShareIn(Encoding encoding, const Observations& seen) const {
  const double measured = Of(encoding).share;
  return measured > 0 ? measured : ShareOf(encoding, seen.members());
}

// Half of what it lacks is given back when the training time has doubled.
double AutoEncoding::WorthIn(Encoding encoding, const Observations& seen) const {
  const Finding& finding = Of(encoding);
  if (finding.worth == 1) return 1;
  return 1 - (1 - finding.worth) * finding.seconds / std::max(seen.seconds(), finding.seconds);
}

// E of an encoding. [s]
double AutoEncoding::EncodeSeconds(Encoding encoding, const Observations& seen) const {
  std::vector<double> updates;
  for (auto at = seen.rounds().rbegin();
       at != seen.rounds().rend() && updates.size() < Observations::kTransfersKept; ++at) {
    if (std::isfinite(at->update_seconds)) updates.push_back(at->update_seconds);
  }
  if (updates.empty()) return 0;
  const double update = Median(std::move(updates));
  const WholeRound& latest = seen.rounds().back();
  const double sent = static_cast<double>(latest.bytes_sent) / sizeof(float);
  const double values = values_ > 0 ? values_ : sent / ShareIn(latest.encoding, seen);
  const EncodingRow& row = RowOf(encoding);
  return std::min(row.updates * update, row.seconds_per_value * values);
}

// Nothing is useful of one that may not be run.
AutoEncoding::Candidate AutoEncoding::Price(Encoding encoding, const Situation& situation) const {
  const Observations& seen = situation.seen;
  const Encoding now = situation.in_force.encoding;
  Candidate candidate{.plan = situation.in_force, .transfer = *seen.TransferSeconds()};
  candidate.plan.encoding = encoding;
  std::optional<Plan> whole = candidate.plan;
  if (encoding != now) {
    const double bytes = std::max(candidate.transfer - EncodeSeconds(now, seen), 0.0);
    candidate.transfer =
        bytes * ShareIn(encoding, seen) / ShareIn(now, seen) + EncodeSeconds(encoding, seen);
    whole = seen.group().Knows(encoding) ? situation.complete(candidate.plan) : std::nullopt;
  }
  if (!whole) return candidate;
  const RoundForecast round = Forecast(*whole, seen, candidate.transfer);
  candidate.round_seconds = round.seconds;
  if (round.seconds > 0 && round.samples > 0) {
    candidate.useful =
        WorthIn(encoding, seen) * UsefulRate(round, {.rule = whole->learning_rate_rule,
                                                     .base_batch = options_.base_batch,
                                                     .noise_scale = seen.NoiseScale()});
  }
  return candidate;
}

bool AutoEncoding::MayTry(const EncodingRow& row, ForAuto judged,
                          const Situation& situation) const {
  if (row.for_auto != judged || row.encoding == situation.in_force.encoding) return false;
  if (situation.seen.seconds() < Of(row.encoding).due) return false;
  return options_.residuals || !LeavesRest(row.encoding);
}

AutoEncoding::Candidate AutoEncoding::Best(ForAuto judged, const Situation& situation) const {
  Candidate best;
  for (const EncodingRow& row : kEncodings) {
    if (!MayTry(row, judged, situation)) continue;
    Candidate candidate = Price(row.encoding, situation);
    if (candidate.useful > best.useful) best = std::move(candidate);
  }
  return best;
}

std::optional<Proposal> AutoEncoding::Try(const Situation& situation) {
  const Observations& seen = situation.seen;
  const Plan& in_force = situation.in_force;
  if (situation.other_on_trial || seen.seconds() < due_) return std::nullopt;
  if (!seen.SpeedsKnown() || !seen.TransferSeconds()) return std::nullopt;
  const double now = Price(in_force.encoding, situation).useful;
  if (!(now > 0)) return std::nullopt;
  const Candidate best = Best(ForAuto::kByTime, situation);
  if (!(best.useful >= now * (1 + kGainMin))) return TryByLoss(situation, now);
  promised_ = best.useful / now - 1;
  transfer_before_ = *seen.TransferSeconds();
  transfer_promised_ = best.transfer;
  by_transfer_ = false;
  former_ = std::exchange(found_, best.plan.encoding);
  trial_.emplace(ChangeTrial::Setting{.version_before = version_,
                                      .version = in_force.version + 1,
                                      .seconds_start = seen.seconds(),
                                      .base_batch = options_.base_batch,
                                      .loss_floor = options_.loss_floor});
  Proposal proposal = Change(situation, best, now);
  proposal.transfer_seconds = best.transfer;
  return proposal;
}

std::optional<Proposal> AutoEncoding::TryByLoss(const Situation& situation, double now) {
  const Observations& seen = situation.seen;
  const Candidate best = Best(ForAuto::kByLoss, situation);
  if (!(best.useful >= now * (1 + kGainMinByLoss))) return std::nullopt;
  const Encoding encoding = best.plan.encoding;
  const bool rest = LeavesRest(encoding);
  const PeriodCanary::Setting setting = {
      .version_before = version_,
      .version = situation.in_force.version + 1,
      .seconds_before = seconds_,
      .seconds_start = seen.seconds(),
      .base_batch = options_.base_batch,
      .of_progress = rest || LeavesRest(situation.in_force.encoding)};
  const PeriodCanary::Expected expected = {.round_seconds = best.round_seconds,
                                           .pace = best.useful / now};
  if (!PeriodCanary::Comparable(setting, seen, expected)) return std::nullopt;
  promised_ = best.useful / now - 1;
  former_ = std::exchange(found_, encoding);
  canary_.emplace(setting, seen);
  Proposal proposal = Change(situation, best, now);
  proposal.decision.reason +=
      " for " + Percent(PeriodCanary::kShare) + " of the training time and " +
      std::to_string(PeriodCanary::kStepsMin) + " steps at least, whether " +
      (rest ? "what it leaves for later rounds lets the loss fall lower"
            : "its noise leaves the loss lower");
  return proposal;
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
                 {"encoding of a round", EncodeSeconds(to.plan.encoding, seen), "s"},
                 {"longest step", step, "s"},
                 {"useful samples/s", now, "samples/s"}},
      .metric = kUsefulSamplesPerSecond,
      .predicted_gain = promised_,
      .alternatives = {{ValueOf(situation.in_force, Axis::kEncoding), 0}},
      .reason = TransferText(transfer, seen.SlowestLink()) + " against a step of " + Figure(step) +
                " s: " + ValueOf(to.plan, Axis::kEncoding) + ", in " +
                Percent(ShareIn(to.plan.encoding, seen)) + " of float32's bytes, should teach " +
                Percent(promised_) + " more in a second; tried out"};
  return proposal;
}

// Of what both sides' samples are worth.
std::optional<double> AutoEncoding::MeasuredGain(std::uint64_t version_before,
                                                 std::uint64_t version,
                                                 const Observations& seen) const {
  const auto rate = [&](const Observations::Span& span) {
    return UsefulSamplesPerSecond(seen, Settled(seen.Find(span)), options_.base_batch,
                                  seen.NoiseScale());
  };
  const std::optional<double> before =
      rate({.first = version_before, .end = version, .most = ChangeTrial::kRounds});
  const std::optional<double> after = rate({.first = version, .end = kNoEnd});
  if (!before || !after) return std::nullopt;
  return *after * WorthIn(found_, seen) / (*before * WorthIn(former_, seen)) - 1;
}

std::string AutoEncoding::BroughtTooLittle(double gain) const {
  return Percent(promised_) + " more in a second were promised, and " + Percent(gain) +
         " were measured";
}

std::optional<Proposal> AutoEncoding::Judge(const Situation& situation) {
  const Observations& seen = situation.seen;
  const ChangeTrial::Judgement judgement = trial_->Look(seen);
  if (judgement.verdict == ChangeTrial::Verdict::kRegretted) {
    Proposal back = Regret(situation, former_, DidNotPay(found_, judgement.reason));
    if (judgement.undo) back.trial = Trial::kUndone;
    return back;
  }
  const std::optional<double> gain =
      MeasuredGain(trial_->setting().version_before, trial_->setting().version, seen);
  if (!gain || !seen.TransferSeconds()) return std::nullopt;
  const bool over = judgement.verdict == ChangeTrial::Verdict::kKept;
  if (*gain < kGainKept && (over || promised_ >= kGainLarge)) {
    return Regret(situation, former_, DidNotPay(found_, BroughtTooLittle(*gain)));
  }
  if (!over && *gain < promised_ / 2) return std::nullopt;
  trial_.reset();
  due_ = kPause * seen.seconds();
  return std::nullopt;
}

std::optional<Proposal> AutoEncoding::JudgeByTransfer(const Situation& situation) {
  const std::optional<double> transfer = situation.seen.TransferSeconds();
  if (!transfer) return std::nullopt;
  if (transfer_before_ - *transfer < (transfer_before_ - transfer_promised_) / 2) {
    return Regret(situation, former_,
                  DidNotPay(found_, "a transfer was to take " + Figure(transfer_promised_) +
                                        " s in place of " + Figure(transfer_before_) +
                                        ", and takes " + Figure(*transfer)));
  }
  trial_.reset();
  due_ = kPause * situation.seen.seconds();
  return std::nullopt;
}

std::optional<Proposal> AutoEncoding::JudgeByLoss(const Situation& situation) {
  const Observations& seen = situation.seen;
  const PeriodCanary::Setting setting = canary_->setting();
  const std::optional<PeriodCanary::Outcome> outcome = canary_->Look(seen);
  if (!outcome) {
    const Observations::Range range = seen.Find({.first = setting.version, .end = kNoEnd});
    // One slow round is not to ban it for long.
    const bool known = range.to - range.from >= 3 && seen.TransferSeconds();
    const std::optional<double> gain =
        known ? MeasuredGain(setting.version_before, setting.version, seen) : std::nullopt;
    if (!gain || *gain >= kGainKept) return std::nullopt;
    return Leave(situation, kPauseRegretted, DidNotPay(found_, BroughtTooLittle(*gain)));
  }
  NoteWorth(*outcome, seen);
  if (outcome->Pays(PeriodCanary::kErrors)) {
    canary_.reset();
    due_ = kPause * seen.seconds();
    return std::nullopt;
  }
  Decision decision;
  outcome->Explain(NameOf(found_), decision);
  const bool doubtful = outcome->alarm.empty() && outcome->value() > 0;
  Proposal back = Leave(situation, doubtful ? kPause : kPauseRegretted, std::move(decision));
  // More samples were seen than would have been: what they taught is kept unless it led up.
  if (outcome->Rose()) back.trial = Trial::kUndone;
  return back;
}

void AutoEncoding::NoteWorth(const PeriodCanary::Outcome& outcome, const Observations& seen) {
  if (!outcome.worth) return;
  Finding& finding = Of(found_);
  finding.worth = std::min(*outcome.worth * WorthIn(former_, seen), 1.0);
  finding.seconds = seen.seconds();
}

// From a canary, to what was before it; another one may be tried next.
Proposal AutoEncoding::Leave(const Situation& situation, double pause, Decision decision) {
  const double seconds = situation.seen.seconds();
  Of(found_).due = pause * seconds;
  decision.reason += "; not tried again for " + Figure(Of(found_).due - seconds) + " s";
  Proposal proposal = GoBack(situation, former_, std::move(decision));
  due_ = seconds;
  return proposal;
}

// decision: why, a sentence, and by what.
Proposal AutoEncoding::GoBack(const Situation& situation, Encoding to, Decision decision) {
  trial_.reset();
  canary_.reset();
  found_ = to;
  Proposal proposal{.plan = situation.in_force, .decision = std::move(decision)};
  proposal.plan.encoding = to;
  proposal.decision.alternatives = {{ValueOf(situation.in_force, Axis::kEncoding), 0}};
  return proposal;
}

// From a trial by time: nothing is tried for a while.
Proposal AutoEncoding::Regret(const Situation& situation, Encoding to, Decision decision) {
  const double seconds = situation.seen.seconds();
  due_ = kPauseRegretted * seconds;
  decision.reason += "; not tried again for " + Figure(due_ - seconds) + " s";
  return GoBack(situation, to, std::move(decision));
}

}  // namespace tactus::policies
