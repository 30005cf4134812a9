// Points that stand for others: greedy facility location over distances.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "agent/subset/distances.h"

namespace tactus::subset {

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
  std::uint64_t seed = 1;  // of which are picked where all are alike
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
// most (ties: the lower point), and gives every point to the nearest picked one (ties: the earlier
// picked), a picked one to itself. F is monotone and submodular: F(S) >= (1 - 1/e) of the best S of
// that size. Where all points are alike, any are: chosen by the seed.
//
// Gains are exact. Distances are rounded to multiples of a power of two, at most D / 2^48 times the
// sum of the weights, which changes only those that are a tiny part of D; and a double holds any
// sum of such. So a pick changes gains by the terms alone of points whose nearest it is, and they
// stay what adding them up anew would give, in whatever order.
//
// The error bounds what the picked ones, by their weights, miss of the sum of all:
// |sum_i w_i x_i - sum_j weight_j x_j| <= error.
//
// Time n^2 (width + c), c how often the nearest picked one of a point changes in the mean: some
// five times for thousands of picks. Memory: all distances, n^2 of them. Any thread.
// Source: [craig] by way of its public code, which this differs from where that is wrong; see
// docs/decisions/0093-weighted-subsets.md.
Picked PickGreedily(const Points& points, const GreedyOptions& options);

}  // namespace tactus::subset
