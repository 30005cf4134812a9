#include "policies/observations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "policies/median.h"

namespace tactus::policies {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What one report says of the transfer that no member could have saved.
double Blocked(const Report& report, Synchronization synchronization) {
  const double seconds = synchronization == Synchronization::kDelayed ? report.transfer_seconds
                                                                      : report.blocked_seconds;
  return std::isfinite(seconds) && seconds >= 0 ? seconds : kInfinity;
}

// For how long its member was not blocked, of its round.
double OwnSeconds(const Report& report) {
  const double own = report.round_seconds - report.blocked_seconds;
  const bool told = report.round_seconds > 0 && report.blocked_seconds >= 0 && own >= 0;
  return told && std::isfinite(own) ? own : kInfinity;
}

}  // namespace

bool Sound(const Observations& seen) {
  const std::size_t members = seen.estimators_.size();
  const auto speed = [&](double value) {
    return seen.speeds_known_ ? value > 0 && IsLogSpeed(std::log(value))
                              : value >= 0 && std::isfinite(value);
  };
  const auto open = [&](const auto& round) { return round.second.reported.size() == members; };
  const auto finite = [](double value) { return std::isfinite(value); };
  return Sound(seen.links_) && seen.speeds_now_.size() == members &&
         std::ranges::all_of(seen.speeds_now_, speed) && std::ranges::all_of(seen.open_, open) &&
         seen.rounds_.size() <= Observations::kRoundsKept &&
         seen.transfers_.size() <= Observations::kTransfersKept &&
         std::ranges::all_of(seen.transfers_, finite) && finite(seen.seconds_) &&
         seen.seconds_ >= 0 && std::isfinite(seen.seconds_of_group_) &&
         std::isfinite(seen.orthogonality_) && seen.orthogonality_rounds_ >= 0;
}

void Observations::Start(const StartingGroup& group) {
  TACTUS_CHECK(group.members >= 1);
  group_ = group;
  const std::uint32_t members = group.members;
  estimators_.assign(members, SpeedEstimator());
  speeds_now_.assign(members, 0.0);
  speeds_known_ = false;
  open_.clear();
  transfers_.clear();
  links_.Start(members);
  rounds_of_group_ = 0;
  seconds_of_group_ = 0;
  orthogonality_rounds_ = 0;
  orthogonality_ = 0;
  expected_ = {};
  before_ = {};
}

void Observations::Expect(const Plan& plan) {
  // Adasum exchanges by another pattern, and another encoding other bytes: it takes another time.
  const bool same =
      plan.aggregation == expected_.aggregation && plan.encoding == expected_.encoding;
  if (!same) transfers_.clear();
  if (plan.version != expected_.version) before_ = expected_;
  expected_ = {.version = plan.version,
               .synchronization = plan.synchronization,
               .aggregation = plan.aggregation,
               .learning_rate_rule = plan.learning_rate_rule,
               .encoding = plan.encoding,
               .batch_sizes = plan.batch_sizes};
}

double Observations::ComputeSecondsBefore(const Report& report) const {
  const bool newest = report.plan_version >= expected_.version;
  if (!newest || before_.batch_sizes.size() != members() || report.samples == 0) return 0;
  if (expected_.batch_sizes.size() != members()) return 0;
  // Of the plan's sizes: an epoch's last step has fewer samples, and would have had with others.
  const double size = expected_.batch_sizes[report.rank];
  return size > 0 ? report.compute_seconds * before_.batch_sizes[report.rank] / size : 0;
}

const Plan& Observations::PlanOf(std::uint64_t version) const {
  return version >= expected_.version ? expected_ : before_;
}

void Observations::Observe(const Report& report) {
  if (report.rank >= estimators_.size()) return;
  OpenRound* open = Open(report);
  if (open == nullptr) return;
  estimators_[report.rank].Observe(report.samples, report.compute_seconds, report.steps);
  links_.Observe(report);
  open->reported[report.rank] = true;
  WholeRound& sums = open->sums;
  if (std::isfinite(report.round_seconds) && report.round_seconds > 0) {
    sums.seconds += report.round_seconds / members();
  }
  sums.transfer_seconds = std::min(sums.transfer_seconds, Blocked(report, sums.synchronization));
  open->own_seconds = std::max(open->own_seconds, OwnSeconds(report));
  sums.compute_seconds = std::max(sums.compute_seconds, report.compute_seconds);
  sums.update_seconds = std::max(sums.update_seconds, report.update_seconds);
  sums.bytes_sent = std::max(sums.bytes_sent, report.bytes_sent);
  sums.compute_seconds_before = std::max(sums.compute_seconds_before, ComputeSecondsBefore(report));
  sums.samples += report.samples;
  sums.steps = std::max(sums.steps, report.steps);
  if (++open->reports < members()) return;
  const WholeRound whole = sums;
  const std::optional<double> outlasted = Outlasted(*open);
  // Older rounds that are still open go with it: Open() takes no more reports of them.
  open_.erase(open_.begin(), std::next(open_.find(report.round)));
  Close(whole, report, outlasted);
}

// Of a round that all members reported; nothing: not told, or it is no measure of the transfer.
std::optional<double> Observations::Outlasted(const OpenRound& open) {
  const bool delayed = open.sums.synchronization == Synchronization::kDelayed;
  if (delayed || !std::isfinite(open.own_seconds)) return std::nullopt;
  return open.sums.seconds - open.own_seconds;
}

Observations::OpenRound* Observations::Open(const Report& report) {
  if (rounds_of_group_ > 0 && report.round <= last_round()) return nullptr;
  const auto [at, fresh] = open_.try_emplace(report.round);
  if (fresh) {
    const Plan& plan = PlanOf(report.plan_version);
    at->second.reported.assign(members(), false);
    at->second.sums = {.round = report.round,
                       .plan_version = report.plan_version,
                       .synchronization = plan.synchronization,
                       .aggregation = plan.aggregation,
                       .learning_rate_rule = plan.learning_rate_rule,
                       .encoding = plan.encoding,
                       .transfer_seconds = kInfinity};
    // The oldest gives way, which may be the one just opened.
    if (open_.size() > kOpenRoundsMax) open_.erase(open_.begin());
    const auto kept = open_.find(report.round);
    return kept == open_.end() ? nullptr : &kept->second;
  }
  return at->second.reported[report.rank] ? nullptr : &at->second;
}

// Rounds of the plan before come in while the newest one travels.
bool Observations::ExchangesAsExpected(const WholeRound& round) const {
  return round.aggregation == expected_.aggregation && round.encoding == expected_.encoding;
}

void Observations::Close(WholeRound round, const Report& last, std::optional<double> transfer) {
  // What concerns the whole group is the same in every member's report: the last one speaks for
  // all.
  round.contributors = last.contributors;
  round.loss = last.loss_mean_global;
  const double rate = last.learning_rate / last.gain;
  const double rate_before = rounds_.empty() ? 0 : rounds_.back().scheduled_rate;
  round.scheduled_rate = std::isfinite(rate) && rate > 0 ? rate : rate_before;
  round.gain = std::isfinite(last.gain) && last.gain > 0 ? last.gain : 1;
  round.progress = last.progress;
  round.skipped = last.nonfinite_members > 0 || !std::isfinite(last.loss_mean_global) ||
                  !std::isfinite(last.local_loss_mean_global);
  if (transfer) round.transfer_seconds = std::max(0.0, *transfer);
  seconds_ += round.seconds;
  seconds_of_group_ += round.seconds;
  round.seconds_end = seconds_;
  if (!std::isfinite(round.transfer_seconds)) {
    round.transfer_seconds = 0;
  } else if (ExchangesAsExpected(round)) {
    transfers_.push_back(transfer.value_or(round.transfer_seconds));
    if (transfers_.size() > kTransfersKept) transfers_.pop_front();
  }
  if (!round.skipped) {
    losses_.Add(LossesOf(last));
    if (seconds_ > 0) history_.Add(round.plan_version, seconds_, round.loss);
    FoldGradients(last);
  }
  const int least = seconds_of_group_ >= kSecondsEnough ? 1 : kObservationsMin;
  speeds_known_ = true;
  for (std::size_t rank = 0; rank < estimators_.size(); ++rank) {
    speeds_now_[rank] = estimators_[rank].SamplesPerSecond();
    speeds_known_ = speeds_known_ && estimators_[rank].observations() >= least;
  }
  ++rounds_of_group_;
  rounds_.push_back(round);
  if (rounds_.size() > kRoundsKept) rounds_.pop_front();
}

void Observations::FoldGradients(const Report& last) {
  noise_.Observe(last);
  if (!(last.orthogonality > 0 && last.orthogonality <= 1)) return;
  orthogonality_rounds_ = std::min(orthogonality_rounds_ + 1, kOrthogonalityRounds);
  orthogonality_ += (last.orthogonality - orthogonality_) / orthogonality_rounds_;
}

double Observations::SpeedSum() const {
  return std::accumulate(speeds_now_.begin(), speeds_now_.end(), 0.0);
}

double Observations::StepSeconds(const std::vector<std::uint32_t>& sizes) const {
  TACTUS_CHECK(sizes.size() == speeds_now_.size());
  double longest = 0;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    longest = std::max(longest, sizes[rank] / speeds_now_[rank]);
  }
  return longest;
}

std::optional<double> Observations::TransferSeconds() const {
  const double seconds = std::accumulate(transfers_.begin(), transfers_.end(), 0.0);
  if (transfers_.size() < kObservationsMin && seconds < kSecondsEnough) return std::nullopt;
  return std::max(0.0, Median({transfers_.begin(), transfers_.end()}));
}

std::optional<double> Observations::Orthogonality() const {
  if (orthogonality_rounds_ < kOrthogonalityRounds) return std::nullopt;
  return orthogonality_;
}

std::optional<double> Observations::RecentLoss() const {
  return losses_.full() ? std::optional(losses_.Mean()) : std::nullopt;
}

bool Observations::AnySkipped(const Range& range) const {
  return std::any_of(rounds_.begin() + static_cast<std::ptrdiff_t>(range.from),
                     rounds_.begin() + static_cast<std::ptrdiff_t>(range.to),
                     [](const WholeRound& round) { return round.skipped; });
}

Observations::Range Observations::Find(const Span& span) const {
  const auto below = [&](std::uint64_t version) {
    return static_cast<std::size_t>(
        // Versions only grow within a job, so the rounds are sorted by them.
        std::ranges::partition_point(
            rounds_, [&](const WholeRound& round) { return round.plan_version < version; }) -
        rounds_.begin());
  };
  Range range{.from = below(span.first), .to = below(span.end)};
  range.to = std::max(range.from, range.to);
  range.from = std::min(range.from + static_cast<std::size_t>(span.leave_out), range.to);
  if (range.to - range.from > static_cast<std::size_t>(span.most)) {
    range.from = range.to - static_cast<std::size_t>(span.most);
  }
  return range;
}

LossTrend Observations::Trend(const Span& span) const {
  const Range range = Find(span);
  std::vector<LossAt> points;
  points.reserve(range.to - range.from);
  for (std::size_t at = range.from; at < range.to; ++at) {
    const WholeRound& round = rounds_[at];
    if (!round.skipped) points.push_back({.seconds = round.seconds_end, .loss = round.loss});
  }
  return FitLoss(points, loss_floor_);
}

}  // namespace tactus::policies
