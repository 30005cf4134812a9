// What encodings have left with the members of a group, and what of it falls to those of another.

#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tactus::engine {

// Of one member, in the host's memory, by Residual::name.
using Residuals = std::map<std::string, std::vector<float>>;

// Whether they are of the vector, one a parameter: then of all members' the sum counts. Others say
// what those are of, which is the same on all members with whom something was left, and 0 on those
// with whom nothing was.
bool OfVector(const std::vector<float>& values);

// into <- what is left with both, members of one group with one encoding.
void Add(const Residuals& from, Residuals& into);

// What all members of a group were left with, by rank.
struct ResidualParts {
  std::size_t members = 0;
  std::function<Residuals(std::size_t rank)> of{};
};

// What of it falls to the rank of a group of `size`: in one as large each member's own; in a
// smaller one those of ranks that are no more go to those who stay, one after the other; in a
// larger one those who came have none. Nothing is lost, and encodings scale it as they do when a
// round's samples change.
//
// Source: section 0 of the specification, S6, for sums in the place of means.
Residuals ShareOf(const ResidualParts& parts, std::size_t rank, std::size_t size);

}  // namespace tactus::engine
