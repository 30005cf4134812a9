// How far points are from one another, of which a choice of samples takes billions.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tactus::subset {

// Points [n, width], row-major; the memory outlives what looks at it.
struct Points {
  std::span<const float> values{};
  std::size_t width = 1;  // >= 1

  std::size_t size() const { return values.size() / width; }
  std::span<const float> Row(std::size_t point) const {
    return values.subspan(point * width, width);
  }
};

// Euclidean, in float32: what every stage of a selection measures with, so that each finds the same
// bits, 0 for equal points.
float Distance(std::span<const float> one, std::span<const float> other);

// The ways from any points to all of some, many at once: the same bits as Distance gives, several
// times as fast.
class DistancesTo {
 public:
  static constexpr std::size_t kTogether = 16;

  // Copies the points.
  explicit DistancesTo(const Points& points);

  struct Row {
    std::span<const float> from{};  // a point [width]
    std::span<float> ways{};        // [size()]: becomes its distances
  };
  // Of any number, at best kTogether: they read the points from memory once.
  void Compute(std::span<const Row> rows) const;

  std::size_t size() const { return size_; }

 private:
  std::size_t width_;
  std::size_t size_;
  std::vector<float> strips_;  // [strips, width, kStrip]: so many points lie side by side
};

}  // namespace tactus::subset
