#include "policies/proportional_batch.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "base/check.h"
#include "policies/figures.h"

namespace tactus::policies {
namespace {

// Halvings that bring a bracket of any finite doubles to two neighbours.
constexpr int kHalvingsMax = 2200;

std::uint32_t ShareAt(double time, double speed, const BatchOptions& options) {
  const double share = std::floor(time * speed);
  return static_cast<std::uint32_t>(std::clamp(share, static_cast<double>(options.batch_min),
                                               static_cast<double>(options.batch_max)));
}

std::vector<std::uint32_t> SharesAt(double time, const std::vector<double>& speeds,
                                    const BatchOptions& options) {
  std::vector<std::uint32_t> shares;
  shares.reserve(speeds.size());
  for (const double speed : speeds) shares.push_back(ShareAt(time, speed, options));
  return shares;
}

std::uint64_t Sum(const std::vector<std::uint32_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

bool Fit(double time, const std::vector<double>& speeds, std::uint64_t total,
         const BatchOptions& options) {
  std::uint64_t sum = 0;
  for (const double speed : speeds) sum += ShareAt(time, speed, options);
  return sum <= total;
}

// The largest time, to within rounding, for which the shares need at most `total` samples.
double LargestTime(const std::vector<double>& speeds, std::uint64_t total,
                   const BatchOptions& options) {
  // At 0 every share is batch_min, whose sum the clamped total allows.
  double fits = 0;
  double too_long = options.batch_max / *std::min_element(speeds.begin(), speeds.end());
  const auto narrow = [&](double time) {
    if (time <= fits || time >= too_long) return false;
    (Fit(time, speeds, total, options) ? fits : too_long) = time;
    return true;
  };
  // Without bounds it lies between these two.
  const double speed_sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  const double samples = static_cast<double>(total);
  narrow(samples / speed_sum);
  narrow((samples + static_cast<double>(speeds.size())) / speed_sum);
  for (int i = 0; i < kHalvingsMax && narrow(fits + (too_long - fits) / 2); ++i) continue;
  return fits;
}

// max_i b_i / v_i.
double LongestTime(const std::vector<std::uint32_t>& sizes, const std::vector<double>& speeds) {
  double longest = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) longest = std::max(longest, sizes[i] / speeds[i]);
  return longest;
}

double Gain(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to,
            const std::vector<double>& speeds) {
  const double before = LongestTime(from, speeds);
  return before > 0 ? 1 - LongestTime(to, speeds) / before : 0;
}

}  // namespace

std::vector<std::uint32_t> ProportionalShares(const std::vector<double>& speeds,
                                              std::uint64_t total, const BatchOptions& options) {
  TACTUS_CHECK(options.batch_min <= options.batch_max);
  if (speeds.empty()) return {};
  for (const double speed : speeds) TACTUS_CHECK(speed > 0 && std::isfinite(speed));
  const std::uint64_t members = speeds.size();
  total = std::clamp(total, members * options.batch_min, members * options.batch_max);
  std::vector<std::uint32_t> shares =
      SharesAt(LargestTime(speeds, total, options), speeds, options);

  using Offer = std::pair<double, std::size_t>;  // when one more sample would be done, rank
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
  const auto offer = [&](std::size_t rank) {
    if (shares[rank] < options.batch_max) offers.push({(shares[rank] + 1.0) / speeds[rank], rank});
  };
  for (std::size_t rank = 0; rank < members; ++rank) offer(rank);
  for (std::uint64_t left = total - Sum(shares); left > 0; --left) {
    // The clamped total is at most n batch_max: while samples are left, so is an offer.
    const std::size_t rank = offers.top().second;
    offers.pop();
    ++shares[rank];
    offer(rank);
  }
  return shares;
}

BatchDecision ProportionalBatch::Start(const StartingGroup& group) {
  speeds_.assign(group.members, SpeedEstimator());
  total_ = std::uint64_t{options_.per_worker} * group.members;
  gain_least_ = kGainMin;
  const auto measured = [](double speed) { return speed > 0 && std::isfinite(speed); };
  if (group.speeds.size() == group.members && std::ranges::all_of(group.speeds, measured)) {
    const auto [slowest, fastest] = std::ranges::minmax(group.speeds);
    return {.batch_sizes = ProportionalShares(group.speeds, total_, options_),
            .reason = "shares follow the speeds that the workers tried out: " + Figure(slowest) +
                      " to " + Figure(fastest) + " samples/s"};
  }
  const std::vector<double> equal(group.members, 1.0);
  return {.batch_sizes = ProportionalShares(equal, total_, options_),
          .reason = "equal shares until speeds are measured"};
}

void ProportionalBatch::Observe(const Report& report) {
  if (report.rank >= speeds_.size()) return;
  speeds_[report.rank].Observe(report.samples, report.compute_seconds, report.steps);
}

BatchDecision ProportionalBatch::Decide(const std::vector<std::uint32_t>& in_force) {
  if (in_force.empty() || in_force.size() != speeds_.size()) {
    return {.batch_sizes = {}, .reason = "left: the sizes in force are of another group"};
  }
  for (std::size_t rank = 0; rank < speeds_.size(); ++rank) {
    if (speeds_[rank].observations() >= kObservationsMin) continue;
    return {.batch_sizes = {},
            .reason = "left: rank " + std::to_string(rank) + " was seen in fewer than " +
                      std::to_string(kObservationsMin) + " rounds at its speed"};
  }
  std::vector<double> speeds;
  for (const SpeedEstimator& speed : speeds_) speeds.push_back(speed.SamplesPerSecond());
  std::vector<std::uint32_t> sizes = ProportionalShares(speeds, total_, options_);

  const double gain = Gain(in_force, sizes, speeds);
  gain_least_ = kGainMin + (gain_least_ - kGainMin) * std::exp2(-1 / kRestRounds);
  if (gain <= gain_least_) {
    return {.batch_sizes = {},
            .reason = "left: other shares would shorten the round by " +
                      Percent(std::max(gain, 0.0)) + ", less than " + Percent(gain_least_)};
  }
  const std::vector<double> kinder = SpeedsInFavourOf(in_force);
  if (Gain(in_force, ProportionalShares(kinder, total_, options_), kinder) <= 0) {
    return {.batch_sizes = {},
            .reason = "left: a gain of " + Percent(gain) + " is within the noise of the speeds"};
  }
  Tire(gain);
  const auto [slowest, fastest] = std::minmax_element(speeds.begin(), speeds.end());
  return {.batch_sizes = std::move(sizes),
          .reason = "shares follow speed: rank " + std::to_string(slowest - speeds.begin()) +
                    " computes " + Figure(*slowest) + " samples/s against " + Figure(*fastest) +
                    " on the fastest; round " + Figure(LongestTime(in_force, speeds)) + " s -> " +
                    Figure(LongestTime(in_force, speeds) * (1 - gain)) + " s",
          .predicted_gain = gain};
}

void ProportionalBatch::Tire(double gain) {
  if (gain < kGainLarge) gain_least_ = std::min(gain_least_ * kRestlessness, kGainLarge);
}

std::vector<double> ProportionalBatch::SpeedsInFavourOf(
    const std::vector<std::uint32_t>& in_force) const {
  double speed_sum = 0;
  for (const SpeedEstimator& speed : speeds_) speed_sum += speed.SamplesPerSecond();
  const double samples_sum = static_cast<double>(std::max<std::uint64_t>(Sum(in_force), 1));
  std::vector<double> moved;
  for (std::size_t rank = 0; rank < speeds_.size(); ++rank) {
    const double estimate = speeds_[rank].SamplesPerSecond();
    const double reach = std::exp(kErrorsMin * speeds_[rank].RelativeError());
    const double right = in_force[rank] * speed_sum / samples_sum;
    moved.push_back(std::clamp(right, estimate / reach, estimate * reach));
  }
  return moved;
}

}  // namespace tactus::policies
