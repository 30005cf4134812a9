#include "simulator/noisy_quadratic.h"

#include <cmath>
#include <string>

#include "base/check.h"
#include "base/rng.h"
#include "simulator/elementary.h"

namespace tactus::simulator {
namespace {

// Standard normal by the sum of twelve uniforms as Rng::Normal, each of 16 bits, four a draw: there
// are seventeen of these in a call at dimension 16, and calls by the million.
double Normal(Rng& rng) {
  constexpr std::uint64_t kLanes = 0x0000ffff0000ffffULL;
  std::uint64_t sums = 0;  // two of 32 bits each
  for (int draw = 0; draw < 3; ++draw) {
    const std::uint64_t bits = rng.Next();
    sums += (bits & kLanes) + ((bits >> 16) & kLanes);
  }
  const std::uint64_t sum = (sums & 0xffffffff) + (sums >> 32);
  return (static_cast<double>(sum) - 6 * 65535.0) * 0x1.0p-16;
}

// The generator of a batch's noise.
Rng NoiseOf(const engine::Batch& batch, std::uint64_t seed) {
  std::uint64_t key = seed;
  for (const std::uint64_t word : {batch.epoch, batch.indices.front(), batch.indices.size()}) {
    key = Mix64(key + 0x9e3779b97f4a7c15ULL) ^ word;
  }
  return Rng(Mix64(key));
}

std::vector<float> Eigenvalues(std::size_t dimension, double condition) {
  std::vector<float> values(dimension, 1.0F);
  const double step = dimension > 1 ? Logarithm(condition) / static_cast<double>(dimension - 1) : 0;
  for (std::size_t k = 0; k + 1 < dimension; ++k) {
    values[k] = static_cast<float>(Exponential(-step * static_cast<double>(dimension - 1 - k)));
  }
  return values;
}

cuda::SegmentTable Pieces(std::size_t dimension, std::size_t count) {
  cuda::SegmentTable segments;
  for (std::size_t piece = 0; piece < count; ++piece) {
    const std::size_t length = dimension * (piece + 1) / count - dimension * piece / count;
    segments.push_back({.name = "pieces." + std::to_string(piece),
                        .length = length,
                        .shape = {static_cast<std::int64_t>(length)}});
  }
  cuda::AssignOffsets(segments);
  return segments;
}

}  // namespace

NoisyQuadratic::NoisyQuadratic(const NoisyQuadraticOptions& options)
    : options_(options),
      sigma_(std::sqrt(options.gradient_noise / static_cast<double>(options.dimension))),
      eigenvalues_(Eigenvalues(options.dimension, options.condition)),
      segments_(Pieces(options.dimension, options.segments)) {
  TACTUS_CHECK(options.segments >= 1 && options.dimension >= options.segments);
  TACTUS_CHECK(options.initial_loss >= options.loss_floor);
}

void NoisyQuadratic::Initialise(std::uint64_t seed, std::span<float> parameters) const {
  double sum = 0;
  for (const double h : eigenvalues_) sum += h;
  const double size = std::sqrt(2 * (options_.initial_loss - options_.loss_floor) / sum);
  Rng rng = Rng(seed).Fork("start");
  for (const cuda::Segment& segment : segments_) {
    for (float& x : parameters.subspan(segment.offset, segment.length)) {
      x = static_cast<float>(rng.Below(2) == 0 ? size : -size);
    }
  }
}

double NoisyQuadratic::ForwardBackward(const engine::Batch& batch,
                                       std::span<const float> parameters,
                                       std::span<float> gradients) {
  const double samples = static_cast<double>(batch.indices.size());
  const double spread = std::sqrt(samples);  // of a sum over the batch, in that of one sample
  Rng rng = NoiseOf(batch, options_.seed);
  const float* h = eigenvalues_.data();
  double sum = 0;
  for (const cuda::Segment& segment : segments_) {
    for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) {
      const double x = parameters[i];
      const double slope = *h++ * x;
      sum += slope * x;
      gradients[i] += static_cast<float>(samples * slope + spread * sigma_ * Normal(rng));
    }
  }
  return samples * (options_.loss_floor + sum / 2) + spread * options_.loss_noise * Normal(rng);
}

std::optional<double> NoisyQuadratic::Validate(std::span<const float> parameters) {
  const float* h = eigenvalues_.data();
  double sum = 0;
  for (const cuda::Segment& segment : segments_) {
    for (const double x : parameters.subspan(segment.offset, segment.length)) sum += *h++ * x * x;
  }
  return options_.loss_floor + sum / 2;
}

}  // namespace tactus::simulator
