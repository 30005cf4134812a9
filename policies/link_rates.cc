#include "policies/link_rates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "policies/figures.h"
#include "policies/median.h"

namespace tactus::policies {
namespace {

bool IsRate(double rate) { return rate >= 0 && std::isfinite(rate); }

}  // namespace

bool Sound(const LinkRates& links) {
  return std::ranges::all_of(links.rates_, [](const std::deque<double>& rates) {
    return rates.size() <= LinkRates::kRounds && std::ranges::all_of(rates, IsRate);
  });
}

void LinkRates::Observe(const Report& report) {
  if (report.rank >= rates_.size()) return;
  const double rate = report.link_bytes_per_second;
  std::deque<double>& rates = rates_[report.rank];
  rates.push_back(IsRate(rate) ? rate : 0);
  if (rates.size() > kRounds) rates.pop_front();
}

std::optional<SlowLink> LinkRates::Slow() const {
  if (rates_.size() < 3) return std::nullopt;
  std::vector<double> medians;
  for (const std::deque<double>& rates : rates_) {
    std::vector<double> told;
    std::ranges::copy_if(rates, std::back_inserter(told), [](double rate) { return rate > 0; });
    if (told.empty()) return std::nullopt;
    medians.push_back(Median(std::move(told)));
  }
  const auto slowest = std::ranges::min_element(medians);
  const SlowLink link = {.rank = static_cast<std::uint32_t>(slowest - medians.begin()),
                         .rate = *slowest,
                         .usual = Median(medians)};
  return link.rate < kSlow * link.usual ? std::optional(link) : std::nullopt;
}

std::string TransferText(double seconds, const std::optional<SlowLink>& link) {
  constexpr double kMegabyte = 1e6;
  std::string text = "a transfer of " + Figure(seconds) + " s";
  if (!link) return text;
  return text + " (it waits for rank " + std::to_string(link->rank) + "'s link, which brings " +
         Figure(link->rate / kMegabyte) + " MB/s where " + Figure(link->usual / kMegabyte) +
         " are usual)";
}

}  // namespace tactus::policies
