// Who makes how much of a sum over a mesh: each member adds up a slice of what all have, and sends
// it to all.
//
// A member sends and receives (1 - s) + s (n - 1) of a vector, s its slice's share of it and n the
// members: 2 (n - 1) / n where all slices are alike, and from 1 on where they are not. So whose
// link is slow has less to carry by making less. The sums are the same, bit for bit: each element
// is added up in rank order, by whomever.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace tactus::collective {

// Parts by rank, of which not all are 0. Null: they are alike.
using Slices = std::shared_ptr<const std::vector<std::uint32_t>>;

// From where to where the slice of `rank` is of so many things; those of all make up the whole.
// slices: of `size` members, or null.
inline std::pair<std::size_t, std::size_t> SliceOf(std::size_t whole, int rank, int size,
                                                   const Slices& slices) {
  const auto index = static_cast<std::size_t>(rank);
  if (slices == nullptr) {
    const auto count = static_cast<std::size_t>(size);
    return {whole * index / count, whole * (index + 1) / count};
  }
  const std::span<const std::uint32_t> parts = *slices;
  const auto before = [&](std::size_t end) {
    return std::accumulate(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(end),
                           std::size_t{0});
  };
  const std::size_t all = before(parts.size());
  return {whole * before(index) / all, whole * before(index + 1) / all};
}

}  // namespace tactus::collective
