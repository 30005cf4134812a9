// What a choice of samples costs: processor seconds of 30 % of the samples of one class, by proxies
// as logistic regression has (inputs, 54 numbers in 40 clusters) and as ten classes have (gradients
// by the output), with all distances kept, computed again, and by drawn candidates; and how much of
// the mean way to the nearest picked sample each leaves, of that of the first.
//
//   bench_subset_choice [samples]

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "agent/subset/facility_location.h"
#include "base/rng.h"

namespace tactus::subset {
namespace {

std::vector<float> Inputs(std::size_t samples) {
  constexpr std::size_t kWidth = 54;
  Rng rng(1);
  std::vector<double> centres;
  for (std::size_t i = 0; i < 40 * kWidth; ++i) centres.push_back(rng.Normal());
  std::vector<float> values;
  for (std::size_t i = 0; i < samples; ++i) {
    // Clusters of unequal sizes.
    const double u = rng.Uniform();
    const auto cluster = static_cast<std::size_t>(40 * u * u);
    for (std::size_t k = 0; k < kWidth; ++k) {
      values.push_back(static_cast<float>(centres[cluster * kWidth + k] + 0.7 * rng.Normal()));
    }
  }
  return values;
}

// softmax - onehot of samples of class 0, some of them learnt well and some not.
std::vector<float> Gradients(std::size_t samples) {
  constexpr std::size_t kWidth = 10;
  Rng rng(1);
  std::vector<float> values;
  for (std::size_t i = 0; i < samples; ++i) {
    std::vector<double> terms;
    double sum = 0;
    for (std::size_t k = 0; k < kWidth; ++k) {
      terms.push_back(std::exp((k == 0 ? 3.0 : 0.0) + 1.5 * rng.Normal()));
      sum += terms.back();
    }
    for (std::size_t k = 0; k < kWidth; ++k) {
      values.push_back(static_cast<float>(terms[k] / sum - (k == 0 ? 1.0 : 0.0)));
    }
  }
  return values;
}

struct Shape {
  const char* name;
  std::vector<float> values;
  std::size_t width;
};

void Measure(const Shape& shape) {
  const Points points{.values = shape.values, .width = shape.width};
  const std::size_t budget = std::max<std::size_t>(1, points.size() * 3 / 10);
  double exact = 0;
  const auto row = [&](const char* name, const GreedyOptions& options) {
    const std::clock_t begun = std::clock();
    const Picked picked = PickGreedily(points, options);
    const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
    if (exact == 0) exact = picked.error;
    std::printf("%-10s %8zu %8zu  %-14s %9.2f %9.4f\n", shape.name, points.size(), budget, name,
                seconds, picked.error / exact);
  };
  row("kept", {.budget = budget, .kept_max = points.size()});
  row("computed again", {.budget = budget, .kept_max = 0});
  row("drawn", {.budget = budget, .sample = SampleOf(points.size(), budget, 0.1), .kept_max = 0});
}

}  // namespace
}  // namespace tactus::subset

int main(int argc, char** argv) {
  const int wanted = argc > 1 ? std::atoi(argv[1]) : 9000;
  const auto samples = static_cast<std::size_t>(std::max(wanted, 2));
  std::printf("%-10s %8s %8s  %-14s %9s %9s\n", "proxies", "samples", "picks", "distances",
              "seconds", "error");
  tactus::subset::Measure({"inputs", tactus::subset::Inputs(samples), 54});
  tactus::subset::Measure({"gradients", tactus::subset::Gradients(samples), 10});
}
