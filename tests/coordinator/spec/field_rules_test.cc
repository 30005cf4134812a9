#include "coordinator/spec/field_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "policies/optimizers.h"
#include "tactus/v1/spec.pb.h"
#include "tests/coordinator/spec/rule.h"

namespace tactus::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MessageFactory;

std::vector<runtime::FieldViolation> Wrong(const Message& message, const std::string& variant) {
  FieldChecks checks;
  CheckFields(message, "", variant, checks);
  return checks.violations();
}

// Calls `visit` with every message that a specification can hold.
void ForEachMessage(const Descriptor& type, std::set<const Descriptor*>& seen,
                    const std::function<void(const Descriptor&)>& visit) {
  if (!seen.insert(&type).second) return;
  visit(type);
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.message_type() != nullptr && !field.is_map()) {
      ForEachMessage(*field.message_type(), seen, visit);
    }
  }
}

TEST(FieldRulesTest, EveryDefaultCanBeReadAndIsAllowed) {
  std::set<const Descriptor*> seen;
  ForEachMessage(*v1::JobSpec::descriptor(), seen, [](const Descriptor& type) {
    std::vector<std::string> variants = VariantsOf(type);
    if (variants.empty() || type.FindFieldByName("policy") != nullptr) variants = {"sgd"};
    for (const std::string& variant : variants) {
      const Message& prototype = *MessageFactory::generated_factory()->GetPrototype(&type);
      const std::unique_ptr<Message> message(prototype.New());
      FillDefaults(variant, message.get());
      EXPECT_TRUE(Wrong(*message, variant).empty()) << message->DebugString();
    }
  });
  EXPECT_GT(seen.size(), 20u);
}

TEST(FieldRulesTest, EveryPolicyHasDefaultsThatItMayHave) {
  for (int policy = 1; policy <= v1::SynchronizationPolicy_MAX; ++policy) {
    v1::SynchronizationAxis axis;
    axis.set_policy(static_cast<v1::SynchronizationPolicy>(policy));
    FillDefaults("", &axis);
    EXPECT_TRUE(Wrong(axis, "").empty()) << axis.DebugString();
  }
}

TEST(FieldRulesTest, ALaterRuleOfAVariantCountsMore) {
  v1::SynchronizationAxis periodic, adacomm;
  periodic.set_policy(v1::SYNCHRONIZATION_POLICY_PERIODIC);
  adacomm.set_policy(v1::SYNCHRONIZATION_POLICY_ADACOMM);

  FillDefaults("", &periodic);
  FillDefaults("", &adacomm);

  EXPECT_EQ(periodic.block_momentum(), 0);
  EXPECT_TRUE(periodic.has_block_momentum());
  EXPECT_EQ(periodic.local_momentum(), v1::LOCAL_MOMENTUM_KEEP);
  EXPECT_FALSE(periodic.has_interval());
  EXPECT_EQ(adacomm.block_momentum(), 0.3);
  EXPECT_EQ(adacomm.local_momentum(), v1::LOCAL_MOMENTUM_RESET);
  EXPECT_EQ(adacomm.interval().seconds(), 60);
}

TEST(FieldRulesTest, WhatIsGivenStaysEvenIfItIsZero) {
  v1::Data data;
  data.set_validation_fraction(0);
  FillDefaults("", &data);
  EXPECT_EQ(data.validation_fraction(), 0);
  EXPECT_EQ(data.context(), 64u);
}

TEST(FieldRulesTest, AMessageComesToBeOnlyForItsDefaults) {
  v1::JobSpec spec;
  FillDefaults("", &spec);
  EXPECT_EQ(spec.adapt().learning_rate().schedule().warmup_steps(), 0u);
  EXPECT_TRUE(spec.adapt().learning_rate().has_schedule());
  EXPECT_FALSE(spec.has_snapshots());
  EXPECT_EQ(spec.optimizer().shard(), v1::SHARD_NONE);
  EXPECT_EQ(spec.optimizer().rule_case(), v1::Optimizer::RULE_NOT_SET);
  EXPECT_FALSE(spec.model().has_options());
  EXPECT_FALSE(spec.adapt().learning_rate().schedule().has_step());
}

TEST(FieldRulesTest, AFieldOfAnotherVariantIsRefusedWithItsOwners) {
  v1::BuiltinOptions options;
  options.set_heads(4);
  options.set_classes(1);

  const auto wrong = Wrong(options, "cifar-cnn");

  ASSERT_EQ(wrong.size(), 2u);
  EXPECT_EQ(wrong[0].description, "does not apply to cifar-cnn; it is for bytes-lm");
  EXPECT_EQ(wrong[1].description, "found 1, allowed is 2 to 65536");
  EXPECT_TRUE(Wrong(options, "").empty());
}

TEST(FieldRulesTest, WholeNumbersAreExactUpToTheirEnds) {
  v1::Stop stop;
  stop.set_rounds((std::uint64_t{1} << 63) - 1);
  EXPECT_TRUE(Wrong(stop, "").empty());

  stop.set_rounds(std::uint64_t{1} << 63);

  ASSERT_EQ(Wrong(stop, "").size(), 1u);
  EXPECT_EQ(Wrong(stop, "")[0].description,
            "found 9223372036854775808, allowed is 1 to 9223372036854775807");
}

TEST(FieldRulesTest, OptimizersAreThoseThatThePoliciesKnow) {
  const auto* rule = v1::Optimizer::descriptor()->FindOneofByName("rule");
  std::vector<std::string> names, rows;
  for (int i = 0; i < rule->field_count(); ++i) names.push_back(rule->field(i)->name());
  for (const policies::OptimizerRow& row : policies::Optimizers()) rows.emplace_back(row.name);
  EXPECT_EQ(names, rows);
}

TEST(FieldRulesTest, WordsAreThoseOfJobFiles) {
  const auto& type = *v1::LocalMomentum_descriptor();
  EXPECT_EQ(WordOf(type, v1::LOCAL_MOMENTUM_RESET), "reset");
  EXPECT_EQ(WordOf(type, v1::LOCAL_MOMENTUM_UNSPECIFIED), "");
  EXPECT_EQ(WordOf(type, 77), "");
}

}  // namespace
}  // namespace tactus::spec
