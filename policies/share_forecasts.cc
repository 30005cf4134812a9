#include "policies/share_forecasts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policies/proportional_shares.h"
#include "policies/speed_estimator.h"

namespace tactus::policies {
namespace {

constexpr std::size_t kMedianOf = 3;

double Gain(const std::vector<std::uint32_t>& from, const std::vector<std::uint32_t>& to,
            const std::vector<double>& speeds) {
  const double before = LongestStep(from, speeds);
  return before > 0 ? 1 - LongestStep(to, speeds) / before : 0;
}

struct Weighed {
  double value = 0;
  double weight = 0;
};

// The weighted median; between the two middle values where both would serve.
double Median(std::vector<Weighed> values) {
  std::ranges::sort(values, {}, &Weighed::value);
  double half = 0;
  for (const Weighed& each : values) half += each.weight / 2;
  std::size_t at = 0;
  for (double below = values[0].weight; below < half; below += values[++at].weight) continue;
  double sum = 0;
  for (std::size_t i = 0; i <= at; ++i) sum += values[i].weight;
  const bool both = sum <= half && at + 1 < values.size();
  return both ? (values[at].value + values[at + 1].value) / 2 : values[at].value;
}

std::size_t SizeOf(double gain) {
  const auto& sizes = ShareForecasts::kSizes;
  return static_cast<std::size_t>(std::ranges::upper_bound(sizes, gain) - sizes.begin());
}

}  // namespace

void ShareForecasts::Record::Fold(double gain, double true_gain) {
  judged = std::min(judged + 1, kPromises);
  promised += (gain - promised) / judged;
  kept += (true_gain - kept) / judged;
  kept2 += (true_gain * true_gain - kept2) / judged;
}

double ShareForecasts::Record::Expect(double gain, double prior) const {
  if (!(promised > 0)) return prior;
  const double error = std::sqrt(std::max(kept2 - kept * kept, 0.0) / judged);
  const double share = (kept - kErrors * error) / promised;
  return (kPrior * prior + judged * share * gain) / (kPrior + judged);
}

void ShareForecasts::Start() {
  latest_.clear();
  shifted_ = false;
  sizes_.clear();
  for (int k = 0; k < kForecasters; ++k)
    forecasters_[k] = {.memory = std::exp2(k), .noise = 2 * kNoiseInitial * kNoiseInitial};
}

bool ShareForecasts::Suits(std::size_t ranks) const {
  if (!any()) return true;
  if (sizes_.size() != ranks || latest_.size() > kMedianOf) return false;
  for (const Latest& each : latest_) {
    const bool sound = each.logs.size() == ranks && each.samples > 0 &&
                       std::isfinite(each.samples) && std::ranges::all_of(each.logs, IsLogSpeed);
    if (!sound) return false;
  }
  return std::ranges::all_of(
      forecasters_, [ranks](const Forecaster& forecaster) { return Suits(forecaster, ranks); });
}

bool ShareForecasts::Suits(const Forecaster& forecaster, std::size_t ranks) {
  const bool sums = forecaster.memory >= 1 && forecaster.stretches > 0 && forecaster.weight > 0 &&
                    std::isfinite(forecaster.weight) && forecaster.log_sums.size() == ranks;
  if (!sums || forecaster.promises.empty() || forecaster.promises.size() > kDelay) return false;
  for (const double sum : forecaster.log_sums) {
    if (!IsLogSpeed(sum / forecaster.weight)) return false;
  }
  return std::ranges::all_of(forecaster.promises, [ranks](const Promise& promise) {
    return promise.in_force.size() == ranks && promise.sizes.size() == ranks;
  });
}

void ShareForecasts::Observe(const SpeedStretch& stretch, std::uint64_t total) {
  std::vector<double> logs;
  for (const double speed : stretch.speeds) logs.push_back(std::log(speed));
  const bool resized = Resized(stretch);
  latest_.push_back({.samples = stretch.samples, .logs = std::move(logs)});
  // Those before are of other speeds, so nothing is isolated.
  if (std::exchange(shifted_, false)) latest_.erase(latest_.begin(), std::prev(latest_.end()));
  if (latest_.size() > kMedianOf) latest_.pop_front();
  const std::vector<double> filtered = Filtered();
  for (Forecaster& forecaster : forecasters_) {
    Judge(forecaster, stretch.speeds);
    if (resized) Age(forecaster);
    Remember(forecaster, filtered, stretch.samples);
    forecaster.promises.push_back(MakePromise(forecaster, sizes_, total));
  }
  total_ = total;
}

void ShareForecasts::Shift() {
  if (!any()) return;
  for (Forecaster& forecaster : forecasters_) Age(forecaster);
  shifted_ = true;
}

void ShareForecasts::Age(Forecaster& forecaster) {
  forecaster.stretches *= kAged;
  forecaster.weight *= kAged;
  for (double& sum : forecaster.log_sums) sum *= kAged;
}

void ShareForecasts::Remember(Forecaster& forecaster, const std::vector<double>& logs,
                              double samples) {
  const double kept = std::exp(-1 / forecaster.memory);
  forecaster.stretches = kept * forecaster.stretches + 1;
  forecaster.weight = kept * forecaster.weight + samples;
  forecaster.log_sums.resize(logs.size());
  for (std::size_t rank = 0; rank < logs.size(); ++rank) {
    double& sum = forecaster.log_sums[rank];
    sum = kept * sum + samples * logs[rank];
  }
}

bool ShareForecasts::Resized(const SpeedStretch& stretch) {
  if (sizes_.size() != stretch.sizes.size() || stretch.plan_version != plan_version_) {
    plan_version_ = stretch.plan_version;
    return std::exchange(sizes_, stretch.sizes) != stretch.sizes;
  }
  for (std::size_t rank = 0; rank < sizes_.size(); ++rank) {
    sizes_[rank] = std::max(sizes_[rank], stretch.sizes[rank]);
  }
  return false;
}

std::vector<double> ShareForecasts::Filtered() const {
  std::vector<double> filtered;
  for (std::size_t rank = 0; rank < latest_.back().logs.size(); ++rank) {
    std::vector<Weighed> values;
    for (const Latest& each : latest_) {
      values.push_back({.value = each.logs[rank], .weight = each.samples});
    }
    filtered.push_back(Median(std::move(values)));
  }
  return filtered;
}

void ShareForecasts::Judge(Forecaster& forecaster, const std::vector<double>& speeds) {
  if (forecaster.promises.size() < kDelay) return;
  const Promise promise = std::move(forecaster.promises.front());
  forecaster.promises.pop_front();
  const double true_gain = Gain(promise.in_force, promise.sizes, speeds);
  const double noise = promise.gain * (promise.gain - true_gain) * forecaster.stretches;
  forecaster.judged = std::min(forecaster.judged + 1, kPromises);
  forecaster.noise += (noise - forecaster.noise) / (forecaster.judged + kPrior);
  forecaster.of_size[SizeOf(promise.gain)].Fold(promise.gain, true_gain);
}

std::vector<double> ShareForecasts::SpeedsOf(const Forecaster& forecaster) {
  std::vector<double> speeds;
  for (const double sum : forecaster.log_sums) speeds.push_back(std::exp(sum / forecaster.weight));
  return speeds;
}

ShareForecasts::Promise ShareForecasts::MakePromise(const Forecaster& forecaster,
                                                    const std::vector<std::uint32_t>& in_force,
                                                    std::uint64_t total) const {
  const std::vector<double> speeds = SpeedsOf(forecaster);
  Promise promise{.in_force = in_force, .sizes = ProportionalShares(speeds, total, options_)};
  promise.gain = Gain(in_force, promise.sizes, speeds);
  return promise;
}

double ShareForecasts::Expected(const Forecaster& forecaster, double gain) {
  if (!(gain > 0)) return 0;
  const double noise = std::max(forecaster.noise, 0.0) / forecaster.stretches;
  const double prior = gain - kDoubt * noise / gain;
  return std::min(forecaster.of_size[SizeOf(gain)].Expect(gain, prior), gain);
}

// What was promised already is not shared out a second time: that is what a decision costs.
ShareForecast ShareForecasts::Best(const std::vector<std::uint32_t>& in_force,
                                   std::uint64_t total) const {
  const bool promised = in_force == sizes_ && total == total_;
  ShareForecast best;
  for (const Forecaster& forecaster : forecasters_) {
    Promise promise =
        promised ? forecaster.promises.back() : MakePromise(forecaster, in_force, total);
    const double expected = Expected(forecaster, promise.gain);
    if (!best.sizes.empty() && expected <= best.expected) continue;
    best = {.sizes = std::move(promise.sizes),
            .speeds = SpeedsOf(forecaster),
            .gain = promise.gain,
            .expected = expected};
  }
  return best;
}

}  // namespace tactus::policies
