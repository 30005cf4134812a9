#include "policies/speed_stretches.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tactus::policies {
namespace {

// How long the round lasted, of which some reports say only how long the worker computed.
double Seconds(const Report& report) {
  const bool told = std::isfinite(report.round_seconds) && report.round_seconds > 0;
  return told ? std::min(report.round_seconds, SpeedStretches::kSecondsMax)
              : report.compute_seconds;
}

}  // namespace

bool SpeedStretches::Divisible(const Open& open) {
  constexpr double kMost = 1e18;
  const auto sum = [](double value) { return value >= 0 && value < kMost; };
  const bool sums = sum(open.samples) && sum(open.steps) && sum(open.compute) && sum(open.seconds);
  const bool none = open.seconds == 0;
  return sums && (none || (open.samples >= 1 && open.steps >= 1 && open.compute >= kSecondsMin));
}

bool Sound(const SpeedStretches& stretches) {
  return std::ranges::all_of(stretches.open_, SpeedStretches::Divisible);
}

void SpeedStretches::Start(std::uint32_t members) {
  open_.assign(members, {});
  version_ = 0;
}

void SpeedStretches::Break() {
  for (Open& open : open_) open = {.first_left_out = open.first_left_out};
}

std::optional<SpeedStretch> SpeedStretches::Observe(const Report& report) {
  const bool measurable =
      report.compute_seconds >= kSecondsMin && report.compute_seconds <= kSecondsMax;
  if (report.rank >= open_.size() || report.samples == 0 || !measurable) return std::nullopt;
  if (report.plan_version < version_) return std::nullopt;
  if (report.plan_version > version_) {
    version_ = report.plan_version;
    std::ranges::fill(open_, Open{});
  }
  Open& open = open_[report.rank];
  if (!std::exchange(open.first_left_out, true) && report.steps < kStepsMin) return std::nullopt;
  open.samples += static_cast<double>(report.samples);
  open.steps += std::max(report.steps, 1u);
  open.compute += report.compute_seconds;
  open.seconds += Seconds(report);
  const auto whole = [](const Open& each) { return each.seconds >= kStretchSeconds; };
  if (!std::ranges::all_of(open_, whole)) return std::nullopt;
  return Close();
}

SpeedStretch SpeedStretches::Close() {
  SpeedStretch stretch{.plan_version = version_};
  for (const Open& open : open_) {
    stretch.seconds += open.seconds / static_cast<double>(open_.size());
    stretch.samples += open.samples;
    stretch.speeds.push_back(open.samples / open.compute);
    stretch.sizes.push_back(static_cast<std::uint32_t>(std::lround(open.samples / open.steps)));
  }
  std::ranges::fill(open_, Open{.first_left_out = true});
  return stretch;
}

}  // namespace tactus::policies
