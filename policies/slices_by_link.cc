#include "policies/slices_by_link.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "policies/figures.h"
#include "policies/gain_meter.h"
#include "policies/median.h"
#include "policies/round_forecast.h"
#include "policies/slices.h"

namespace tactus::policies {
namespace {

bool IsRate(double rate) { return rate > 0 && std::isfinite(rate); }

// told: to each member, by sender. The slower of both directions of each.
std::vector<double> RatesOf(const std::vector<std::vector<double>>& told) {
  std::vector<double> rates(told.size());
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    double out = 0;
    double in = 0;
    for (std::size_t other = 0; other < told.size(); ++other) {
      out += told[rank][other];
      in += told[other][rank];
    }
    rates[rank] = std::min(out, in);
  }
  return rates;
}

// Of the plan with that transfer. [useful samples/s]
double UsefulWith(const Plan& plan, double transfer, const Situation& situation,
                  double base_batch) {
  const RoundForecast round = Forecast(plan, situation.seen, transfer);
  if (!(round.seconds > 0 && round.samples > 0)) return 0;
  return UsefulRate(round, {.rule = plan.learning_rate_rule,
                            .base_batch = base_batch,
                            .noise_scale = situation.seen.NoiseScale()});
}

// What the rounds of the plan make by slices: averages, in a form in which nothing is left at who
// makes them.
bool MakesSlices(const Plan& plan) {
  return plan.aggregation == Aggregation::kAverage && !MembersDiffer(plan) &&
         RowOf(plan.encoding).by_slices;
}

std::string Megabytes(double rate) { return Figure(rate / 1e6) + " MB/s"; }

}  // namespace

void SlicesByLink::Start(std::size_t members) {
  members_ = members;
  told_.clear();
  rates_.clear();
  on_trial_ = false;
}

void SlicesByLink::Observe(const Report& report) {
  if (members_ < 3 || report.rank >= members_ || report.link_rates.size() != members_) return;
  for (std::size_t other = 0; other < members_; ++other) {
    if (other != report.rank && !IsRate(report.link_rates[other])) return;
  }
  told_.resize(members_);
  told_[report.rank] = report.link_rates;
  told_[report.rank][report.rank] = 0;
  if (std::ranges::any_of(told_, [](const auto& row) { return row.empty(); })) return;
  rates_.push_back(RatesOf(std::exchange(told_, {})));
  if (rates_.size() > kRounds) rates_.pop_front();
}

std::optional<std::vector<double>> SlicesByLink::Rates() const {
  if (rates_.size() < kRounds) return std::nullopt;
  std::vector<double> medians;
  for (std::size_t rank = 0; rank < members_; ++rank) {
    std::vector<double> values;
    for (const std::vector<double>& rates : rates_) values.push_back(rates[rank]);
    medians.push_back(Median(std::move(values)));
  }
  return medians;
}

// As Observe leaves them.
bool SlicesByLink::RatesAreSound() const {
  return rates_.size() <= kRounds &&
         std::ranges::all_of(rates_, [this](const std::vector<double>& rates) {
           return rates.size() == members_ && std::ranges::all_of(rates, IsRate);
         });
}

std::optional<Proposal> SlicesByLink::Decide(const Situation& situation, double base_batch) {
  if (on_trial_) return Judge(situation);
  const Observations& seen = situation.seen;
  const Plan& in_force = situation.in_force;
  if (situation.other_on_trial || seen.seconds() < due_ || !MakesSlices(in_force)) {
    return std::nullopt;
  }
  const std::optional<double> transfer = seen.TransferSeconds();
  const std::optional<std::vector<double>> rates = Rates();
  if (seen.members() != members_ || !seen.SpeedsKnown() || !transfer || !rates) return std::nullopt;
  Proposal proposal{.plan = in_force};
  proposal.plan.slices = SlicesFor(*rates);
  const double shorter =
      SlicedSeconds(*rates, proposal.plan.slices) / SlicedSeconds(*rates, in_force.slices);
  if (!(shorter <= 1 - kShorter)) return std::nullopt;
  const double then = *transfer * shorter;
  const double now = UsefulWith(in_force, *transfer, situation, base_batch);
  const double gain = UsefulWith(proposal.plan, then, situation, base_batch) / now - 1;
  if (!(now > 0 && gain >= kGainMin)) return std::nullopt;
  const auto slowest = std::ranges::min_element(*rates);
  const double usual = Median(*rates);
  proposal.decision = {
      .inputs = {{"slowest link", *slowest, "bytes/s"},
                 {"usual link", usual, "bytes/s"},
                 {"transfer of a round", *transfer, "s"},
                 {"transfer of a round then", then, "s"}},
      .metric = kUsefulSamplesPerSecond,
      .predicted_gain = gain,
      .alternatives = {{ValueOf(in_force, Axis::kEncoding), 0}},
      .reason = "the link of worker " + std::to_string(slowest - rates->begin()) + " carries " +
                Megabytes(*slowest) + ", others' " + Megabytes(usual) +
                ": who has a slow link makes less of each sum, and so sends and receives less; " +
                "a transfer should take " + Figure(then) + " s in place of " + Figure(*transfer) +
                ", and teach " + Percent(gain) + " more in a second; tried out"};
  proposal.transfer_seconds = then;
  tried_ = proposal.plan.slices;
  former_ = in_force.slices;
  on_trial_ = true;
  transfer_before_ = *transfer;
  transfer_promised_ = then;
  return proposal;
}

std::optional<Proposal> SlicesByLink::Judge(const Situation& situation) {
  const Observations& seen = situation.seen;
  if (situation.in_force.slices != tried_) {  // it never came, or was taken back
    on_trial_ = false;
    due_ = kPause * seen.seconds();
    return std::nullopt;
  }
  const std::optional<double> transfer = seen.TransferSeconds();
  if (!transfer) return std::nullopt;
  on_trial_ = false;
  if (transfer_before_ - *transfer >= (transfer_before_ - transfer_promised_) / 2) {
    due_ = kPause * seen.seconds();
    return std::nullopt;
  }
  due_ = kPauseRegretted * seen.seconds();
  Proposal back{.plan = situation.in_force};
  back.plan.slices = former_;
  back.decision = {.alternatives = {{ValueOf(situation.in_force, Axis::kEncoding), 0}},
                   .reason = "slices by links did not pay: a transfer was to take " +
                             Figure(transfer_promised_) + " s in place of " +
                             Figure(transfer_before_) + ", and takes " + Figure(*transfer) +
                             "; not tried again for " + Figure(due_ - seen.seconds()) + " s"};
  return back;
}

}  // namespace tactus::policies
