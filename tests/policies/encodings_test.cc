// The rows of the encodings, and plans that a job with one of them begins with.

#include "policies/encodings.h"

#include <gtest/gtest.h>

#include <string>

#include "policies/catalogue.h"
#include "policies/planner.h"

namespace tactus::policies {
namespace {

TEST(EncodingRowsTest, AreInTheOrderOfTheEnumeratorsAndDenseIsWhole) {
  for (std::size_t i = 0; i < kEncodings.size(); ++i) {
    const auto encoding = static_cast<Encoding>(i);
    EXPECT_EQ(kEncodings[i].encoding, encoding);
    EXPECT_GT(ShareOf(encoding, 4), 0) << NameOf(encoding);
    EXPECT_LE(ShareOf(encoding, 4), 1) << NameOf(encoding);
  }
  EXPECT_EQ(ShareOf(Encoding::kDense, 4), 1);
}

TEST(EncodingRowsTest, AutoTakesByTimeWhatDoesNotShowInTheLossAlone) {
  for (const EncodingRow& row : kEncodings) {
    if (row.for_auto == ForAuto::kByTime) {
      EXPECT_TRUE(TellsNoise(row.encoding)) << NameOf(row.encoding);
    }
    EXPECT_TRUE(row.deviation != Deviation::kNoise || row.for_auto == ForAuto::kByLoss);
    const bool costs = row.for_auto != ForAuto::kNever && row.encoding != Encoding::kDense;
    EXPECT_EQ(row.seconds_per_value > 0, costs) << NameOf(row.encoding);
    EXPECT_EQ(row.updates > 0, costs) << NameOf(row.encoding);
  }
  EXPECT_EQ(RowOf(Encoding::kBfloat16).for_auto, ForAuto::kNever) << "as coarse as it is";
  EXPECT_EQ(RowOf(Encoding::kSketch).for_auto, ForAuto::kNever) << "was never the best of all";
}

// Sums of four members' codes of 4 bits, up to 28 steps to either side, take 6.
TEST(EncodingRowsTest, SumsOfCodesTakeMoreBitsThanCodesUpToEight) {
  EXPECT_NEAR(ShareOf(Encoding::kDq, 4), (4 + 6) / 64.0, 0.001);
  EXPECT_NEAR(ShareOf(Encoding::kDq, 18), (4 + 8) / 64.0, 0.003);
  EXPECT_NEAR(ShareOf(Encoding::kDq, 19), (4 + 4) / 64.0, 0.003);
  EXPECT_NEAR(ShareOf(Encoding::kDq, 2, {.bits = 8}), (8 + 8) / 64.0, 0.001);
}

TEST(EncodingRowsTest, MessagesToAllCostTheMoreTheMoreMembersThereAre) {
  const double of_two = ShareOf(Encoding::kAdacomp, 2);

  EXPECT_NEAR(of_two, 1.0 / 22, 0.001);
  EXPECT_DOUBLE_EQ(ShareOf(Encoding::kAdacomp, 64), 32 * of_two);
  // A byte a value, and one that says that there is one.
  EXPECT_DOUBLE_EQ(ShareOf(Encoding::kAdacomp, 2, {.bin = 1}), 0.5);
}

TEST(EncodingRowsTest, ASketchHasAColumnACandidateOrSoManyAStretch) {
  EXPECT_DOUBLE_EQ(ShareOf(Encoding::kSketch, 2, {.share = 0.001}), 0.001 * 4 * (1 + 3));
  EXPECT_DOUBLE_EQ(ShareOf(Encoding::kSketch, 2, {.rows = 5, .columns = 1024}), 0.04 + 5.0 / 16);
}

// ---- Plans

Revision StartOf(const std::string& encoding, const StartingGroup& group,
                 PlannerOptions options = {}) {
  options.encoding_policy = encoding;
  return Planner(options).Start(group);
}

std::string ReasonOf(const Revision& revision, Axis axis) {
  for (const Decision& decision : revision.decisions) {
    if (decision.axis == axis) return decision.reason;
  }
  return {};
}

TEST(EncodingPlansTest, AJobBeginsWithWhatItAsksFor) {
  for (const Encoding encoding : {Encoding::kDq, Encoding::kSketch, Encoding::kAdacomp}) {
    const Revision first = StartOf(std::string(NameOf(encoding)), {.members = 4});

    EXPECT_EQ(first.plan.encoding, encoding);
    EXPECT_EQ(ReasonOf(first, Axis::kEncoding), std::string(NameOf(encoding)) +
                                                    ": as the job asks; its sums hide the noise "
                                                    "of gradients, which neither batch nor rate "
                                                    "follow then");
  }
  EXPECT_EQ(ReasonOf(StartOf("float16", {.members = 4}), Axis::kEncoding),
            "float16: as the job asks");
}

TEST(EncodingPlansTest, WhereNoNoiseIsToldARateOfAutoDoesNotFollowIt) {
  const Revision sgd = StartOf("dq", {.members = 4}, {.learning_rate_policy = "auto"});
  const Revision adam =
      StartOf("dq", {.members = 4},
              {.learning_rate_policy = "auto", .base_batch = 4 * 32, .optimizer = "adam"});

  EXPECT_EQ(sgd.plan.learning_rate_rule, LearningRateRule::kConstant);
  EXPECT_NE(ReasonOf(sgd, Axis::kLearningRate).find("with dq"), std::string::npos);
  EXPECT_EQ(adam.plan.learning_rate_rule, LearningRateRule::kSqrt);
}

TEST(EncodingPlansTest, AGroupInWhichNotAllKnowItIsDense) {
  const Revision first =
      StartOf("dq", {.members = 2, .encodings = {{Encoding::kFloat16, Encoding::kBfloat16}}});

  EXPECT_EQ(first.plan.encoding, Encoding::kDense);
  EXPECT_EQ(ReasonOf(first, Axis::kEncoding),
            "dense: not all workers know dq, which is newer than one");
  EXPECT_EQ(StartOf("dq", {.members = 2, .encodings = {{Encoding::kDq}}}).plan.encoding,
            Encoding::kDq);
}

TEST(EncodingPlansTest, AGroupInWhichItSendsNoLessIsDense) {
  EXPECT_EQ(StartOf("adacomp", {.members = 40}).plan.encoding, Encoding::kAdacomp);
  EXPECT_EQ(ReasonOf(StartOf("adacomp", {.members = 50}), Axis::kEncoding),
            "dense: among 50 workers adacomp would send 1.14 times as much");
  // Of replicas of four devices, between 40 of which each part travels.
  const PlannerOptions meshes{.batch = {.replica_members = 4}};
  EXPECT_EQ(StartOf("adacomp", {.members = 4 * 40}, meshes).plan.encoding, Encoding::kAdacomp);
  EXPECT_EQ(ReasonOf(StartOf("adacomp", {.members = 4 * 50}, meshes), Axis::kEncoding),
            "dense: among 50 replicas adacomp would send 1.14 times as much");
}

// Whoever goes on under a plan knows its encoding.
TEST(EncodingPlansTest, AGroupThatGoesOnKnowsWhatItRuns) {
  Planner planner({.encoding_policy = "dq"});
  const Plan in_force{.version = 7, .encoding = Encoding::kDq, .batch_sizes = {8, 8}};

  planner.Resume(in_force, KnownEncodings(std::in_place));

  const Decision to_sketch{.axis = Axis::kEncoding, .from = "sketch", .to = "dq"};
  EXPECT_NE(planner.Undo(in_force, to_sketch).refusal.find("not all workers know"),
            std::string::npos);
  const Decision to_dense{.axis = Axis::kEncoding, .from = "dense", .to = "dq"};
  EXPECT_EQ(planner.Undo(in_force, to_dense).refusal, "");
}

TEST(EncodingPlansTest, SignsOfTheMomentumTravelInEveryStepWhateverIsAuto) {
  PlannerOptions options{
      .aggregation_policy = "auto", .learning_rate_policy = "auto", .optimizer = "adamw"};
  options.synchronization.policy = "auto";

  const Revision first = StartOf("one_bit", {.members = 2}, options);

  EXPECT_EQ(first.plan.encoding, Encoding::kOneBit);
  EXPECT_EQ(first.plan.synchronization, Synchronization::kEveryStep);
}

// As the prior of a job would have it that was of other choices.
TEST(EncodingPlansTest, WhatDoesNotGoWithTheRestOfAFirstPlanGivesWay) {
  PlannerOptions options{.optimizer = "adamw"};
  options.synchronization.policy = "auto";

  const Revision first = StartOf(
      "one_bit",
      {.members = 2, .speeds = {100, 100}, .prior = Prior{.period = 8, .transfer_seconds = 9}},
      options);

  EXPECT_EQ(first.plan.synchronization, Synchronization::kPeriodic);
  EXPECT_EQ(first.plan.encoding, Encoding::kDense);
  EXPECT_EQ(ReasonOf(first, Axis::kEncoding),
            "dense: one_bit no longer goes with the rest of the plan");
}

}  // namespace
}  // namespace tactus::policies
