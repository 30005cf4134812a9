#include "policies/decision.h"

#include <gtest/gtest.h>

#include <string>

namespace tactus::policies {
namespace {

TEST(DecisionTest, ItsIdIsReadBack) {
  for (const Axis axis : kAxes) {
    const DecisionKey key{.plan_version = 12, .axis = axis};
    EXPECT_EQ(ParseDecisionId(IdOf(key)), key) << IdOf(key);
  }
  EXPECT_EQ(IdOf({.plan_version = 7, .axis = Axis::kLearningRate}), "7-learning-rate");
}

TEST(DecisionTest, WhatIsNoIdIsNone) {
  for (const std::string text : {"", "12", "-batch", "12-", "12-weather", "012-batch", "+1-batch",
                                 "12-batch ", "12_batch", "18446744073709551616-batch"}) {
    EXPECT_FALSE(ParseDecisionId(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace tactus::policies
