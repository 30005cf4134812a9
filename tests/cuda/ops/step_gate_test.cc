#include "cuda/ops/step_gate.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "cuda/ops/adam.h"
#include "cuda/ops/lamb.h"
#include "cuda/ops/sgd.h"

namespace tactus::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Row = std::array<double, kGateLength>;

Row Gated(const StepGate& step, double norm2, Row row = {}, double loss = 1) {
  host::Gate(step, {.norm2 = {&norm2, 1}, .loss = {&loss, 1}}, row);
  return row;
}

TEST(StepGateTest, AFiniteNormOpensItAndTheSumBecomesTheMean) {
  const Row row = Gated({.samples = 8}, 64 * 3.0);

  EXPECT_EQ(row[kGateOpen], 1);
  EXPECT_EQ(row[kGateScale], 1.0 / 8);
  EXPECT_EQ(row[kGateNorm2Sum], 3);
  EXPECT_EQ(row[kGatePoison], 0);
}

TEST(StepGateTest, AMeanLongerThanTheClipNormIsCutToIt) {
  const StepGate step{.samples = 8, .clip_norm = 2};

  EXPECT_EQ(Gated(step, 64 * 4.0)[kGateScale], 1.0 / 8);  // just as long
  EXPECT_EQ(Gated(step, 64 * 16.0)[kGateScale], 1.0 / 8 * (2.0 / 4));
  EXPECT_EQ(Gated(step, 64 * 16.0)[kGateNorm2Sum], 16);  // before the cut
}

TEST(StepGateTest, WhatIsNotFiniteShutsItAndPoisonsForGood) {
  for (const double norm2 : {kInfinity, std::nan("")}) {
    Row row = Gated({.samples = 2}, 4);
    row = Gated({.samples = 2}, norm2, row);
    EXPECT_EQ(row[kGateOpen], 0);
    EXPECT_TRUE(std::isnan(row[kGatePoison]));
    EXPECT_EQ(row[kGateNorm2Sum], 1);

    row = Gated({.samples = 2}, 4, row);
    EXPECT_EQ(row[kGateOpen], 1);
    EXPECT_TRUE(std::isnan(row[kGatePoison]));
    EXPECT_EQ(row[kGateNorm2Sum], 2);
  }
}

TEST(StepGateTest, ALossThatIsNotFiniteShutsItAsWell) {
  for (const double loss : {kInfinity, -kInfinity, std::nan("")}) {
    const Row row = Gated({.samples = 2}, 4, {}, loss);

    EXPECT_EQ(row[kGateOpen], 0);
    EXPECT_TRUE(std::isnan(row[kGatePoison]));
  }
}

// The buffers of a step on three elements.
struct Buffers {
  std::vector<float> gradients = {1, 2, 3};
  std::vector<float> parameters = {1, 1, 1};
  std::vector<float> first = {0, 0, 0};
  std::vector<float> second = {0, 0, 0};

  bool operator==(const Buffers&) const = default;
};

TEST(StepGateTest, EveryOptimizerTakesItsScaleFromAnOpenGateAndNothingFromAShutOne) {
  const SegmentTable segments = {{.name = "a", .offset = 0, .length = 3}};
  const Row open = Gated({.samples = 4}, 4);
  const Row shut = Gated({.samples = 4}, kInfinity);
  const auto run = [&](int which, const double* gate, float scale) {
    Buffers b;
    if (which == 0) {
      const SgdStep step{
          .learning_rate = 1, .momentum = 0.5f, .gradient_scale = scale, .gate = gate};
      host::Sgd(step, b.gradients, b.parameters, b.first);
    } else if (which == 1) {
      const AdamStep step{
          .learning_rate = 1, .weight_decay = 0.1, .gradient_scale = scale, .gate = gate};
      host::Adam(step, b.gradients, b.parameters, b.first, b.second);
    } else {
      const LambStep step{.learning_rate = 1, .gradient_scale = scale, .gate = gate};
      host::Lamb(step, segments, {b.gradients, b.parameters, b.first, b.second});
    }
    return b;
  };
  for (const int which : {0, 1, 2}) {
    EXPECT_EQ(run(which, open.data(), 77), run(which, nullptr, 0.25f)) << which;
    EXPECT_EQ(run(which, shut.data(), 0.25f), Buffers{}) << which;
    EXPECT_NE(run(which, open.data(), 77), Buffers{}) << which;
  }
}

}  // namespace
}  // namespace tactus::cuda
