#include "cuda/ops/round_gate.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tactus::cuda {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a round gave.
struct Facts {
  double norm2 = 64 * 4.0;
  float samples = 8;
  float nonfinite = 0;
  std::uint32_t lost = 0;
};

std::array<double, kRoundGateLength> Gated(const RoundGate& round, const Facts& facts) {
  std::array<double, kRoundGateLength> gate = {5, 5, 5};  // of the round before
  host::GateRound(round,
                  {.norm2 = {&facts.norm2, 1},
                   .samples = {&facts.samples, 1},
                   .nonfinite = {&facts.nonfinite, 1},
                   .lost = &facts.lost},
                  gate);
  return gate;
}

constexpr RoundGate kRound{.samples = 8, .divisor = 8};

TEST(RoundGateTest, ASoundRoundOpensItAndTheSumBecomesTheMean) {
  const auto gate = Gated(kRound, {});

  EXPECT_EQ(gate[kGateOpen], 1);
  EXPECT_EQ(gate[kGateScale], 1.0 / 8);
  EXPECT_EQ(gate[kRoundGateLost], 0);
}

TEST(RoundGateTest, AMeanLongerThanTheClipNormIsCutToIt) {
  RoundGate round = kRound;
  round.clip_norm = 1.5;

  EXPECT_EQ(Gated(round, {})[kGateScale], 1.0 / 8 * (1.5 / 2));
  EXPECT_EQ(Gated(round, {.norm2 = 64})[kGateScale], 1.0 / 8);
}

TEST(RoundGateTest, WhateverIsNotSoundShutsIt) {
  for (const double norm2 : {kInfinity, -kInfinity, std::nan("")}) {
    EXPECT_EQ(Gated(kRound, {.norm2 = norm2})[kGateOpen], 0) << norm2;
  }
  EXPECT_EQ(Gated(kRound, {.nonfinite = 1})[kGateOpen], 0);
  EXPECT_EQ(Gated(kRound, {.samples = 7})[kGateOpen], 0);
  EXPECT_EQ(Gated({}, {.samples = 0})[kGateOpen], 0);
  EXPECT_EQ(Gated(kRound, {.nonfinite = 1})[kGateScale], 0);
  EXPECT_EQ(Gated(kRound, {.nonfinite = 1})[kRoundGateLost], 0);
}

TEST(RoundGateTest, AGroupThatIsLostShutsItAndIsSaid) {
  const auto gate = Gated(kRound, {.lost = 1});

  EXPECT_EQ(gate[kGateOpen], 0);
  EXPECT_EQ(gate[kRoundGateLost], 1);
}

TEST(RoundGateTest, WithoutAGroupNothingIsLost) {
  const double norm2 = 4;
  const float samples = 8;
  const float nonfinite = 0;
  std::array<double, kRoundGateLength> gate = {};

  host::GateRound(
      kRound, {.norm2 = {&norm2, 1}, .samples = {&samples, 1}, .nonfinite = {&nonfinite, 1}}, gate);

  EXPECT_EQ(gate[kGateOpen], 1);
}

}  // namespace
}  // namespace tactus::cuda
