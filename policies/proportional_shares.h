// Shares of a batch in proportion to speed, so that unequal workers take equally long for a step.

#pragma once

#include <cstdint>
#include <vector>

#include "policies/planner_options.h"

namespace tactus::policies {

// The shares b_i of a total B that minimise the longest compute time max_i b_i / v_i, within
// bounds:
//
//   b_i = floor(T v_i) within [batch_min, batch_max], T the largest time with sum_i b_i <= B;
//   each sample left over goes where it is done soonest, least (b_i + 1) / v_i
//
// Where several members make one replica (m = options.replica_members above 1), which passes over
// their samples together and is through when the slowest of them is, all that is so for replicas: a
// replica has m times the least speed of its members, each member of it has the same b_i, and what
// B has beyond a multiple of m is left out.
//
// speeds  [samples/s]  one a rank, each > 0 and finite; a multiple of m
// total   [samples]    clamped to what the bounds allow, [n batch_min, n batch_max]
// Returns one size a rank; their sum is the clamped total. Ties go to the lower rank. Without
// bounds b_i is at least floor(B v_i / sum_j v_j).
//
// Source: design. The least (b_i + 1) / v_i each time minimises the maximum, as an exchange shows.
std::vector<std::uint32_t> ProportionalShares(const std::vector<double>& speeds,
                                              std::uint64_t total, const BatchOptions& options);

// The longest step, max_i b_i / v_i. [s]
// speeds  [samples/s]  > 0, one a size
double LongestStep(const std::vector<std::uint32_t>& sizes, const std::vector<double>& speeds);

}  // namespace tactus::policies
