#include "agent/engine/combine/adacomp_bins.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

struct Coded {
  bool finite = true;
  std::vector<std::byte> message;
  std::vector<float> left;
  std::vector<float> sent;
};

Coded Code(const std::vector<float>& left, const std::vector<float>& values, std::size_t bin,
           AdacompScale scale = AdacompScale::kBinsWithValues) {
  Coded coded;
  coded.left.resize(values.size());
  coded.sent.resize(values.size());
  coded.finite = AdacompEncode(
      {.values = values, .left = left, .still_left = coded.left, .bin = bin, .scale = scale},
      coded.message);
  EXPECT_TRUE(AdacompAdd(coded.message, bin, coded.sent));
  return coded;
}

std::vector<std::size_t> Selected(const Coded& coded) {
  std::vector<std::size_t> selected;
  for (std::size_t i = 0; i < coded.sent.size(); ++i) {
    if (coded.sent[i] != 0) selected.push_back(i);
  }
  return selected;
}

// Section 3h of the specification; bins of four.
const std::vector<float> kVectorLeft = {0.5f, -0.25f, 0, 1, 0, 0, 0, 0, -0.5f, 0.125f};
const std::vector<float> kVectorValues = {0.25f, -0.5f, 0.25f, 0, 0, 0, 0, 0, 0.25f, 0.25f};

TEST(AdacompPaperTest, Vector1) {
  const Coded coded = Code(kVectorLeft, kVectorValues, 4);

  EXPECT_THAT(Selected(coded), ElementsAre(0, 1, 3, 9));
  EXPECT_THAT(coded.sent, ElementsAre(0.6875f, -0.6875f, 0, 0.6875f, 0, 0, 0, 0, 0, 0.6875f));
  EXPECT_THAT(coded.left,
              ElementsAre(0.0625f, -0.0625f, 0.25f, 0.3125f, 0, 0, 0, 0, -0.25f, -0.3125f));
}

TEST(AdacompPaperTest, Vector1OverAllBins) {
  const Coded coded = Code(kVectorLeft, kVectorValues, 4, AdacompScale::kAllBins);

  EXPECT_FLOAT_EQ(coded.sent[0], 0.45833333f);
  EXPECT_THAT(coded.left,
              Pointwise(FloatNear(1e-6f), {0.2916667f, -0.2916667f, 0.25f, 0.5416667f, 0.0f, 0.0f,
                                           0.0f, 0.0f, -0.25f, -0.0833333f}));
}

TEST(AdacompPaperTest, Vector2) {
  const Coded coded = Code(kVectorLeft, kVectorValues, 4);

  std::vector<int> bytes;
  for (const std::byte byte : std::span(coded.message).subspan(4)) {
    bytes.push_back(static_cast<int>(byte));
  }
  EXPECT_THAT(bytes, ElementsAre(3, 0, 1, 0x40, 0x81, 0x43, 0x41));
}

TEST(AdacompPaperTest, Vector3) {
  const Coded coded =
      Code(std::vector<float>(8), {0.1f, -0.4f, 0.2f, 0.05f, 0.3f, 0.3f, -0.15f, 0.1f}, 4);

  EXPECT_FLOAT_EQ(coded.sent[2], 0.35f);
  EXPECT_THAT(Selected(coded), ElementsAre(1, 2, 4, 5, 6));
  EXPECT_THAT(coded.left, Pointwise(FloatNear(1e-6f),
                                    {0.1f, -0.05f, -0.15f, 0.05f, -0.05f, -0.05f, 0.2f, 0.1f}));
}

TEST(AdacompPaperTest, Vector4) {
  const Coded first = Code(kVectorLeft, kVectorValues, 4, AdacompScale::kAllBins);

  const Coded second = Code(first.left, kVectorValues, 4, AdacompScale::kAllBins);

  EXPECT_FLOAT_EQ(second.sent[0], 0.3194444f);
  EXPECT_THAT(Selected(second), ElementsAre(0, 1, 9));
}

TEST(AdacompBinsTest, NothingIsSentOfNothing) {
  EXPECT_TRUE(Code({}, {}, 4).message.empty());
  const Coded zeros = Code({0, 0, 0}, {0, -0.0f, 0}, 2);
  EXPECT_TRUE(zeros.finite);
  EXPECT_TRUE(zeros.message.empty());
  EXPECT_THAT(zeros.left, ElementsAre(0, 0, 0));
  // What comes to nothing.
  EXPECT_TRUE(Code({1, -2}, {-1, 2}, 2).message.empty());
}

TEST(AdacompBinsTest, WhatIsNotFiniteIsToldAndNotSent) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::nanf("")}) {
    const Coded coded = Code({0, 0, 0, 0}, {1, bad, 2, 3}, 2);
    EXPECT_FALSE(coded.finite);
    EXPECT_TRUE(coded.message.empty());
  }
  EXPECT_FALSE(Code({3e38f, 0}, {3e38f, 1}, 2).finite);  // their sum is not
}

// Invariants 1, 2, 3 and 5 over random tensors and bins, with entries of one byte and of two.
TEST(AdacompPropertyTest, NothingIsLostAndOneScaleIsSent) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t length = 1 + rng.Below(400);
    const std::size_t bin = 1 + rng.Below(seed % 2 == 0 ? 64 : 200);
    std::vector<float> left(length);
    std::vector<double> gathered(length);
    std::vector<double> sent(length);
    for (int step = 0; step < 10; ++step) {
      std::vector<float> values(length);
      for (float& value : values) {
        value = rng.Below(4) == 0 ? 0.0f : static_cast<float>(rng.Normal());
      }
      const Coded coded = Code(left, values, bin);
      float scale = 0;
      for (std::size_t i = 0; i < length; ++i) {
        gathered[i] += values[i];
        sent[i] += coded.sent[i];
        if (coded.sent[i] == 0) continue;
        if (scale == 0) scale = std::abs(coded.sent[i]);
        EXPECT_EQ(std::abs(coded.sent[i]), scale) << seed;
      }
      left = coded.left;
    }
    for (std::size_t i = 0; i < length; ++i) {
      ASSERT_NEAR(gathered[i], sent[i] + left[i], 2e-5) << seed;
    }
  }
}

// Invariant 6, by a power of two to the bit.
TEST(AdacompPropertyTest, ScalesWithItsValues) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    std::vector<float> left(100), values(100);
    for (float& value : left) value = static_cast<float>(rng.Normal());
    for (float& value : values) value = static_cast<float>(rng.Normal());
    const Coded once = Code(left, values, 20);
    for (float& value : left) value *= 8;
    for (float& value : values) value *= 8;

    const Coded scaled = Code(left, values, 20);

    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(scaled.sent[i], 8 * once.sent[i]) << seed;
      ASSERT_EQ(scaled.left[i], 8 * once.left[i]) << seed;
    }
  }
}

TEST(AdacompBinsTest, WhatIsNoMessageIsFoundOut) {
  const Coded coded = Code(kVectorLeft, kVectorValues, 4);
  std::vector<float> sum(kVectorValues.size());

  for (std::size_t length = 1; length < coded.message.size(); ++length) {
    EXPECT_FALSE(AdacompAdd(std::span(coded.message).first(length), 4, sum)) << length;
  }
  std::vector<std::byte> longer = coded.message;
  longer.push_back({});
  EXPECT_FALSE(AdacompAdd(longer, 4, sum));
  std::vector<std::byte> beyond = coded.message;
  beyond.back() = static_cast<std::byte>(0x7f);  // place 63 of a bin of two
  EXPECT_FALSE(AdacompAdd(beyond, 4, sum));
}

}  // namespace
}  // namespace tactus::engine
