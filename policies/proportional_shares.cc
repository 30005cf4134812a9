#include "policies/proportional_shares.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "base/check.h"

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

// Of members who compute each by itself.
std::vector<std::uint32_t> SharesOfEach(const std::vector<double>& speeds, std::uint64_t total,
                                        const BatchOptions& options) {
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

// By replica. REQUIRES: a multiple of `members`.
std::vector<double> LeastSpeeds(const std::vector<double>& speeds, std::size_t members) {
  TACTUS_CHECK(speeds.size() % members == 0);
  std::vector<double> least;
  for (auto first = speeds.begin(); first != speeds.end();) {
    const auto end = first + static_cast<std::ptrdiff_t>(members);
    least.push_back(*std::min_element(first, end));
    first = end;
  }
  return least;
}

}  // namespace

double LongestStep(const std::vector<std::uint32_t>& sizes, const std::vector<double>& speeds) {
  TACTUS_CHECK(sizes.size() == speeds.size());
  double longest = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) longest = std::max(longest, sizes[i] / speeds[i]);
  return longest;
}

// In samples a member of a replica, of which all of its members have as many.
std::vector<std::uint32_t> ProportionalShares(const std::vector<double>& speeds,
                                              std::uint64_t total, const BatchOptions& options) {
  TACTUS_CHECK(options.batch_min <= options.batch_max && options.replica_members >= 1);
  if (speeds.empty()) return {};
  for (const double speed : speeds) TACTUS_CHECK(speed > 0 && std::isfinite(speed));
  const std::uint32_t members = options.replica_members;
  std::vector<std::uint32_t> shares;
  for (const std::uint32_t share :
       SharesOfEach(LeastSpeeds(speeds, members), total / members, options)) {
    shares.insert(shares.end(), members, share);
  }
  return shares;
}

}  // namespace tactus::policies
