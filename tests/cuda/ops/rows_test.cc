#include "cuda/ops/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tactus::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(RowsTest, RowsAreAddedAlsoIntoOneOfThem) {
  std::vector<double> lower = {1, 2, 0.5};
  const std::vector<double> higher = {10, 20, 0.25};

  host::AddRows(lower, higher, lower);

  EXPECT_EQ(lower, (std::vector<double>{11, 22, 0.75}));
}

TEST(RowsTest, NarrowRoundsOnceAndWidenIsExact) {
  const std::vector<double> wide = {1.0 / 3, 1e300, -0.0};
  std::vector<float> narrow(3);
  std::vector<double> back(3);

  host::Narrow(wide, narrow);
  host::Widen(narrow, back);

  EXPECT_EQ(narrow[0], 1.0f / 3);
  EXPECT_EQ(narrow[1], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(narrow[2]));
  EXPECT_EQ(back[0], static_cast<double>(1.0f / 3));
}

TEST(RowsTest, OnlyWhatIsNotFiniteIsCounted) {
  double count = 1;

  host::CountNonFinite(std::vector<double>{1, kInfinity, -kInfinity, std::nan(""), 1e308},
                       {&count, 1});

  EXPECT_EQ(count, 4);
}

TEST(RowsDeathTest, RowsOfDifferentLengthsAreRefused) {
  std::vector<double> two(2);
  std::vector<double> three(3);
  std::vector<float> floats(3);

  EXPECT_DEATH(host::AddRows(two, three, three), "check failed");
  EXPECT_DEATH(host::Narrow(two, floats), "check failed");
  EXPECT_DEATH(host::CountNonFinite(two, two), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
