#include "cuda/ops/frozen_lamb.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "cuda/ops/clones.h"
#include "cuda/ops/lamb_element.h"
#include "cuda/ops/vector.h"

namespace tactus::cuda {

double ClippedFactor(double raw, double last, const FactorBounds& bounds) {
  TACTUS_CHECK(bounds.min > 0 && bounds.min <= 1 && bounds.max >= 1);
  TACTUS_CHECK(bounds.threshold > 0 && bounds.threshold < 1);
  const double within = raw > bounds.min ? std::min(raw, bounds.max) : bounds.min;
  return std::clamp(within, last * (1 - bounds.threshold), last * (1 + bounds.threshold));
}

namespace host {
namespace {

constexpr std::size_t kBlock = 2048;  // elements at a time: small enough for the first cache

struct Factors {
  LambFactors lamb{};
  float frozen_correction = 1;  // sqrt(1 - beta2^f)
};

FrozenLambBuffers Part(const FrozenLambBuffers& buffers, std::size_t offset, std::size_t length) {
  return {.gradients = buffers.gradients.subspan(offset, length),
          .parameters = buffers.parameters.subspan(offset, length),
          .first_moment = buffers.first_moment.subspan(offset, length),
          .second_moment = buffers.second_moment.subspan(offset, length),
          .fresh_moment = buffers.fresh_moment.subspan(offset, length)};
}

TACTUS_VECTOR_CLONES void FreshMomentsLoop(const Factors& factors,
                                           const FrozenLambBuffers& buffers) {
  const LambFactors f = factors.lamb;
  const float* __restrict gradients = buffers.gradients.data();
  float* __restrict first = buffers.first_moment.data();
  float* __restrict fresh = buffers.fresh_moment.data();
  const std::size_t n = buffers.gradients.size();
  for (std::size_t i = 0; i < n; ++i) LambMoments(f, gradients[i], first[i], fresh[i]);
}

// direction[0 .. n) <- u of the buffers' n <= kBlock elements, `own` <- u0.
TACTUS_VECTOR_CLONES void FrozenDirectionLoop(const Factors& factors,
                                              const FrozenLambBuffers& buffers,
                                              float* __restrict own, float* __restrict direction) {
  const LambFactors f = factors.lamb;
  const float correction = factors.frozen_correction;
  const float* __restrict parameters = buffers.parameters.data();
  const float* __restrict first = buffers.first_moment.data();
  const float* __restrict second = buffers.second_moment.data();
  const std::size_t n = buffers.parameters.size();
  for (std::size_t i = 0; i < n; ++i) {
    const float root = std::sqrt(second[i]) / correction + f.epsilon;
    own[i] = f.first_correction * first[i] / root;
    direction[i] = own[i] + f.weight_decay * parameters[i];
  }
}

// max d / r; 0 where no element had a gradient.
double LargestRatio(const Factors& factors, const FrozenLambBuffers& buffers) {
  double largest = 0;
  for (std::size_t i = 0; i < buffers.second_moment.size(); ++i) {
    if (buffers.second_moment[i] == 0) continue;
    const float frozen =
        std::sqrt(buffers.second_moment[i]) / factors.frozen_correction + factors.lamb.epsilon;
    const float fresh =
        std::sqrt(buffers.fresh_moment[i]) / factors.lamb.root_correction + factors.lamb.epsilon;
    largest = std::max(largest, static_cast<double>(frozen) / static_cast<double>(fresh));
  }
  return largest;
}

// Updates the moments of one segment. Returns phi.
double Correction(const Factors& factors, const FrozenLambBuffers& segment) {
  float own[kBlock];
  float direction[kBlock];
  double own_norm2 = 0;
  double norm2 = 0;
  double phi = 0;
  for (std::size_t i = 0; i < segment.gradients.size(); i += kBlock) {
    const std::size_t length = std::min(kBlock, segment.gradients.size() - i);
    const FrozenLambBuffers block = Part(segment, i, length);
    FreshMomentsLoop(factors, block);
    FrozenDirectionLoop(factors, block, own, direction);
    own_norm2 += SquaredNorm({own, length});
    norm2 += SquaredNorm({direction, length});
    phi = std::max(phi, LargestRatio(factors, block));
  }
  if (phi == 0) phi = 1;
  if (factors.lamb.weight_decay == 0) return phi;
  const double share = norm2 > 0 ? std::min(1.0, std::sqrt(own_norm2 / norm2)) : 1;
  return phi * share + 1 - share;
}

// x <- x + rate * u. Computes u a second time, to the same bits: cheaper than to keep it.
void Move(const Factors& factors, float rate, const FrozenLambBuffers& segment) {
  float own[kBlock];
  float direction[kBlock];
  for (std::size_t i = 0; i < segment.parameters.size(); i += kBlock) {
    const std::size_t length = std::min(kBlock, segment.parameters.size() - i);
    const FrozenLambBuffers block = Part(segment, i, length);
    FrozenDirectionLoop(factors, block, own, direction);
    Axpy(rate, {direction, length}, block.parameters);
  }
}

void CheckFits(const SegmentTable& segments, const FrozenLambBuffers& buffers,
               const FrozenLambLayers& layers) {
  const std::size_t length = buffers.parameters.size();
  for (const std::size_t each : {buffers.gradients.size(), buffers.first_moment.size(),
                                 buffers.second_moment.size(), buffers.fresh_moment.size()}) {
    TACTUS_CHECK(each == length);
  }
  for (const Segment& segment : segments) {
    TACTUS_CHECK(segment.offset <= length && segment.length <= length - segment.offset);
  }
  TACTUS_CHECK(layers.ratios.size() == segments.size());
  TACTUS_CHECK(layers.factors.size() == segments.size());
}

}  // namespace

void FrozenLamb(const FrozenLambStep& step, const SegmentTable& segments,
                const FrozenLambBuffers& buffers, const FrozenLambLayers& layers) {
  CheckFits(segments, buffers, layers);
  TACTUS_CHECK(step.frozen_step >= 1);
  const double left = std::pow(step.lamb.beta2, static_cast<double>(step.frozen_step));
  Factors factors{.lamb = FactorsOf(step.lamb),
                  .frozen_correction = static_cast<float>(std::sqrt(1.0 - left))};
  if (!Through(step.lamb.gate, factors.lamb.gradient_scale)) return;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].length == 0) continue;
    const FrozenLambBuffers part = Part(buffers, segments[i].offset, segments[i].length);
    layers.factors[i] = ClippedFactor(Correction(factors, part), layers.factors[i], step.factor);
    const double rate = step.lamb.learning_rate * layers.ratios[i] * layers.factors[i];
    Move(factors, static_cast<float>(-rate), part);
  }
}

}  // namespace host
}  // namespace tactus::cuda
