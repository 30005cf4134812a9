#include "policies/slices.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "policies/plan.h"

namespace tactus::policies {
namespace {

// The time in which members of these rates, the fastest first, have made a whole vector: that of as
// many of the fastest as have something left to make by then.
//
//   sum over these of s_i = 1, s_i = (T r_i - 1) / (n - 2)
double SharedSeconds(const std::vector<double>& fastest_first) {
  const auto members = static_cast<double>(fastest_first.size());
  double seconds = 0;
  double rate = 0;
  for (std::size_t taking = 0; taking < fastest_first.size(); ++taking) {
    if (taking > 0 && seconds * fastest_first[taking] <= 1) break;
    rate += fastest_first[taking];
    seconds = (members - 2 + static_cast<double>(taking + 1)) / rate;
  }
  return seconds;
}

// Rounded such that they are the whole: who loses most by it gets what is left.
std::vector<std::uint32_t> Thousandths(const std::vector<double>& shares) {
  std::vector<std::uint32_t> slices;
  std::vector<std::size_t> by_rest(shares.size());
  std::vector<double> rests;
  for (const double share : shares) {
    const double exact = share * kSlicesWhole;
    slices.push_back(static_cast<std::uint32_t>(exact));
    rests.push_back(exact - std::floor(exact));
  }
  std::iota(by_rest.begin(), by_rest.end(), std::size_t{0});
  std::ranges::stable_sort(by_rest, std::greater(), [&](std::size_t at) { return rests[at]; });
  std::uint32_t left = kSlicesWhole - std::accumulate(slices.begin(), slices.end(), 0u);
  for (std::size_t at = 0; left > 0; at = (at + 1) % by_rest.size(), --left) ++slices[by_rest[at]];
  return slices;
}

}  // namespace

double SlicedSeconds(const std::vector<double>& rates, const std::vector<std::uint32_t>& slices) {
  const auto members = static_cast<double>(rates.size());
  double longest = 0;
  for (std::size_t rank = 0; rank < rates.size(); ++rank) {
    const double share =
        slices.empty() ? 1 / members : static_cast<double>(slices[rank]) / kSlicesWhole;
    longest = std::max(longest, (1 + (members - 2) * share) / rates[rank]);
  }
  return longest;
}

std::vector<std::uint32_t> SlicesFor(const std::vector<double>& rates) {
  if (rates.size() <= 2) return {};
  std::vector<double> fastest_first = rates;
  std::ranges::sort(fastest_first, std::greater());
  if (fastest_first.front() == fastest_first.back()) return {};
  const double seconds = SharedSeconds(fastest_first);
  const double others = static_cast<double>(rates.size()) - 2;
  std::vector<double> shares;
  for (const double rate : rates) shares.push_back(std::max(0.0, (seconds * rate - 1) / others));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return Thousandths(shares);
}

}  // namespace tactus::policies
