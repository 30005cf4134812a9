#include "cuda/ops/lanes.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<float> Write(const std::vector<LaneValue>& values, double norm2, double loss = 0,
                         double common_loss = 0) {
  std::vector<float> tail(6, 0.5f);
  host::WriteLanes(
      values, {.norm2 = {&norm2, 1}, .loss = {&loss, 1}, .common_loss = {&common_loss, 1}}, tail);
  return tail;
}

TEST(LanesTest, EachValueGoesToItsLaneAndTheOthersStay) {
  const std::vector<float> tail =
      Write({{.lane = 4, .if_finite = 7, .if_not_finite = 8}, {.lane = 1, .if_finite = 3}}, 2);

  EXPECT_EQ(tail, (std::vector<float>{0.5f, 3, 0.5f, 0.5f, 7, 0.5f}));
}

TEST(LanesTest, ANormThatIsNotFiniteChoosesTheOtherValues) {
  const std::vector<LaneValue> values = {
      {.lane = 0, .if_finite = 1, .if_not_finite = 2},
      {.lane = 1, .if_finite = 3, .if_not_finite = 4, .norm_factor = 5}};
  for (const double norm2 : {kInfinity, -kInfinity, kNan, -kNan}) {
    const std::vector<float> tail = Write(values, norm2);

    EXPECT_EQ(tail[0], 2);
    EXPECT_EQ(tail[1], 4);
  }
}

TEST(LanesTest, ALossThatIsNotFiniteDoesTheSame) {
  const std::vector<LaneValue> values = {{.lane = 0, .if_finite = 1, .if_not_finite = 2},
                                         {.lane = 1, .if_not_finite = 4, .norm_factor = 5},
                                         {.lane = 2, .if_not_finite = 6, .loss = LossLane::kAll}};
  for (const double loss : {kInfinity, -kInfinity, kNan}) {
    EXPECT_EQ(Write(values, 1, loss), (std::vector<float>{2, 4, 6, 0.5f, 0.5f, 0.5f}));
  }
}

TEST(LanesTest, TheLossIsRoundedOnce) {
  const std::vector<LaneValue> values = {{.lane = 0, .if_finite = 7, .loss = LossLane::kAll}};

  EXPECT_EQ(Write(values, 1, 0.1)[0], 0.1f);
  EXPECT_EQ(Write(values, 1, 1e300)[0], std::numeric_limits<float>::infinity());
}

TEST(LanesTest, TheLossAtCommonParametersHasALaneOfItsOwn) {
  const std::vector<LaneValue> values = {
      {.lane = 0, .if_finite = 7, .loss = LossLane::kAll},
      {.lane = 1, .if_not_finite = 4, .loss = LossLane::kCommon}};

  EXPECT_EQ(Write(values, 1, 3, 0.1), (std::vector<float>{3, 0.1f, 0.5f, 0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(Write(values, 1, kNan, 0.1)[1], 4);
}

TEST(LanesTest, TheNormIsMultipliedAndDividedAsTheHostWould) {
  const double norm2 = 1234.5678;
  const double samples = 7;

  const std::vector<float> tail =
      Write({{.lane = 0, .norm_factor = 1, .norm_divisor = samples},
             {.lane = 1, .norm_factor = samples},
             {.lane = 2, .if_finite = 9, .norm_factor = 0, .norm_divisor = 3}},
            norm2);

  EXPECT_EQ(tail[0], static_cast<float>(norm2 / samples));
  EXPECT_EQ(tail[1], static_cast<float>(norm2 * samples));
  EXPECT_EQ(tail[2], 9);
}

TEST(LanesTest, TheFactorComesBeforeTheDivisor) {
  // 1e300 * 1e10 is too large for float64; divided first, the result would be 1e20.
  const std::vector<float> tail =
      Write({{.lane = 0, .norm_factor = 1e10, .norm_divisor = 1e290}}, 1e300);

  EXPECT_EQ(tail[0], std::numeric_limits<float>::infinity());
}

TEST(LanesTest, ANormOfZeroIsFinite) {
  EXPECT_EQ(Write({{.lane = 0, .if_not_finite = 4, .norm_factor = 2}}, 0)[0], 0);
}

TEST(LanesTest, NoValuesChangeNothing) { EXPECT_EQ(Write({}, 1), std::vector<float>(6, 0.5f)); }

TEST(LanesDeathTest, RefusesWhatItsContractExcludes) {
  std::vector<float> tail(4);
  const double number = 1;
  const std::span<const double> one(&number, 1);

  EXPECT_DEATH(Write({{.lane = 6}}, 1), "check failed");
  EXPECT_DEATH(Write(std::vector<LaneValue>(17), 1), "check failed");
  EXPECT_DEATH(host::WriteLanes({}, {.norm2 = one, .loss = one}, tail), "check failed");
  EXPECT_DEATH(host::WriteLanes({}, {.loss = one, .common_loss = one}, tail), "check failed");
  const LaneSums own{.norm2 = one, .loss = one, .common_loss = one};
  EXPECT_DEATH(host::WriteLanes(std::vector<LaneValue>{{.lane = 4}}, own, tail), "check failed");
}

}  // namespace
}  // namespace tactus::cuda
