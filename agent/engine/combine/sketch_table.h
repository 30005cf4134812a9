// A count sketch: a vector as a table of fewer numbers, from which its large values can be told.
//
//   T_j[h_j(i)] += s_j(i) x_i               for every element i and row j
//   estimate of x_i: the median over the rows of s_j(i) T_j[h_j(i)]
//
//   key_j = mix(seed + j)   z = mix(key_j xor i)   mix: a step of SplitMix64
//   h_j(i) = ((z >> 32) C) >> 32            one of C columns
//   s_j(i) = +1 where z is even, -1 otherwise
//
// Tables add up: the sum of the members' is that of the sum of their vectors. A row is right on
// average, with a standard deviation of ||x|| / sqrt(C), x_i left out; the median passes over rows
// in which something large has met x_i.
//
// Source: [sketched-sgd] for the sketch, from memory; hashes: design, section 1 of the
// specification.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tactus::engine {

inline constexpr std::uint32_t kSketchRowsMax = 9;

// What h and s are made of, for tables of any number of columns: those of one hash, rows and
// columns can be added up. Computed once for all vectors up to a length: to do so again for each
// takes twice the time of a sketch and of estimates.
class SketchHash {
 public:
  // rows: odd, so that there is a middle one, up to kSketchRowsMax. length: of the longest vector.
  SketchHash(std::uint64_t seed, std::uint32_t rows, std::size_t length);

  std::uint64_t seed() const { return seed_; }
  std::uint32_t rows() const { return rows_; }
  std::size_t length() const { return signs_.size(); }

  // z >> 32 of a row. [length]
  std::span<const std::uint32_t> Row(std::uint32_t row) const {
    return std::span(upper_).subspan(row * length(), length());
  }
  // z & 1 of row j in the bit j. [length]
  std::span<const std::uint32_t> signs() const { return signs_; }

 private:
  std::uint64_t seed_;
  std::uint32_t rows_;
  std::vector<std::uint32_t> upper_;  // [rows, length]
  std::vector<std::uint32_t> signs_;
};

// table [rows, columns], row-major <- table + the sketch of `values`, elements in rising order. A
// value that is not finite leaves each row with a number that is not.
void AddToSketch(const SketchHash& hash, std::span<const float> values, std::span<float> table);
// The same of a vector that is 0 but at these places, which are in rising order.
void AddToSketch(const SketchHash& hash, std::span<const float> values,
                 std::span<const std::uint32_t> places, std::span<float> table);

// estimates[i] <- the estimate of element i. Requires: all of the table is finite.
void EstimateFromSketch(const SketchHash& hash, std::span<const float> table,
                        std::span<float> estimates);

// Where the `count` values of the largest magnitude are, or all if there are no more, in rising
// order; of equal ones the first. Fewer than 2^32 values; what is no number is above all that are.
std::vector<std::uint32_t> LargestOf(std::span<const float> values, std::size_t count);

}  // namespace tactus::engine
