#include "client/verbs/sweep_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SweptField Swept(const std::string& text) {
  SweptField field;
  EXPECT_EQ(ParseSwept(text, &field), "");
  return field;
}

TEST(SweepGridTest, ValuesAreSplitAtCommasThatAreNotTheirOwn) {
  const SweptField rates = Swept("optimizer.sgd.learning_rate=0.01,0.03");
  EXPECT_EQ(rates.path, "optimizer.sgd.learning_rate");
  EXPECT_THAT(rates.values, ElementsAre("0.01", "0.03"));
  EXPECT_THAT(Swept("x=[1,2],{a: 1, b: [2,3]},\"a,b\",'c,d'").values,
              ElementsAre("[1,2]", "{a: 1, b: [2,3]}", "\"a,b\"", "'c,d'"));
}

TEST(SweepGridTest, WhatHasNoValueIsRefused) {
  SweptField ignored;
  for (const char* text : {"", "seed", "=1", "seed=", "seed=1,", "seed=,1", "seed=1,,2"}) {
    EXPECT_THAT(ParseSwept(text, &ignored), HasSubstr("FIELD=VALUE,VALUE")) << text;
  }
}

TEST(SweepGridTest, AWordStandsForTheOneFieldOfItsName) {
  v1::JobSpec spec;
  spec.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
  SweptField rate = Swept("learning_rate=1");
  EXPECT_EQ(FindField(spec, &rate), "");
  EXPECT_EQ(rate.path, "optimizer.sgd.learning_rate");

  SweptField seed = Swept("seed=1");  // not set, and a field of every job
  EXPECT_EQ(FindField(spec, &seed), "");
  EXPECT_EQ(seed.path, "seed");

  SweptField whole = Swept("stop.epochs=1");  // whatever the file sets
  EXPECT_EQ(FindField(spec, &whole), "");
}

TEST(SweepGridTest, AWordThatIsNoFieldOrSeveralIsRefused) {
  v1::JobSpec spec;
  SweptField policy = Swept("policy=fixed");
  EXPECT_THAT(FindField(spec, &policy), HasSubstr("policy is not set in the job file"));

  spec.mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_FIXED);
  spec.mutable_adapt()->mutable_synchronization()->set_policy(
      v1::SYNCHRONIZATION_POLICY_EVERY_STEP);
  EXPECT_THAT(FindField(spec, &policy),
              HasSubstr("may be adapt.batch.policy and adapt.synchronization.policy"));
}

TEST(SweepGridTest, EveryCombinationIsThereOnceTheLastFieldsTheFastest) {
  const auto grid = Grid({Swept("a=1,2"), Swept("b=3,4,5")});

  std::vector<std::string> points;
  for (const auto& point : grid) points.push_back(point[0].value + point[1].value);
  EXPECT_THAT(points, ElementsAre("13", "14", "15", "23", "24", "25"));
  EXPECT_EQ(grid[0][1].path, "b");
}

TEST(SweepGridTest, LabelsHaveWhatLabelsMay) {
  EXPECT_EQ(LabelOf("0.03"), "0.03");
  EXPECT_EQ(LabelOf("-1e-3"), "1e-3");
  EXPECT_EQ(LabelOf("{policy: fixed}"), "policy__fixed");
  EXPECT_EQ(LabelOf(std::string(80, 'x')).size(), 63u);
  EXPECT_EQ(LabelOf("[]"), "");
}

}  // namespace
}  // namespace tactus::client
