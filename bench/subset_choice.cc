// What a choice of samples costs: processor seconds of 30 % of the samples of one class, by proxies
// as logistic regression has (inputs, 54 numbers in 40 clusters) and as ten classes have (gradients
// by the output), of the whole class at once and in pieces as workers cut it; and how much of the
// mean way to the nearest picked sample pieces leave, of that of the first.
//
//   bench_subset_choice [samples]

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <vector>

#include "agent/subset/craig.h"
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

// The part of the points at every `step`th place from `first` on.
std::vector<float> Part(const Shape& shape, std::size_t first, std::size_t step) {
  std::vector<float> part;
  for (std::size_t i = first; i < shape.values.size() / shape.width; i += step) {
    const auto row = std::span(shape.values).subspan(i * shape.width, shape.width);
    part.insert(part.end(), row.begin(), row.end());
  }
  return part;
}

void Measure(const Shape& shape) {
  const std::size_t samples = shape.values.size() / shape.width;
  double whole = 0;
  for (const std::size_t piece_max : {samples, kPieceMax}) {
    const std::size_t pieces = (samples + piece_max - 1) / piece_max;
    const std::clock_t begun = std::clock();
    double error = 0;
    std::size_t picks = 0;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const std::vector<float> values = Part(shape, piece, pieces);
      const Points points{.values = values, .width = shape.width};
      const std::size_t budget = std::max<std::size_t>(1, points.size() * 3 / 10);
      error += PickGreedily(points, {.budget = budget}).error;
      picks += budget;
    }
    const double seconds = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
    if (whole == 0) whole = error;
    std::printf("%-10s %8zu %8zu %8zu %9.2f %9.4f\n", shape.name, samples, picks, pieces, seconds,
                error / whole);
  }
}

}  // namespace
}  // namespace tactus::subset

int main(int argc, char** argv) {
  const int wanted = argc > 1 ? std::atoi(argv[1]) : 9000;
  const auto samples = static_cast<std::size_t>(std::max(wanted, 2));
  std::printf("%-10s %8s %8s %8s %9s %9s\n", "proxies", "samples", "picks", "pieces", "seconds",
              "error");
  tactus::subset::Measure({"inputs", tactus::subset::Inputs(samples), 54});
  tactus::subset::Measure({"gradients", tactus::subset::Gradients(samples), 10});
}
