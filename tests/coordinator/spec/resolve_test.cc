#include "coordinator/spec/resolve.h"

#include <gtest/gtest.h>

#include "tests/coordinator/spec/rule.h"

namespace tactus::spec {
namespace {

TEST(ResolveTest, TheOptimizerIsSgdWithItsDefaults) {
  const ResolvedSpec spec = Resolve(TextSpec());
  EXPECT_EQ(spec->optimizer().sgd().learning_rate(), 0.1);
  EXPECT_TRUE(spec->optimizer().sgd().has_nesterov());
  EXPECT_FALSE(spec->optimizer().has_clip_norm());
}

TEST(ResolveTest, AdamwDecaysAndAdamDoesNot) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_optimizer()->mutable_adam();
  EXPECT_EQ(Resolve(spec)->optimizer().adam().weight_decay(), 0);
  spec.mutable_optimizer()->mutable_adamw()->set_beta1(0.5);
  EXPECT_EQ(Resolve(spec)->optimizer().adamw().weight_decay(), 0.01);
  EXPECT_EQ(Resolve(spec)->optimizer().adamw().beta1(), 0.5);
}

TEST(ResolveTest, TheBaseBatchFollowsTheWorkersUnlessItIsGiven) {
  v1::JobSpec spec = TextSpec();
  EXPECT_EQ(Resolve(spec)->adapt().learning_rate().base_batch(), 32u);
  spec.mutable_adapt()->mutable_batch()->set_per_worker(100);
  EXPECT_EQ(Resolve(spec)->adapt().learning_rate().base_batch(), 100u);
  spec.mutable_adapt()->mutable_learning_rate()->set_base_batch(7);
  EXPECT_EQ(Resolve(spec)->adapt().learning_rate().base_batch(), 7u);
}

TEST(ResolveTest, WhatIsNotSaidOfAdaptingIsChosen) {
  v1::JobSpec spec;
  spec.mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_FIXED);

  const v1::Adapt adapt = Resolve(spec)->adapt();

  EXPECT_EQ(adapt.batch().policy(), v1::BATCH_POLICY_FIXED);
  EXPECT_EQ(adapt.synchronization().policy(), v1::SYNCHRONIZATION_POLICY_AUTO);
  EXPECT_EQ(adapt.synchronization().period_max(), 128u);
  EXPECT_EQ(adapt.aggregation().policy(), v1::AGGREGATION_POLICY_AUTO);
  EXPECT_EQ(adapt.learning_rate().policy(), v1::LEARNING_RATE_POLICY_AUTO);
  EXPECT_EQ(adapt.encoding().policy(), v1::ENCODING_POLICY_AUTO);
}

TEST(ResolveTest, WithNoneNothingIsChosen) {
  v1::JobSpec spec;
  spec.mutable_adapt()->set_policy(v1::ADAPT_POLICY_NONE);

  const v1::Adapt none = Resolve(spec)->adapt();
  spec.mutable_adapt()->mutable_synchronization()->set_policy(v1::SYNCHRONIZATION_POLICY_AUTO);
  const v1::Adapt one = Resolve(spec)->adapt();

  EXPECT_EQ(none.batch().policy(), v1::BATCH_POLICY_FIXED);
  EXPECT_EQ(none.synchronization().policy(), v1::SYNCHRONIZATION_POLICY_EVERY_STEP);
  EXPECT_FALSE(none.synchronization().has_period_max());
  EXPECT_EQ(none.aggregation().policy(), v1::AGGREGATION_POLICY_AVERAGE);
  EXPECT_EQ(none.learning_rate().policy(), v1::LEARNING_RATE_POLICY_CONSTANT);
  EXPECT_EQ(none.encoding().policy(), v1::ENCODING_POLICY_DENSE);
  EXPECT_EQ(one.synchronization().policy(), v1::SYNCHRONIZATION_POLICY_AUTO);
  EXPECT_EQ(one.batch().policy(), v1::BATCH_POLICY_FIXED);
}

TEST(ResolveTest, ABuiltinModelHasItsOwnSizesAlone) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_model()->mutable_options()->set_layers(9);
  const ResolvedSpec text = Resolve(spec);
  EXPECT_EQ(text->model().options().width(), 128u);
  EXPECT_EQ(text->model().options().layers(), 9u);
  EXPECT_FALSE(text->model().options().has_classes());
  EXPECT_EQ(text->model().loss(), "cross_entropy");
  EXPECT_EQ(text->model().precision(), v1::PRECISION_FLOAT32);

  spec.mutable_model()->set_torchscript("/m.pt");
  spec.mutable_model()->clear_options();
  EXPECT_FALSE(Resolve(spec)->model().has_options());
}

TEST(ResolveTest, WhatIsResolvedStaysAsItIs) {
  const ResolvedSpec once = Resolve(TextSpec());
  EXPECT_EQ(Resolve(*once)->SerializeAsString(), once->SerializeAsString());
}

TEST(ResolveTest, HowManySamplesAreValidatedBothOfItsFieldsSay) {
  v1::JobSpec spec = TextSpec();
  EXPECT_EQ(Resolve(spec)->validation().policy(), v1::VALIDATION_POLICY_AUTO);
  EXPECT_EQ(Resolve(spec)->validation().samples(), 10000u);
  EXPECT_EQ(Resolve(spec)->result(), v1::RESULT_CHOICE_LAST);

  spec.mutable_data()->set_validation_samples_max(70);
  EXPECT_EQ(Resolve(spec)->validation().samples(), 70u);
  spec.mutable_data()->clear_validation_samples_max();
  spec.mutable_validation()->set_samples(80);
  EXPECT_EQ(Resolve(spec)->data().validation_samples_max(), 80u);
}

}  // namespace
}  // namespace tactus::spec
