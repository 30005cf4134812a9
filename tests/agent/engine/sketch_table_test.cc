#include "agent/engine/combine/sketch_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// Tables of so many columns.
struct Shape {
  std::uint32_t rows = 5;
  std::uint32_t columns = 1;
  std::uint64_t seed = 0;

  std::size_t length() const { return std::size_t{rows} * columns; }
  SketchHash HashOf(std::size_t values) const { return {seed, rows, values}; }
};

std::vector<float> Sketch(const Shape& shape, const std::vector<float>& values) {
  std::vector<float> table(shape.length());
  AddToSketch(shape.HashOf(values.size()), values, table);
  return table;
}

std::vector<float> Estimates(const Shape& shape, const std::vector<float>& table,
                             std::size_t length) {
  std::vector<float> estimates(length);
  EstimateFromSketch(shape.HashOf(length), table, estimates);
  return estimates;
}

std::vector<float> Sum(std::vector<float> a, const std::vector<float>& b) {
  std::ranges::transform(a, b, a.begin(), std::plus());
  return a;
}

std::vector<float> WholeNumbers(Rng& rng, std::size_t length) {
  std::vector<float> values(length);
  for (float& value : values) value = static_cast<float>(rng.Below(2001)) - 1000;
  return values;
}

// Section 1h of the specification.
constexpr Shape kVectorShape = {.rows = 3, .columns = 8, .seed = 42};
const std::vector<float> kVector0 = {10, 0, -1, 2, 0, 0, 3, -7, 0, 1, 0, 0, -2, 0, 1, 0};
const std::vector<float> kVector1 = {8, 1, 0, -2, 0, 0, -3, -9, 0, 0, 2, 0, -1, 0, 0, 1};

TEST(SketchTablePaperTest, Tv1ColumnsAndSigns) {
  const std::string columns[] = {"2737275077544376", "6371021114273524", "4464165600354003"};
  const std::string signs[] = {"+-++---+-+++-+-+", "+++---+-+++-+-++", "-+-+--+---+-++--"};
  for (std::size_t i = 0; i < 16; ++i) {
    std::vector<float> one(16);
    one[i] = 1;
    std::vector<float> expected(kVectorShape.length());
    for (std::size_t row = 0; row < 3; ++row) {
      const auto column = static_cast<std::size_t>(columns[row][i] - '0');
      expected[row * kVectorShape.columns + column] = signs[row][i] == '+' ? 1 : -1;
    }

    EXPECT_EQ(Sketch(kVectorShape, one), expected) << i;
  }
}

TEST(SketchTablePaperTest, Tv2TableAndEstimates) {
  const std::vector<float> table =
      Sum(Sketch(kVectorShape, kVector0), Sketch(kVectorShape, kVector1));

  EXPECT_THAT(table, ElementsAre(-16, 0, 18, -1, 3, 2, 1, -1,   //
                                 0, 16, 3, -2, 2, 0, 18, -1,    //
                                 -2, 0, 0, 1, -20, 0, 17, 0));  //
  const std::vector<float> estimates = Estimates(kVectorShape, table, 16);
  EXPECT_THAT(estimates, ElementsAre(18, -2, -1, -16, 0, -3, 0, -16, 2, 2, 2, 1, -3, -1, 2, 1));
  EXPECT_THAT(LargestOf(estimates, 4), ElementsAre(0, 3, 5, 7));  // 5 before 12
}

TEST(SketchTablePaperTest, Tv3ATieGoesToTheFirst) {
  const std::vector<float> table = Sketch(kVectorShape, Sum(kVector0, kVector1));

  EXPECT_THAT(LargestOf(Estimates(kVectorShape, table, 16), 2), ElementsAre(0, 3));
}

// Section 1g, invariant 1.
TEST(SketchTablePropertyTest, TablesAddUp) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    const Shape shape = {.rows = static_cast<std::uint32_t>(2 * rng.Below(5) + 1),
                         .columns = static_cast<std::uint32_t>(rng.Below(300) + 1),
                         .seed = rng.Next()};
    const std::size_t length = rng.Below(1500);
    const std::vector<float> a = WholeNumbers(rng, length);
    const std::vector<float> b = WholeNumbers(rng, length);

    ASSERT_EQ(Sum(Sketch(shape, a), Sketch(shape, b)), Sketch(shape, Sum(a, b))) << seed;
  }
}

// Invariant 2.
TEST(SketchTablePropertyTest, AValueByItselfIsExact) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    const Shape shape = {.columns = static_cast<std::uint32_t>(rng.Below(100) + 1), .seed = seed};
    std::vector<float> values(rng.Below(2000) + 1);
    const std::size_t place = rng.Below(values.size());
    values[place] = 0.1f + static_cast<float>(rng.Uniform());

    const std::vector<float> estimates = Estimates(shape, Sketch(shape, values), values.size());

    ASSERT_EQ(estimates[place], values[place]) << seed;
  }
}

// By Chebyshev's inequality for one row, whose variance is known.
TEST(SketchTablePropertyTest, ARowIsRightOnAverage) {
  constexpr int kSeeds = 1000;
  Rng rng(7);
  const std::vector<float> values = WholeNumbers(rng, 400);
  double norm2 = 0;
  for (const float value : values) norm2 += static_cast<double>(value) * value;
  std::vector<double> mean(values.size());
  for (int seed = 0; seed < kSeeds; ++seed) {
    const Shape shape = {
        .rows = 1, .columns = 50, .seed = Rng(static_cast<std::uint64_t>(seed)).Next()};
    const std::vector<float> estimates = Estimates(shape, Sketch(shape, values), values.size());
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += estimates[i] / double{kSeeds};
  }

  // Six deviations of a mean of nearly normal terms: 400 of them are outside once in a million.
  for (std::size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(mean[i], values[i], 6 * std::sqrt(norm2 / 50 / kSeeds)) << i;
  }
}

// The specification, as it is written.
struct SketchPlace {
  std::size_t at = 0;  // in the table
  float sign = 1;
};
SketchPlace PlaceOf(const Shape& shape, std::uint32_t row, std::uint64_t i) {
  const std::uint64_t z = Rng(Rng(shape.seed + row).Next() ^ i).Next();
  return {.at = row * shape.columns + static_cast<std::size_t>(((z >> 32) * shape.columns) >> 32),
          .sign = z % 2 == 0 ? 1.0f : -1.0f};
}

class SketchTwinTest : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(SketchTwinTest, AgreesToTheBit) {
  for (const std::size_t length : {0, 1, 511, 512, 513, 1023, 1024, 5000, 65536}) {
    Rng rng(length);
    const Shape shape = {.rows = GetParam(),
                         .columns = static_cast<std::uint32_t>(length / 7 + 1),
                         .seed = rng.Next()};
    std::vector<float> values(length);
    for (float& value : values) value = static_cast<float>(rng.Normal());
    std::vector<float> table(shape.length());
    std::vector<float> estimates;
    for (std::uint32_t row = 0; row < shape.rows; ++row) {
      for (std::size_t i = 0; i < length; ++i) {
        const SketchPlace place = PlaceOf(shape, row, i);
        table[place.at] += place.sign * values[i];
      }
    }
    for (std::size_t i = 0; i < length; ++i) {
      std::vector<float> rows;
      for (std::uint32_t row = 0; row < shape.rows; ++row) {
        const SketchPlace place = PlaceOf(shape, row, i);
        rows.push_back(place.sign * table[place.at]);
      }
      std::ranges::sort(rows);
      estimates.push_back(rows[rows.size() / 2]);
    }

    ASSERT_EQ(Sketch(shape, values), table);
    ASSERT_EQ(Estimates(shape, table, length), estimates);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, SketchTwinTest, ::testing::Values(1, 3, 5, 7, 9));

TEST(SketchTableTest, WhatIsNotFiniteShowsInEachRow) {
  const Shape shape = {.rows = 5, .columns = 40};
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> values(600, 1);
    values[599] = bad;
    values[598] = -bad;  // may meet it

    const std::vector<float> table = Sketch(shape, values);

    for (std::size_t row = 0; row < shape.rows; ++row) {
      const auto begin = table.begin() + static_cast<std::ptrdiff_t>(row * shape.columns);
      EXPECT_FALSE(
          std::all_of(begin, begin + shape.columns, [](float x) { return std::isfinite(x); }));
    }
  }
}

TEST(SketchTableTest, AtPlacesIsOfAVectorThatIsZeroElsewhere) {
  const Shape shape = {.columns = 40, .seed = 3};
  std::vector<float> values(600);
  std::iota(values.begin(), values.end(), 1.0f);
  const std::vector<std::uint32_t> places = {0, 7, 8, 300, 599};
  std::vector<float> zero_elsewhere(values.size());
  for (const std::uint32_t place : places) zero_elsewhere[place] = values[place];
  std::vector<float> table(shape.length());

  AddToSketch(shape.HashOf(values.size()), values, places, table);

  EXPECT_EQ(table, Sketch(shape, zero_elsewhere));
}

// One hash is of vectors up to its length, whatever tables they have.
TEST(SketchTableTest, AHashIsOfShorterVectorsToo) {
  const Shape shape = {.columns = 40, .seed = 3};
  const std::vector<float> values(600, 1);
  std::vector<float> table(shape.length());

  AddToSketch(shape.HashOf(1000), values, table);

  EXPECT_EQ(table, Sketch(shape, values));
}

TEST(SketchTableTest, ZerosGiveZeros) {
  const Shape shape = {.columns = 3};

  EXPECT_THAT(Sketch(shape, std::vector<float>(700)), Each(0));
  EXPECT_THAT(Estimates(shape, std::vector<float>(shape.length()), 700), Each(0));
}

// The dumb twin sorts.
TEST(LargestOfOracleTest, AgreesWithASort) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Rng rng(seed);
    std::vector<float> values(rng.Below(300));
    const std::uint64_t magnitudes = rng.Below(40) + 1;  // so that many are equal
    for (float& value : values) {
      value = static_cast<float>(rng.Below(magnitudes)) * (rng.Below(2) == 0 ? 0.5f : -0.5f);
    }
    const std::size_t count = rng.Below(values.size() + 5);
    std::vector<std::uint32_t> places(values.size());
    std::iota(places.begin(), places.end(), 0u);
    std::ranges::stable_sort(places, std::greater(),
                             [&](std::uint32_t place) { return std::abs(values[place]); });
    places.resize(std::min(count, places.size()));
    std::ranges::sort(places);

    ASSERT_THAT(LargestOf(values, count), ElementsAreArray(places)) << seed;
  }
}

TEST(LargestOfTest, OfNoneAndOfAll) {
  EXPECT_THAT(LargestOf({}, 3), IsEmpty());
  EXPECT_THAT(LargestOf(std::vector<float>{1, 2}, 0), IsEmpty());
  EXPECT_THAT(LargestOf(std::vector<float>{1, 2}, 2), ElementsAre(0, 1));
  EXPECT_THAT(LargestOf(std::vector<float>{1, std::nanf(""), 3}, 1), ElementsAre(1));
}

}  // namespace
}  // namespace tactus::engine
