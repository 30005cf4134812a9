#include "simulator/device.h"

#include <algorithm>
#include <cmath>

namespace tactus::simulator {
namespace {

constexpr double kDriftFactorMin = 0.1;

}  // namespace

Device::Device(const DeviceModel& model, Rng rng)
    : model_(model), rng_(rng.Fork("noise")), phase_rng_(rng.Fork("phases")) {
  if (model_.noise.slow_factor > 1) phase_end_ = Instant{} + Stay(model_.noise.fast_seconds);
}

Duration Device::BatchTime(std::uint64_t samples, Instant now) {
  const double hours = ToSeconds(now.time_since_epoch()) / 3600;
  const double drift = std::max(1 + model_.drift_per_hour * hours, kDriftFactorMin);
  const double seconds =
      model_.batch_seconds + static_cast<double>(samples) * model_.sample_seconds;
  const double slow_down = now < slow_down_until_ ? slow_down_ : 1;
  return Seconds(seconds * drift * slow_down * NoiseFactor(now));
}

void Device::SlowDown(double factor, Instant until) {
  slow_down_ = factor;
  slow_down_until_ = until;
}

double Device::Speed(std::uint64_t samples) const {
  const double count = static_cast<double>(samples);
  const NoiseModel& noise = model_.noise;
  double slowness = 1;
  if (noise.slow_factor > 1) {
    slowness = (noise.fast_seconds + noise.slow_factor * noise.slow_seconds) /
               (noise.fast_seconds + noise.slow_seconds);
  }
  return count / ((model_.batch_seconds + count * model_.sample_seconds) * slowness);
}

double Device::NoiseFactor(Instant now) {
  const double s = model_.noise.log_sigma;
  double factor = s > 0 ? std::exp(s * rng_.Normal() - s * s / 2) : 1;
  if (model_.noise.slow_factor > 1 && Slow(now)) factor *= model_.noise.slow_factor;
  return factor;
}

bool Device::Slow(Instant now) {
  while (phase_end_ <= now) {
    slow_ = !slow_;
    phase_end_ += Stay(slow_ ? model_.noise.slow_seconds : model_.noise.fast_seconds);
  }
  return slow_;
}

// Exponential, at least a nanosecond so that phases end.
Duration Device::Stay(double mean_seconds) {
  const double seconds = -mean_seconds * std::log1p(-phase_rng_.Uniform());
  return std::max(Seconds(seconds), Duration(1));
}

}  // namespace tactus::simulator
