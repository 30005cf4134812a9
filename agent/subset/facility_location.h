// Points that stand for others: greedy facility location over distances.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// What was picked of n points.
struct Picked {
  std::vector<std::size_t> points{};     // in the order of their picking
  std::vector<double> gains{};           // of F, by each
  std::vector<std::uint64_t> weights{};  // how much each stands for: sum = that of the points'
  double error = 0;                      // sum over the points, weighted, of the way to the nearest
  double value = 0;                      // F, the sum of the gains
};

struct GreedyOptions {
  std::size_t budget = 1;  // points to pick, in [1, n]
  // How much each point counts, >= 1; empty: 1. At most 2^24 each.
  std::span<const std::uint64_t> weights{};
  std::uint64_t seed = 1;  // of which are picked where all are alike, and of samples
  // > 0: each pick is the best of so many that are drawn, not of all (SampleOf).
  std::size_t sample = 0;
  // Asked each time that kProductsBetween or a row more were computed; false: it ends at once, and
  // nothing is picked.
  std::function<bool()> go_on{};
};

// Some hundredths of a second of a slow processor.
inline constexpr std::size_t kProductsBetween = std::size_t{1} << 24;

// Picks, one by one, the point that raises
//
//   F(S) = sum_i w_i max_{j in S} (D - d_ij),   D the longest distance
//
// (of more than kCachedPoints points twice the longest one from the first, which is no less: it
// raises the first gain of each alike, and so changes nothing in what is picked)
//
// most (ties: the lower point), and gives every point to the nearest picked one (ties: the earlier
// picked), a picked one to itself. F is monotone and submodular: F(S) >= (1 - 1/e) of the best S of
// that size, and the bound on a gain only falls, so that most need not be computed anew (lazy
// greedy), which changes nothing in what is picked. Where all points are alike, any are: chosen by
// the seed.
//
// The error bounds what the picked ones, by their weights, miss of the sum of all:
// |sum_i w_i x_i - sum_j weight_j x_j| <= error.
//
// Time n^2 width, memory n^2 up to kCachedPoints points and n from there on. Any thread.
// Source: [craig] by way of its public code, which this differs from where that is wrong; see
// docs/decisions/0093-weighted-subsets.md.
Picked PickGreedily(const Points& points, const GreedyOptions& options);

// Of how many points all distances are kept: 64 MiB of them.
inline constexpr std::size_t kCachedPoints = 4096;

// How many points a pick is the best of, for an expected F of 1 - 1/e - delta of the best:
// ceil(n / budget ln(1 / delta)). delta in (0, 1).
// Source: stochastic greedy; memory, unverified.
std::size_t SampleOf(std::size_t points, std::size_t budget, double delta);

}  // namespace tactus::subset
