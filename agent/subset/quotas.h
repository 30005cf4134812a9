// How a budget is shared among groups of unequal sizes.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tactus::subset {

// Of a budget, the part of each group, in proportion to its size by largest remainder (ties: the
// lower group): at least 1 of a group that has anything, at most all of it. The sum is the budget.
//
// sizes   [n]  of the groups; 0 gives 0
// budget  [1]  at least as many as there are groups with anything, at most all sizes together
//
// Source: design; spec of the subset, step 4. Rounding every group up, as public code does, exceeds
// the budget.
std::vector<std::uint64_t> Quotas(std::span<const std::uint64_t> sizes, std::uint64_t budget);

}  // namespace tactus::subset
