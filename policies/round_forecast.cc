#include "policies/round_forecast.h"

#include <algorithm>
#include <numeric>

#include "policies/delayed_sgd.h"
#include "policies/proportional_shares.h"

namespace tactus::policies {
namespace {

RoundForecast ForecastDelayed(const Plan& plan, const std::vector<double>& speeds,
                              double transfer) {
  DelayedGroup group{.transfer_seconds = transfer, .batches_max = plan.period};
  group.members.reserve(speeds.size());
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    // A member without samples contributes nothing; its batches last as long as any number says.
    const std::uint32_t samples = plan.batch_sizes[rank];
    group.members.push_back(
        {.batch_seconds = std::max(samples, 1u) / speeds[rank], .batch_samples = samples});
  }
  const DelayedPace pace = PredictDelayedPace(group, kForecastRounds);
  return {.seconds = pace.samples_per_round / pace.samples_per_second,
          .samples = pace.samples_per_round};
}

// Until members have taken the period's steps on average, each at its own speed.
double HarmonicStep(const std::vector<std::uint32_t>& sizes, const std::vector<double>& speeds) {
  double members = 0;
  double steps_per_second = 0;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    if (sizes[rank] == 0) continue;
    ++members;
    steps_per_second += speeds[rank] / sizes[rank];
  }
  return members / steps_per_second;
}

}  // namespace

RoundForecast Forecast(const Plan& plan, const std::vector<double>& speeds, double transfer) {
  if (plan.synchronization == Synchronization::kDelayed) {
    return ForecastDelayed(plan, speeds, transfer);
  }
  const double step = plan.synchronization == Synchronization::kLsgd
                          ? HarmonicStep(plan.batch_sizes, speeds)
                          : LongestStep(plan.batch_sizes, speeds);
  return {.seconds = plan.period * step + transfer,
          .updates = static_cast<double>(plan.period),
          .samples = std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), 0.0)};
}

RoundForecast Forecast(const Plan& plan, const Observations& seen, double transfer) {
  return Forecast(plan, seen.speeds(), transfer);
}

double UsefulRate(const RoundForecast& round, const BatchWorth& worth) {
  return round.updates * UsefulSamples(round.samples, worth) / round.seconds;
}

double UpdateSeconds(const Plan& plan, double step, double transfer) {
  return step + transfer / plan.period;
}

}  // namespace tactus::policies
