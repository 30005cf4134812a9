// Which member is to make how much of each sum, by how fast its link is.

#pragma once

#include <cstdint>
#include <vector>

namespace tactus::policies {

// A sum of n members' vectors of v bytes, made in slices (agent/collective/slices.h), takes
//
//   T = max_i v (1 + (n - 2) s_i) / r_i
//
// s_i  [1]        share of the vector that member i makes
// r_i  [bytes/s]  rate of its link, in the slower direction

// T of v = 1 byte. [s/byte] slices: thousandths, one a member; empty: all alike. Requires: at least
// two rates, all > 0.
double SlicedSeconds(const std::vector<double>& rates, const std::vector<std::uint32_t>& slices);

// The slices of which T is the least, and the members that are not the slowest carry as little as
// may be: those whose links are too slow make none. Thousandths, of kSlicesWhole together; empty
// where all are alike, as between two, whom slices save nothing. Requires: as above.
std::vector<std::uint32_t> SlicesFor(const std::vector<double>& rates);

}  // namespace tactus::policies
