#include "coordinator/spec/spec_update.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace tactus::spec {
namespace {

using ::testing::ElementsAre;

v1::JobSpec Running() {
  v1::JobSpec spec;
  spec.set_name("lm");
  spec.mutable_model()->set_builtin("bytes-lm");
  spec.mutable_data()->set_text("/corpus.txt");
  spec.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
  spec.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  spec.mutable_stop()->set_epochs(3);
  (*spec.mutable_workers()->mutable_selector())["zone"] = "a";
  return spec;
}

v1::UpdateJobRequest Request(const std::vector<std::string>& paths) {
  v1::UpdateJobRequest request;
  for (const std::string& path : paths) request.mutable_update_mask()->add_paths(path);
  return request;
}

std::vector<std::string> FieldsOf(const absl::StatusOr<UpdatedSpec>& updated) {
  std::vector<std::string> fields;
  for (const auto& violation : runtime::FieldViolations(updated.status())) {
    fields.push_back(violation.field);
  }
  return fields;
}

TEST(SpecUpdateTest, OnlyWhatTheMaskNamesIsTaken) {
  v1::UpdateJobRequest request = Request({"spec.priority"});
  request.mutable_spec()->set_priority(5);
  request.mutable_spec()->set_name("other");
  request.mutable_spec()->mutable_stop()->set_rounds(7);
  (*request.mutable_labels())["a"] = "b";

  const absl::StatusOr<UpdatedSpec> updated = ApplyUpdate(Running(), {{"x", "y"}}, request);

  ASSERT_TRUE(updated.ok()) << updated.status();
  v1::JobSpec expected = Running();
  expected.set_priority(5);
  EXPECT_EQ(updated->spec.DebugString(), expected.DebugString());
  EXPECT_EQ(updated->labels, (Labels{{"x", "y"}}));
  EXPECT_EQ(updated->settings.priority, 5);
  EXPECT_TRUE(updated->changed);
  EXPECT_FALSE(updated->needs_restart);
}

TEST(SpecUpdateTest, AnotherPolicyDoesNotStumbleOverFieldsOfTheFormerOne) {
  v1::JobSpec spec = Running();
  v1::SynchronizationAxis& axis = *spec.mutable_adapt()->mutable_synchronization();
  axis.set_policy(v1::SYNCHRONIZATION_POLICY_PERIODIC);
  axis.set_period(8);
  axis.set_block_momentum(0.2);
  v1::UpdateJobRequest request = Request({"spec.adapt.synchronization.policy"});
  request.mutable_spec()->mutable_adapt()->mutable_synchronization()->set_policy(
      v1::SYNCHRONIZATION_POLICY_AUTO);

  const absl::StatusOr<UpdatedSpec> updated = ApplyUpdate(spec, {}, request);

  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_FALSE(updated->spec.adapt().synchronization().has_period());
  EXPECT_EQ(updated->spec.adapt().synchronization().block_momentum(), 0.2);  // which auto has, too

  // What is asked for in the same breath is refused where it has no effect.
  request = Request({"spec.adapt.synchronization.policy", "spec.adapt.synchronization.period"});
  request.mutable_spec()->mutable_adapt()->mutable_synchronization()->set_policy(
      v1::SYNCHRONIZATION_POLICY_AUTO);
  request.mutable_spec()->mutable_adapt()->mutable_synchronization()->set_period(4);
  EXPECT_THAT(FieldsOf(ApplyUpdate(spec, {}, request)),
              ElementsAre("adapt.synchronization.period"));
}

TEST(SpecUpdateTest, AFieldThatTheRequestLeavesOutIsReset) {
  v1::JobSpec spec = Running();
  spec.set_priority(5);
  spec.mutable_stop()->set_rounds(100);
  spec.mutable_adapt()->add_frozen("batch");

  const absl::StatusOr<UpdatedSpec> updated =
      ApplyUpdate(spec, {{"x", "y"}},
                  Request({"spec.priority", "spec.stop.rounds", "spec.adapt.frozen", "labels"}));

  ASSERT_TRUE(updated.ok()) << updated.status();
  v1::JobSpec expected = Running();
  expected.mutable_adapt();
  EXPECT_EQ(updated->spec.DebugString(), expected.DebugString());
  EXPECT_TRUE(updated->labels.empty());
  EXPECT_TRUE(updated->settings.adapt.frozen.empty());
}

TEST(LabelsTest, HaveTheLengthsThatTheErrorNames) {
  FieldChecks checks;
  CheckLabels({{std::string(253, 'k'), std::string(253, 'v')}}, checks);
  EXPECT_TRUE(checks.violations().empty());

  CheckLabels({{std::string(254, 'k'), ""}}, checks);
  CheckLabels({{"k", std::string(254, 'v')}}, checks);
  CheckLabels({{"", "v"}}, checks);
  EXPECT_EQ(checks.violations().size(), 3u);
}

TEST(SpecUpdateTest, AWholeStopTakesThePlaceOfTheOther) {
  v1::UpdateJobRequest request = Request({"spec.stop"});
  request.mutable_spec()->mutable_stop()->set_train_loss(1.5);

  const absl::StatusOr<UpdatedSpec> updated = ApplyUpdate(Running(), {}, request);

  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_FALSE(updated->spec.stop().has_epochs());
  EXPECT_EQ(updated->settings.stop_train_loss, 1.5);
  EXPECT_TRUE(updated->needs_restart);
}

TEST(SpecUpdateTest, ListsAreReplacedNotAppended) {
  v1::JobSpec spec = Running();
  spec.mutable_adapt()->add_frozen("batch");
  v1::UpdateJobRequest request = Request({"spec.adapt.frozen"});
  request.mutable_spec()->mutable_adapt()->add_frozen("learning_rate");

  const absl::StatusOr<UpdatedSpec> updated = ApplyUpdate(spec, {}, request);

  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_THAT(updated->spec.adapt().frozen(), ElementsAre("learning_rate"));
  EXPECT_THAT(updated->settings.adapt.frozen, ElementsAre(policies::Axis::kLearningRate));
  EXPECT_FALSE(updated->needs_restart);
}

TEST(SpecUpdateTest, ALearningRateNeedsARestartAndLeavesTheRestOfTheOptimizer) {
  v1::UpdateJobRequest request = Request({"spec.optimizer.sgd.learning_rate"});
  request.mutable_spec()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.01);

  const absl::StatusOr<UpdatedSpec> updated = ApplyUpdate(Running(), {}, request);

  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->spec.optimizer().sgd().learning_rate(), 0.01);
  EXPECT_EQ(updated->spec.optimizer().sgd().momentum(), 0.9);
  EXPECT_TRUE(updated->needs_restart);
}

// Who joins a group must have the numbers of an encoding that its members have.
TEST(SpecUpdateTest, AnEncodingsNumbersAreOfTheStartAndItsPolicyIsNot) {
  const auto restarts = [](v1::EncodingPolicy policy, std::optional<double> bits) {
    v1::UpdateJobRequest request = Request({"spec.adapt.encoding"});
    v1::EncodingAxis& encoding = *request.mutable_spec()->mutable_adapt()->mutable_encoding();
    encoding.set_policy(policy);
    if (bits) encoding.set_bits(*bits);
    const absl::StatusOr<UpdatedSpec> updated = ApplyUpdate(Running(), {}, request);
    EXPECT_TRUE(updated.ok()) << updated.status();
    return updated.ok() && updated->needs_restart;
  };

  EXPECT_FALSE(restarts(v1::ENCODING_POLICY_DQ, std::nullopt));
  EXPECT_FALSE(restarts(v1::ENCODING_POLICY_DQ, 4));
  EXPECT_TRUE(restarts(v1::ENCODING_POLICY_DQ, 6));
}

TEST(SpecUpdateTest, WhatIsSaidAgainIsNoChange) {
  v1::UpdateJobRequest request = Request({"spec.stop.epochs", "spec.workers.min"});
  request.mutable_spec()->mutable_stop()->set_epochs(3);

  const absl::StatusOr<UpdatedSpec> updated = ApplyUpdate(Running(), {}, request);

  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_FALSE(updated->changed);
  EXPECT_FALSE(updated->needs_restart);
}

TEST(SpecUpdateTest, WhatWorkersReadOfAdaptNeedsARestartAndThePoliciesDoNot) {
  v1::UpdateJobRequest request = Request({"spec.adapt.batch.policy"});
  request.mutable_spec()->mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_FIXED);
  EXPECT_FALSE(ApplyUpdate(Running(), {}, request)->needs_restart);

  request = Request({"spec.adapt.batch.micro_batch"});
  request.mutable_spec()->mutable_adapt()->mutable_batch()->set_micro_batch(16);
  EXPECT_TRUE(ApplyUpdate(Running(), {}, request)->needs_restart);

  request = Request({"spec.adapt.synchronization"});
  request.mutable_spec()->mutable_adapt()->mutable_synchronization()->set_policy(
      v1::SYNCHRONIZATION_POLICY_ADACOMM);
  EXPECT_TRUE(ApplyUpdate(Running(), {}, request)->needs_restart)
      << "adacomm has another block momentum";
}

TEST(SpecUpdateTest, WhatWindowsAreLikeNeedsNoRestartWhereThereWillBeNone) {
  v1::JobSpec spec = Running();
  spec.mutable_adapt()->mutable_synchronization()->set_policy(v1::SYNCHRONIZATION_POLICY_AUTO);
  v1::UpdateJobRequest request = Request({"spec.adapt.synchronization"});
  v1::SynchronizationAxis& axis =
      *request.mutable_spec()->mutable_adapt()->mutable_synchronization();

  axis.set_policy(v1::SYNCHRONIZATION_POLICY_EVERY_STEP);
  EXPECT_FALSE(ApplyUpdate(spec, {}, request)->needs_restart);
  axis.set_policy(v1::SYNCHRONIZATION_POLICY_PERIODIC);
  axis.set_period(8);
  EXPECT_TRUE(ApplyUpdate(spec, {}, request)->needs_restart);
  axis.set_elastic(true);
  EXPECT_TRUE(ApplyUpdate(spec, {}, request)->needs_restart);
  axis.set_block_momentum(0.5);
  EXPECT_FALSE(ApplyUpdate(spec, {}, request)->needs_restart) << "as those of auto";
  axis.set_block_momentum_steps(256);
  EXPECT_TRUE(ApplyUpdate(spec, {}, request)->needs_restart);
}

TEST(SpecUpdateTest, LookingAheadNeedsARestartOnlyWhereRoundsMayOverlap) {
  v1::JobSpec spec = Running();
  spec.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
  spec.mutable_adapt()->mutable_synchronization()->set_policy(v1::SYNCHRONIZATION_POLICY_DELAYED);
  v1::UpdateJobRequest request = Request({"spec.adapt.synchronization"});
  v1::SynchronizationAxis& axis =
      *request.mutable_spec()->mutable_adapt()->mutable_synchronization();

  axis.set_policy(v1::SYNCHRONIZATION_POLICY_EVERY_STEP);
  EXPECT_FALSE(ApplyUpdate(spec, {}, request)->needs_restart);
  axis.set_policy(v1::SYNCHRONIZATION_POLICY_DELAYED);
  axis.set_look_ahead(true);
  EXPECT_TRUE(ApplyUpdate(spec, {}, request)->needs_restart);
}

TEST(SpecUpdateTest, TheWholeMustBeRightAfterwards) {
  v1::UpdateJobRequest request = Request({"spec.adapt.batch.max"});
  request.mutable_spec()->mutable_adapt()->mutable_batch()->set_max(8);

  EXPECT_THAT(FieldsOf(ApplyUpdate(Running(), {}, request)), ElementsAre("adapt.batch.per_worker"));
  EXPECT_THAT(FieldsOf(ApplyUpdate(Running(), {}, Request({"spec.stop"}))), ElementsAre("stop"));
}

TEST(SpecUpdateTest, TheOptimizerOfAnotherRuleIsRefused) {
  v1::UpdateJobRequest request = Request({"spec.optimizer.adam.learning_rate"});
  request.mutable_spec()->mutable_optimizer()->mutable_adam()->set_learning_rate(0.01);

  EXPECT_THAT(FieldsOf(ApplyUpdate(Running(), {}, request)), ElementsAre("update_mask"));
}

TEST(SpecUpdateTest, TheDefaultOptimizerTakesARate) {
  v1::JobSpec spec = Running();
  spec.clear_optimizer();
  v1::UpdateJobRequest request = Request({"spec.optimizer.sgd.learning_rate"});
  request.mutable_spec()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.01);

  const absl::StatusOr<UpdatedSpec> updated = ApplyUpdate(spec, {}, request);

  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->spec.optimizer().sgd().learning_rate(), 0.01);
}

TEST(SpecUpdateTest, AMaskMustSaySomethingAndNotTooMuch) {
  EXPECT_THAT(FieldsOf(ApplyUpdate(Running(), {}, Request({}))), ElementsAre("update_mask"));
  EXPECT_THAT(
      FieldsOf(ApplyUpdate(Running(), {}, Request(std::vector<std::string>(65, "spec.priority")))),
      ElementsAre("update_mask"));
}

TEST(SpecUpdateTest, HowOftenAJobIsValidatedWorkersReadWhenTheyStart) {
  v1::JobSpec before = Running();
  before.mutable_validation()->set_rounds(100);
  v1::UpdateJobRequest request = Request({"spec.validation.epochs"});
  request.mutable_spec()->mutable_validation()->set_epochs(2);

  const absl::StatusOr<UpdatedSpec> updated = ApplyUpdate(before, {}, request);

  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ(updated->spec.validation().interval_case(), v1::Validation::kEpochs);
  EXPECT_TRUE(updated->needs_restart);
}

}  // namespace
}  // namespace tactus::spec
