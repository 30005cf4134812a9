// Which member holds the optimizer's state of which parameters, where no member holds all of it.
//
// The flat vector is cut into one stretch a member, as long as the member's weight asks for: it
// takes the steps of its stretch and tells the others what became of the parameters there (ZeRO-1).
// Pure: what members hold goes in, what has to move comes out, equal on all of them.
//
// Source: memory, unverified, [zero], whose partitions are equally long.
// Differs: stretches are as long as the members' memories ask for, and may be held twice.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

// How large each member's part is, as a job file has it.
enum class ShardBy { kNone, kEqual, kMemory };  // kNone: all of it is on every member

constexpr std::string_view NameOf(ShardBy by) {
  constexpr std::array<std::string_view, 3> kNames = {"none", "equal", "memory"};
  return kNames[static_cast<std::size_t>(by)];
}

// How a job's optimizer state is held.
struct ShardOptions {
  ShardBy by = ShardBy::kNone;
  // Of members that hold each stretch: 1, or 2 so that the loss of one member loses no state.
  std::uint32_t copies = 1;
  // Of this member, by which its stretch is measured; 0: not known, and then all are equally long.
  std::uint64_t weight = 1;

  bool on() const { return by != ShardBy::kNone; }
};

// Elements of the flat vector, [begin, end).
struct ShardStretch {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t length() const { return end - begin; }
  friend bool operator==(const ShardStretch&, const ShardStretch&) = default;
};

// Stretches begin at multiples of it, so that vectors may be read aligned. [elements]
inline constexpr std::size_t kShardGrain = cuda::kSegmentAlignment;

// Cuts [0, length) into one stretch for each weight, in their order, which cover it without a gap.
// Lengths are as the weights to within kShardGrain; one whose weight is too small may be empty.
// weights: at least one, of any unit; one that is 0 has an empty stretch, unless all are 0, and
// then all are equally long.
std::vector<ShardStretch> CutByWeights(std::size_t length, std::span<const std::uint64_t> weights);

// What each member holds, by rank: its own stretch first, then those of as many members before it,
// in a circle of those whose stretches are not empty, as there are further copies.
std::vector<std::vector<ShardStretch>> HoldingsOf(const std::vector<ShardStretch>& own,
                                                  std::uint32_t copies);

// A stretch that one member has and others lack.
struct ShardMove {
  ShardStretch stretch{};
  std::size_t source = 0;  // rank

  friend bool operator==(const ShardMove&, const ShardMove&) = default;
};

struct ShardMoves {
  // Ascending. Each lies within one stretch of all who hold or want some of it.
  std::vector<ShardMove> moves{};
  std::vector<ShardStretch> lost{};  // wanted, and held by nobody; ascending
};

// From what members hold to what they are to hold, both by rank. The source is the lowest rank.
ShardMoves PlanMoves(const std::vector<std::vector<ShardStretch>>& held,
                     const std::vector<std::vector<ShardStretch>>& wanted);

}  // namespace tactus::engine

namespace tactus {

template <>
inline constexpr int kEnumMax<engine::ShardBy> = static_cast<int>(engine::ShardBy::kMemory);

}  // namespace tactus
