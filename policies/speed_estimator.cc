#include "policies/speed_estimator.h"

#include <algorithm>
#include <cmath>

namespace tactus::policies {
namespace {

constexpr int kNoiseWeightMin = 4;   // [rounds] of the initial noise
constexpr int kNoiseWeightMax = 64;  // [rounds] memory of the noise
constexpr double kDifferenceNoises = 3.0;
// Above any that a count of samples and kSecondsMin make.
constexpr double kLogSpeedMax = 100;
constexpr int kOlderMax = 1 << 20;  // [rounds] the window stops growing: no counter overflows

}  // namespace

bool IsLogSpeed(double log_speed) { return std::abs(log_speed) < kLogSpeedMax; }

bool Sound(const SpeedEstimator& estimator) {
  const bool counts = estimator.older_count_ >= 0 && estimator.older_count_ <= kOlderMax &&
                      estimator.differences_ >= 0 &&
                      estimator.recent_.size() <= SpeedEstimator::kSlowRounds;
  if (!counts || !(estimator.noise2_ >= 0) || !std::isfinite(estimator.noise2_)) return false;
  for (const SpeedEstimator::Observation& seen : estimator.recent_) {
    if (!IsLogSpeed(seen.log_speed) || !IsLogSpeed(seen.log_speed_clipped)) return false;
  }
  return std::isfinite(estimator.older_sum_) && std::isfinite(estimator.recent_sum_) &&
         (estimator.observations() == 0 || IsLogSpeed(estimator.Mean()));
}

void SpeedEstimator::Observe(std::uint64_t samples, double compute_seconds, std::uint32_t steps) {
  const bool measurable = compute_seconds >= kSecondsMin && compute_seconds <= kSecondsMax;
  if (samples == 0 || !measurable) return;
  const double log_speed = std::log(static_cast<double>(samples)) - std::log(compute_seconds);
  const std::uint32_t times =
      observations() == 0 ? std::clamp(steps, std::uint32_t{1}, kFirstStepsMax) : 1;
  for (std::uint32_t i = 0; i < times; ++i) Fold(log_speed);
}

void SpeedEstimator::Fold(double log_speed) {
  FoldNoise(log_speed);

  Observation observation{.log_speed = log_speed, .log_speed_clipped = log_speed};
  if (observations() >= kQuickRounds) {
    const double reach = kOutlierNoises * Noise();
    const double mean = Mean();
    observation.log_speed_clipped = std::clamp(log_speed, mean - reach, mean + reach);
  }
  recent_.push_back(observation);
  recent_sum_ += observation.log_speed_clipped;
  if (recent_.size() > kSlowRounds) {
    if (older_count_ == kOlderMax) older_sum_ -= older_sum_ / older_count_--;
    older_sum_ += recent_.front().log_speed_clipped;
    recent_sum_ -= recent_.front().log_speed_clipped;
    ++older_count_;
    recent_.pop_front();
  }
  CutOnShift();
}

double SpeedEstimator::SamplesPerSecond() const {
  return observations() == 0 ? 0.0 : std::exp(Mean());
}

double SpeedEstimator::Noise() const { return std::max(kNoiseFloor, std::sqrt(noise2_)); }

double SpeedEstimator::RelativeError() const {
  return observations() < 2 ? 1.0 : Noise() / std::sqrt(observations());
}

double SpeedEstimator::Mean() const { return (older_sum_ + recent_sum_) / observations(); }

double SpeedEstimator::SumOfRecent() const {
  double sum = 0;
  for (const Observation& observation : recent_) sum += observation.log_speed_clipped;
  return sum;
}

void SpeedEstimator::FoldNoise(double log_speed) {
  if (recent_.empty()) return;
  const double difference = log_speed - recent_.back().log_speed;
  // A difference counts for at most 3 of its own deviations, sigma sqrt(2): a shift is not noise.
  const double squared_max = 2 * kDifferenceNoises * kDifferenceNoises * Noise() * Noise();
  const double variance = std::min(difference * difference, squared_max) / 2;
  ++differences_;
  noise2_ += (variance - noise2_) / std::min(differences_ + kNoiseWeightMin, kNoiseWeightMax);
}

void SpeedEstimator::CutOnShift() {
  if (SlowShift()) CutTo(kSlowRounds);
  if (QuickShift()) CutTo(kQuickRounds);
}

bool SpeedEstimator::QuickShift() const {
  const int before = observations() - kQuickRounds;
  if (before < 1) return false;
  double sum = older_sum_ + recent_sum_;
  const auto end = recent_.end() - kQuickRounds;
  for (auto at = end; at != recent_.end(); ++at) sum -= at->log_speed_clipped;
  const double mean = sum / before;
  const double beyond =
      std::max(std::log(kQuickRatio), kQuickNoises * Noise() * std::sqrt(1.0 + 1.0 / before));
  const auto faster = [&](const Observation& seen) { return seen.log_speed > mean + beyond; };
  const auto slower = [&](const Observation& seen) { return seen.log_speed < mean - beyond; };
  return std::all_of(end, recent_.end(), faster) || std::all_of(end, recent_.end(), slower);
}

bool SpeedEstimator::SlowShift() const {
  if (older_count_ < kSlowRounds) return false;
  const double difference = recent_sum_ / kSlowRounds - older_sum_ / older_count_;
  const double error = Noise() * std::sqrt(1.0 / kSlowRounds + 1.0 / older_count_);
  return std::abs(difference) > std::max(std::log(kSlowRatio), kSlowErrors * error);
}

void SpeedEstimator::CutTo(std::size_t rounds) {
  older_count_ = 0;
  older_sum_ = 0;
  while (recent_.size() > rounds) recent_.pop_front();
  if (rounds <= kQuickRounds) {
    // What was clipped as an outlier of the old speed is the new speed.
    for (Observation& seen : recent_) seen.log_speed_clipped = seen.log_speed;
  }
  recent_sum_ = SumOfRecent();
}

}  // namespace tactus::policies
