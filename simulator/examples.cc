#include "simulator/examples.h"

#include <cmath>

#include "base/rng.h"

namespace tactus::simulator {

Examples MakeSyntheticExamples(const SyntheticOptions& options) {
  const Rng root(options.seed);
  std::vector<double> centres(options.classes * options.features);
  Rng centre_rng = root.Fork("centres");
  // The difference of two coordinates has twice the variance of one.
  const double scale = options.separation / std::sqrt(2.0 * static_cast<double>(options.features));
  for (double& coordinate : centres) coordinate = scale * centre_rng.Normal();

  Examples examples{.features = options.features, .classes = options.classes};
  examples.inputs.reserve(options.samples * options.features);
  examples.labels.reserve(options.samples);
  Rng samples_rng = root.Fork("samples");
  const std::uint64_t samples_seed = samples_rng.Next();
  for (std::uint64_t i = options.first; i < options.first + options.samples; ++i) {
    Rng rng(Mix64(samples_seed + i));
    const auto label = static_cast<std::uint32_t>(rng.Below(options.classes));
    examples.labels.push_back(label);
    const double* centre = centres.data() + label * options.features;
    for (std::size_t k = 0; k < options.features; ++k) {
      examples.inputs.push_back(static_cast<float>(centre[k] + rng.Normal()));
    }
  }
  return examples;
}

}  // namespace tactus::simulator
