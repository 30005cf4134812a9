#include "cuda/ops/frozen_lamb.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "cuda/ops/clones.h"
#include "cuda/ops/frozen_lamb_element.h"
#include "cuda/ops/vector.h"

namespace tactus::cuda {

double ClippedFactor(double raw, double last, const FactorBounds& bounds) {
  TACTUS_CHECK(bounds.min > 0 && bounds.min <= 1 && bounds.max >= 1);
  TACTUS_CHECK(bounds.threshold > 0 && bounds.threshold < 1);
  const double within = raw > bounds.min ? std::min(raw, bounds.max) : bounds.min;
  return std::clamp(within, last * (1 - bounds.threshold), last * (1 + bounds.threshold));
}

FrozenLambFactors FactorsOf(const FrozenLambStep& step) {
  TACTUS_CHECK(step.frozen_step >= 1);
  const double left = std::pow(step.lamb.beta2, static_cast<double>(step.frozen_step));
  return {.lamb = FactorsOf(step.lamb),
          .frozen_correction = static_cast<float>(std::sqrt(1.0 - left))};
}

void FrozenLambRates(const FrozenLambStep& step, std::span<const double> sums,
                     const FrozenLambLayers& layers, std::span<double> rates) {
  const std::size_t segments = rates.size();
  TACTUS_CHECK(sums.size() == kFrozenLambSums * segments);
  TACTUS_CHECK(layers.ratios.size() == segments && layers.factors.size() == segments);
  const std::span<const double> largest = sums.subspan(2 * segments);
  for (std::size_t i = 0; i < segments; ++i) {
    double phi = largest[i] == 0 ? 1 : largest[i];
    if (step.lamb.weight_decay != 0) {
      const double own_norm2 = sums[2 * i];
      const double norm2 = sums[2 * i + 1];
      const double share = norm2 > 0 ? std::min(1.0, std::sqrt(own_norm2 / norm2)) : 1;
      phi = phi * share + 1 - share;
    }
    layers.factors[i] = ClippedFactor(phi, layers.factors[i], step.factor);
    rates[i] = -step.lamb.learning_rate * layers.ratios[i] * layers.factors[i];
  }
}

namespace host {
namespace {

constexpr std::size_t kBlock = 2048;  // elements at a time: small enough for the first cache

FrozenLambBuffers Part(const FrozenLambBuffers& buffers, std::size_t offset, std::size_t length) {
  return {.gradients = buffers.gradients.subspan(offset, length),
          .parameters = buffers.parameters.subspan(offset, length),
          .first_moment = buffers.first_moment.subspan(offset, length),
          .second_moment = buffers.second_moment.subspan(offset, length),
          .fresh_moment = buffers.fresh_moment.subspan(offset, length)};
}

TACTUS_VECTOR_CLONES void FreshMomentsLoop(const FrozenLambFactors& factors,
                                           const FrozenLambBuffers& buffers) {
  const LambFactors f = factors.lamb;
  const float* __restrict gradients = buffers.gradients.data();
  float* __restrict first = buffers.first_moment.data();
  float* __restrict fresh = buffers.fresh_moment.data();
  const std::size_t n = buffers.gradients.size();
  for (std::size_t i = 0; i < n; ++i) LambMoments(f, gradients[i], first[i], fresh[i]);
}

// direction[0 .. n) <- u of the buffers' n <= kBlock elements, `own` <- u0.
TACTUS_VECTOR_CLONES void FrozenDirectionLoop(const FrozenLambFactors& factors,
                                              const FrozenLambBuffers& buffers,
                                              float* __restrict own, float* __restrict direction) {
  const FrozenLambFactors f = factors;
  const float* __restrict parameters = buffers.parameters.data();
  const float* __restrict first = buffers.first_moment.data();
  const float* __restrict second = buffers.second_moment.data();
  const std::size_t n = buffers.parameters.size();
  for (std::size_t i = 0; i < n; ++i) {
    own[i] = FrozenDirection(f, first[i], second[i]);
    direction[i] = WithDecay(f, own[i], parameters[i]);
  }
}

struct FrozenNorms {
  double own = 0;
  double direction = 0;
  double largest = 0;
};

// Updates the moments of one segment.
FrozenNorms UpdateMoments(const FrozenLambFactors& factors, const FrozenLambBuffers& segment) {
  float own[kBlock];
  float direction[kBlock];
  FrozenNorms norms;
  for (std::size_t i = 0; i < segment.gradients.size(); i += kBlock) {
    const std::size_t length = std::min(kBlock, segment.gradients.size() - i);
    const FrozenLambBuffers block = Part(segment, i, length);
    FreshMomentsLoop(factors, block);
    FrozenDirectionLoop(factors, block, own, direction);
    norms.own += SquaredNorm({own, length});
    norms.direction += SquaredNorm({direction, length});
    for (std::size_t k = 0; k < length; ++k) {
      const double ratio = FrozenOverFresh(factors, block.second_moment[k], block.fresh_moment[k]);
      norms.largest = std::max(norms.largest, ratio);
    }
  }
  return norms;
}

// x <- x + rate * u. Computes u a second time, to the same bits: cheaper than to keep it.
void MoveParameters(const FrozenLambFactors& factors, float rate,
                    const FrozenLambBuffers& segment) {
  float own[kBlock];
  float direction[kBlock];
  for (std::size_t i = 0; i < segment.parameters.size(); i += kBlock) {
    const std::size_t length = std::min(kBlock, segment.parameters.size() - i);
    const FrozenLambBuffers block = Part(segment, i, length);
    FrozenDirectionLoop(factors, block, own, direction);
    Axpy(rate, {direction, length}, block.parameters);
  }
}

void CheckFits(const SegmentTable& segments, const FrozenLambBuffers& buffers) {
  const std::size_t length = buffers.parameters.size();
  for (const std::size_t each : {buffers.gradients.size(), buffers.first_moment.size(),
                                 buffers.second_moment.size(), buffers.fresh_moment.size()}) {
    TACTUS_CHECK(each == length);
  }
  for (const Segment& segment : segments) {
    TACTUS_CHECK(segment.offset <= length && segment.length <= length - segment.offset);
  }
}

}  // namespace

void FrozenLambSums(const FrozenLambStep& step, const SegmentTable& segments,
                    const FrozenLambBuffers& buffers, std::span<double> sums) {
  CheckFits(segments, buffers);
  TACTUS_CHECK(sums.size() == kFrozenLambSums * segments.size());
  FrozenLambFactors factors = FactorsOf(step);
  if (!Through(step.lamb.gate, factors.lamb.gradient_scale)) return;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const FrozenNorms norms =
        UpdateMoments(factors, Part(buffers, segments[i].offset, segments[i].length));
    sums[2 * i] = norms.own;
    sums[2 * i + 1] = norms.direction;
    sums[2 * segments.size() + i] = norms.largest;
  }
}

void FrozenLambMove(const FrozenLambStep& step, const SegmentTable& segments,
                    const FrozenLambBuffers& buffers, std::span<const double> rates) {
  CheckFits(segments, buffers);
  TACTUS_CHECK(rates.size() == segments.size());
  FrozenLambFactors factors = FactorsOf(step);
  if (!Through(step.lamb.gate, factors.lamb.gradient_scale)) return;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    MoveParameters(factors, static_cast<float>(rates[i]),
                   Part(buffers, segments[i].offset, segments[i].length));
  }
}

}  // namespace host
}  // namespace tactus::cuda
