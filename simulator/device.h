// A device of the simulated world: how long a micro-batch takes on it now.

#pragma once

#include <cstdint>

#include "base/rng.h"
#include "base/time.h"
#include "simulator/cluster_model.h"

namespace tactus::simulator {

// DeviceModel with the state of its noise. Calls must come in the order of time. One thread.
class Device {
 public:
  // No micro-batch takes longer: ten years, of which an Instant holds many.
  static constexpr Duration kBatchTimeMax = Seconds(10 * 365 * 86400.0);

  Device(const DeviceModel& model, Rng rng);

  const DeviceModel& model() const { return model_; }

  // The time of a micro-batch of `samples` >= 1 that begins now. Draws from the noise.
  Duration BatchTime(std::uint64_t samples, Instant now);

  // Everything takes `factor` >= 1 times as long until then; a later call replaces an earlier one.
  void SlowDown(double factor, Instant until);

 private:
  double NoiseFactor(Instant now);
  bool Slow(Instant now);

  const DeviceModel model_;
  Rng rng_;
  Rng phase_rng_;
  bool slow_ = false;
  Instant slow_known_{};  // when slow_ was drawn
  double slow_down_ = 1;
  Instant slow_down_until_{};
};

}  // namespace tactus::simulator
