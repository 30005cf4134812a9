#include "tests/policies/slow_noise.h"

#include <cmath>

namespace tactus::policies {

SlowNoise::SlowNoise(const SlowNoiseOptions& options, std::size_t workers, std::uint64_t seed)
    : options_(options), rng_(seed), states_(options.in_common ? 1 : workers) {
  for (State& state : states_) {
    state = {.wander = rng_.Normal(), .loaded = rng_.Uniform() < 0.5};
  }
}

void SlowNoise::Pass(double seconds) {
  const double memory = std::exp(-seconds / options_.wander_seconds);
  const double turn = (1 - std::exp(-2 * seconds / options_.load_seconds)) / 2;
  for (State& state : states_) {
    state.wander = memory * state.wander + std::sqrt(1 - memory * memory) * rng_.Normal();
    state.loaded ^= rng_.Uniform() < turn;
  }
}

double SlowNoise::Factor(std::size_t worker) const {
  const State& state = states_[options_.in_common ? 0 : worker];
  return std::exp(options_.wander * state.wander) * (state.loaded ? 1 - options_.load : 1);
}

}  // namespace tactus::policies
