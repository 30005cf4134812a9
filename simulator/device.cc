#include "simulator/device.h"

#include <algorithm>

#include "base/check.h"
#include "simulator/elementary.h"

namespace tactus::simulator {
namespace {

constexpr double kDriftFactorMin = 0.1;

}  // namespace

Device::Device(const DeviceModel& model, Rng rng)
    : model_(model), rng_(rng.Fork("noise")), phase_rng_(rng.Fork("phases")) {}

Duration Device::BatchTime(std::uint64_t samples, Instant now) {
  const double hours = ToSeconds(now.time_since_epoch()) / 3600;
  const double drift = std::max(1 + model_.drift_per_hour * hours, kDriftFactorMin);
  const double undisturbed =
      model_.batch_seconds + static_cast<double>(samples) * model_.sample_seconds;
  const double slow_down = now < slow_down_until_ ? slow_down_ : 1;
  const double seconds = undisturbed * drift * slow_down * NoiseFactor(now);
  TACTUS_CHECK(seconds >= 0);
  return Seconds(std::min(seconds, ToSeconds(kBatchTimeMax)));
}

void Device::SlowDown(double factor, Instant until) {
  slow_down_ = factor;
  slow_down_until_ = until;
}

double Device::NoiseFactor(Instant now) {
  const double s = model_.noise.log_sigma;
  double factor = s > 0 ? Exponential(s * rng_.Normal() - s * s / 2) : 1;
  if (model_.noise.slow_factor > 1 && Slow(now)) factor *= model_.noise.slow_factor;
  return factor;
}

// What is known of the phase is forgotten exponentially, however many phases have passed since:
//
//   P(slow now) = share + (slow then - share) exp(-t (1 / slow_seconds + 1 / fast_seconds))
//
// share  [1]  of the time that is slow, slow_seconds / (slow_seconds + fast_seconds)
// t      [s]  since then
//
// Source: design; the transition probabilities of a chain of two states in continuous time.
bool Device::Slow(Instant now) {
  const NoiseModel& noise = model_.noise;
  const double share = noise.slow_seconds / (noise.slow_seconds + noise.fast_seconds);
  const double leaving_rate = 1 / noise.slow_seconds + 1 / noise.fast_seconds;
  const double remembered = Exponential(-ToSeconds(now - slow_known_) * leaving_rate);
  slow_ = phase_rng_.Uniform() < share + ((slow_ ? 1 : 0) - share) * remembered;
  slow_known_ = now;
  return slow_;
}

}  // namespace tactus::simulator
