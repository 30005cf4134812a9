#include "cuda/ops/lamb.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "cuda/ops/clones.h"
#include "cuda/ops/lamb_element.h"
#include "cuda/ops/lamb_parts.h"
#include "cuda/ops/vector.h"

namespace tactus::cuda {
namespace {

float Rounded(double value) { return static_cast<float>(value); }

}  // namespace

LambFactors FactorsOf(const LambStep& step) {
  TACTUS_CHECK(step.step >= 1);
  TACTUS_CHECK(step.ratio_min <= step.ratio_max);
  const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
  return {
      .gradient_scale = step.gradient_scale,
      .beta1 = Rounded(step.beta1),
      .beta1_complement = Rounded(1.0 - step.beta1),
      .beta2 = Rounded(step.beta2),
      .beta2_complement = Rounded(1.0 - step.beta2),
      .first_correction = Rounded(1.0 / correction1),
      .root_correction = Rounded(std::sqrt(correction2)),
      .epsilon = step.epsilon,
      .weight_decay = Rounded(step.weight_decay),
      .learning_rate = step.learning_rate,
      .ratio_min = step.ratio_min,
      .ratio_max = step.ratio_max,
  };
}

namespace host {
namespace {

// Elements whose direction is computed at a time: small enough for the first cache.
constexpr std::size_t kBlock = 2048;

LambBuffers Part(const LambBuffers& buffers, std::size_t offset, std::size_t length) {
  return {.gradients = buffers.gradients.subspan(offset, length),
          .parameters = buffers.parameters.subspan(offset, length),
          .first_moment = buffers.first_moment.subspan(offset, length),
          .second_moment = buffers.second_moment.subspan(offset, length)};
}

TACTUS_VECTOR_CLONES void MomentsLoop(const LambFactors& factors, const LambBuffers& buffers) {
  const LambFactors f = factors;
  const float* __restrict gradients = buffers.gradients.data();
  float* __restrict first_moment = buffers.first_moment.data();
  float* __restrict second_moment = buffers.second_moment.data();
  const std::size_t n = buffers.gradients.size();
  for (std::size_t i = 0; i < n; ++i) {
    LambMoments(f, gradients[i], first_moment[i], second_moment[i]);
  }
}

// direction[0 .. n) <- u of the buffers' n <= kBlock elements.
TACTUS_VECTOR_CLONES void DirectionLoop(const LambFactors& factors, const LambBuffers& buffers,
                                        float* __restrict direction) {
  const LambFactors f = factors;
  const float* __restrict parameters = buffers.parameters.data();
  const float* __restrict first_moment = buffers.first_moment.data();
  const float* __restrict second_moment = buffers.second_moment.data();
  const std::size_t n = buffers.parameters.size();
  for (std::size_t i = 0; i < n; ++i) {
    direction[i] = LambDirection(f, parameters[i], first_moment[i], second_moment[i]);
  }
}

// Updates the moments of one segment. Returns ||u||^2.
double UpdateMoments(const LambFactors& factors, const LambBuffers& segment) {
  float direction[kBlock];
  double norm2 = 0;
  for (std::size_t i = 0; i < segment.gradients.size(); i += kBlock) {
    const std::size_t length = std::min(kBlock, segment.gradients.size() - i);
    const LambBuffers block = Part(segment, i, length);
    MomentsLoop(factors, block);
    DirectionLoop(factors, block, direction);
    norm2 += SquaredNorm({direction, length});
  }
  return norm2;
}

// ||u||^2 as UpdateMoments has it, of moments that stay as they are.
double DirectionNorm2(const LambFactors& factors, const LambBuffers& segment) {
  float first[kBlock];
  float second[kBlock];
  float direction[kBlock];
  double norm2 = 0;
  for (std::size_t i = 0; i < segment.gradients.size(); i += kBlock) {
    const std::size_t length = std::min(kBlock, segment.gradients.size() - i);
    LambBuffers block = Part(segment, i, length);
    std::ranges::copy(block.first_moment, first);
    std::ranges::copy(block.second_moment, second);
    block.first_moment = {first, length};
    block.second_moment = {second, length};
    MomentsLoop(factors, block);
    DirectionLoop(factors, block, direction);
    norm2 += SquaredNorm({direction, length});
  }
  return norm2;
}

// x <- x + rate * u. Computes u a second time, to the same bits: cheaper than to keep it.
void MoveParameters(const LambFactors& factors, float rate, const LambBuffers& segment) {
  float direction[kBlock];
  for (std::size_t i = 0; i < segment.parameters.size(); i += kBlock) {
    const std::size_t length = std::min(kBlock, segment.parameters.size() - i);
    const LambBuffers block = Part(segment, i, length);
    DirectionLoop(factors, block, direction);
    Axpy(rate, {direction, length}, block.parameters);
  }
}

void CheckFits(const SegmentTable& segments, const LambBuffers& buffers) {
  const std::size_t length = buffers.parameters.size();
  TACTUS_CHECK(buffers.gradients.size() == length);
  TACTUS_CHECK(buffers.first_moment.size() == length);
  TACTUS_CHECK(buffers.second_moment.size() == length);
  for (const Segment& segment : segments) {
    TACTUS_CHECK(segment.offset <= length && segment.length <= length - segment.offset);
  }
}

}  // namespace

void Lamb(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers) {
  CheckFits(segments, buffers);
  LambFactors factors = FactorsOf(step);
  if (!Through(step.gate, factors.gradient_scale)) return;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const LambBuffers part = Part(buffers, segments[i].offset, segments[i].length);
    const LambNorms norms{.parameters = SquaredNorm(part.parameters),
                          .direction = UpdateMoments(factors, part)};
    MoveParameters(factors, LambRate(factors, norms), part);
  }
}

bool LambSums(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers,
              std::span<double> sums) {
  CheckFits(segments, buffers);
  TACTUS_CHECK(sums.size() == kLambSumsPerSegment * segments.size());
  LambFactors factors = FactorsOf(step);
  if (!Through(step.gate, factors.gradient_scale)) return false;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const LambBuffers part = Part(buffers, segments[i].offset, segments[i].length);
    const std::span<double> row = sums.subspan(kLambSumsPerSegment * i, kLambSumsPerSegment);
    row[0] = SquaredNorm(part.parameters);
    row[1] = DirectionNorm2(factors, part);
  }
  return true;
}

void LambOfParts(const LambStep& step, const SegmentTable& segments, const LambBuffers& buffers,
                 std::span<const double> sums) {
  CheckFits(segments, buffers);
  TACTUS_CHECK(sums.size() == kLambSumsPerSegment * segments.size());
  LambFactors factors = FactorsOf(step);
  if (!Through(step.gate, factors.gradient_scale)) return;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const LambBuffers part = Part(buffers, segments[i].offset, segments[i].length);
    const std::span<const double> row = sums.subspan(kLambSumsPerSegment * i, kLambSumsPerSegment);
    MomentsLoop(factors, part);
    MoveParameters(factors, LambRate(factors, {.parameters = row[0], .direction = row[1]}), part);
  }
}

}  // namespace host
}  // namespace tactus::cuda
