#include "agent/engine/combine/sketch_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "base/rng.h"
#include "cuda/ops/clones.h"

namespace tactus::engine {
namespace {

constexpr std::uint32_t kSignBit = 0x80000000;
constexpr std::size_t kChunk = 512;  // elements whose estimates are in the nearest cache together

// One row of a table, and its hash.
struct Row {
  Row(const SketchHash& hash, std::uint32_t row, std::uint32_t count)
      : columns(count),
        upper(hash.Row(row).data()),
        signs(hash.signs().data()),
        shift(31 - row),
        begin(std::size_t{row} * count) {}

  std::size_t PlaceOf(std::size_t i) const { return begin + ((upper[i] * columns) >> 32); }
  float WithSign(float value, std::size_t i) const {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^
                                ((signs[i] << shift) & kSignBit));
  }

  std::uint64_t columns;
  const std::uint32_t* upper;
  const std::uint32_t* signs;
  std::uint32_t shift;
  std::size_t begin;  // in the table
};

std::uint32_t ColumnsOf(const SketchHash& hash, std::size_t table, std::size_t values) {
  TACTUS_CHECK(table >= hash.rows() && table % hash.rows() == 0 && values <= hash.length());
  return static_cast<std::uint32_t>(table / hash.rows());
}

// Sorts each column by itself, by odd-even transposition.
TACTUS_VECTOR_CLONES void SortColumns(float (*rows)[kChunk], std::uint32_t count) {
  for (std::uint32_t pass = 0; pass < count; ++pass) {
    for (std::uint32_t row = pass % 2; row + 1 < count; row += 2) {
      float* const low = rows[row];
      float* const high = rows[row + 1];
      for (std::size_t i = 0; i < kChunk; ++i) {
        const float a = low[i];
        const float b = high[i];
        low[i] = std::min(a, b);
        high[i] = std::max(a, b);
      }
    }
  }
}

// Ordered as its bits are.
std::uint32_t MagnitudeOf(float value) { return std::bit_cast<std::uint32_t>(value) & ~kSignBit; }

// A magnitude that at least `count` of the values have, and few more: by a histogram of its upper
// bits, three of them of the fraction. Requires: 0 < count <= values.
std::uint32_t NearlyLast(std::span<const float> values, std::size_t count) {
  constexpr unsigned kLowerBits = 20;
  std::vector<std::uint32_t> histogram(std::size_t{1} << (31 - kLowerBits));
  for (const float value : values) ++histogram[MagnitudeOf(value) >> kLowerBits];
  std::size_t bin = histogram.size();
  for (std::size_t above = 0; above < count;) above += histogram[--bin];
  return static_cast<std::uint32_t>(bin << kLowerBits);
}

}  // namespace

SketchHash::SketchHash(std::uint64_t seed, std::uint32_t rows, std::size_t length)
    : seed_(seed), rows_(rows), upper_(rows * length), signs_(length) {
  TACTUS_CHECK(rows % 2 == 1 && rows <= kSketchRowsMax);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint64_t key = Rng(seed + row).Next();
    for (std::size_t i = 0; i < length; ++i) {
      const std::uint64_t z = Rng(key ^ i).Next();
      upper_[row * length + i] = static_cast<std::uint32_t>(z >> 32);
      signs_[i] |= static_cast<std::uint32_t>(z & 1) << row;
    }
  }
}

void AddToSketch(const SketchHash& hash, std::span<const float> values, std::span<float> table) {
  const std::uint32_t columns = ColumnsOf(hash, table.size(), values.size());
  float* const sums = table.data();
  for (std::uint32_t index = 0; index < hash.rows(); ++index) {
    const Row row(hash, index, columns);
    for (std::size_t i = 0; i < values.size(); ++i) {
      sums[row.PlaceOf(i)] += row.WithSign(values[i], i);
    }
  }
}

void AddToSketch(const SketchHash& hash, std::span<const float> values,
                 std::span<const std::uint32_t> places, std::span<float> table) {
  const std::uint32_t columns = ColumnsOf(hash, table.size(), values.size());
  float* const sums = table.data();
  for (std::uint32_t index = 0; index < hash.rows(); ++index) {
    const Row row(hash, index, columns);
    for (const std::uint32_t i : places) sums[row.PlaceOf(i)] += row.WithSign(values[i], i);
  }
}

void EstimateFromSketch(const SketchHash& hash, std::span<const float> table,
                        std::span<float> estimates) {
  const std::uint32_t columns = ColumnsOf(hash, table.size(), estimates.size());
  float rows[kSketchRowsMax][kChunk] = {};
  for (std::size_t first = 0; first < estimates.size(); first += kChunk) {
    const std::size_t count = std::min(kChunk, estimates.size() - first);
    for (std::uint32_t index = 0; index < hash.rows(); ++index) {
      const Row row(hash, index, columns);
      for (std::size_t i = 0; i < count; ++i) {
        rows[index][i] = row.WithSign(table[row.PlaceOf(first + i)], first + i);
      }
    }
    SortColumns(rows, hash.rows());
    std::copy_n(rows[hash.rows() / 2], count, estimates.data() + first);
  }
}

std::vector<std::uint32_t> LargestOf(std::span<const float> values, std::size_t count) {
  std::vector<std::uint32_t> places;
  if (count >= values.size()) {
    places.resize(values.size());
    std::iota(places.begin(), places.end(), 0u);
    return places;
  }
  if (count == 0) return places;
  const std::uint32_t floor = NearlyLast(values, count);
  std::vector<std::uint32_t> ranked;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (MagnitudeOf(values[i]) < floor) continue;
    places.push_back(static_cast<std::uint32_t>(i));
    ranked.push_back(MagnitudeOf(values[i]));
  }
  const auto last = ranked.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::ranges::nth_element(ranked, last, std::greater());
  const std::uint32_t threshold = *last;
  auto equal = std::count(ranked.begin(), last + 1, threshold);  // that are still to be kept
  std::erase_if(places, [&](std::uint32_t place) {
    const std::uint32_t each = MagnitudeOf(values[place]);
    return each < threshold || (each == threshold && equal-- <= 0);
  });
  return places;
}

}  // namespace tactus::engine
