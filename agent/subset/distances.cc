#include "agent/subset/distances.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cuda/ops/clones.h"

namespace tactus::subset {
namespace {

// Points of a strip: of some tens of numbers each it stays in the nearest cache while rows pass.
constexpr std::size_t kStrip = 64;

using Ways = std::array<float, kStrip>;

// From a point to those of a strip. Each sum goes by rising k as that of Distance does: four terms
// at a time, so that sums are not fetched and put away for each, but one after the other.
TACTUS_VECTOR_CLONES void Measure(const float* strip, std::span<const float> from, Ways& ways) {
  Ways sums{};
  std::size_t k = 0;
  for (; k + 4 <= from.size(); k += 4, strip += 4 * kStrip) {
    const std::array<float, 4> own = {from[k], from[k + 1], from[k + 2], from[k + 3]};
    for (std::size_t j = 0; j < kStrip; ++j) {
      const float first = strip[j] - own[0];
      const float second = strip[kStrip + j] - own[1];
      const float third = strip[2 * kStrip + j] - own[2];
      const float fourth = strip[3 * kStrip + j] - own[3];
      float sum = sums[j];
      sum += first * first;
      sum += second * second;
      sum += third * third;
      sum += fourth * fourth;
      sums[j] = sum;
    }
  }
  for (; k < from.size(); ++k, strip += kStrip) {
    const float own = from[k];
    for (std::size_t j = 0; j < kStrip; ++j) {
      const float apart = strip[j] - own;
      sums[j] += apart * apart;
    }
  }
  for (std::size_t j = 0; j < kStrip; ++j) ways[j] = std::sqrt(sums[j]);
}

}  // namespace

float Distance(std::span<const float> one, std::span<const float> other) {
  float sum = 0;
  for (std::size_t k = 0; k < one.size(); ++k) {
    const float apart = one[k] - other[k];
    sum += apart * apart;
  }
  return std::sqrt(sum);
}

DistancesTo::DistancesTo(const Points& points)
    : width_(points.width),
      size_(points.size()),
      strips_((size_ + kStrip - 1) / kStrip * kStrip * width_) {
  for (std::size_t i = 0; i < size_; ++i) {
    float* const first = strips_.data() + i / kStrip * kStrip * width_ + i % kStrip;
    for (std::size_t k = 0; k < width_; ++k) {
      first[k * kStrip] = points.values[i * width_ + k];
    }
  }
}

void DistancesTo::Compute(std::span<const Row> rows) const {
  Ways ways;
  for (std::size_t begin = 0; begin < size_; begin += kStrip) {
    const std::size_t count = std::min(kStrip, size_ - begin);
    for (const Row& row : rows) {
      Measure(strips_.data() + begin * width_, row.from, ways);
      std::copy_n(ways.begin(), count, row.ways.begin() + static_cast<std::ptrdiff_t>(begin));
    }
  }
}

}  // namespace tactus::subset
