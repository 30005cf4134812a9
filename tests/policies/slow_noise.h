// Noise that lasts for seconds: a neighbour's load, heat, a scheduler.

#pragma once

#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace tactus::policies {

struct SlowNoiseOptions {
  // An Ornstein-Uhlenbeck process of log(speed).
  double wander = 0;          // its standard deviation
  double wander_seconds = 1;  // its correlation time, > 0
  // A random telegraph: a neighbour that comes and goes.
  double load = 0;          // relative fall of the speed while it is there, in [0, 1)
  double load_seconds = 1;  // that it stays and stays away, on average, > 0
  bool in_common = false;   // of all workers alike: they share one machine
};

// The factors by which the workers' speeds are off, each drawn by itself.
class SlowNoise {
 public:
  SlowNoise(const SlowNoiseOptions& options, std::size_t workers, std::uint64_t seed);

  // So many seconds pass.
  void Pass(double seconds);

  double Factor(std::size_t worker) const;

 private:
  struct State {
    double wander = 0;  // in standard deviations
    bool loaded = false;
  };

  const SlowNoiseOptions options_;
  Rng rng_;
  std::vector<State> states_;
};

}  // namespace tactus::policies
