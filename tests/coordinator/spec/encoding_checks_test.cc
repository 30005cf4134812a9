// The rules of `adapt.encoding`, and what engines and policies are told of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "agent/engine/combine/encodings.h"
#include "coordinator/spec/adapt_checks.h"
#include "coordinator/spec/engine_options.h"
#include "coordinator/spec/field_rules.h"
#include "coordinator/spec/spec_validation.h"
#include "tests/coordinator/spec/rule.h"

namespace tactus::spec {
namespace {

using testing::HasSubstr;

class EncodingRuleTest : public testing::TestWithParam<Rule> {};

TEST_P(EncodingRuleTest, ABrokenRuleIsReportedAtItsField) { ExpectReportedAtItsField(GetParam()); }

v1::EncodingAxis& EncodingOf(v1::JobSpec& spec, v1::EncodingPolicy policy) {
  v1::EncodingAxis& axis = *spec.mutable_adapt()->mutable_encoding();
  axis.set_policy(policy);
  return axis;
}

constexpr auto kDq = v1::ENCODING_POLICY_DQ;
constexpr auto kAdacomp = v1::ENCODING_POLICY_ADACOMP;

const Rule kEncodingRules[] = {
    {"BitsOfAuto", [](auto& s) { s.mutable_adapt()->mutable_encoding()->set_bits(4); },
     "adapt.encoding.bits", "does not apply to policy auto; it is for dq"},
    {"BinOfDq", [](auto& s) { EncodingOf(s, kDq).set_bin(100); }, "adapt.encoding.bin",
     "does not apply to policy dq; it is for adacomp"},
    {"OneBitOfDq", [](auto& s) { EncodingOf(s, kDq).set_bits(1); }, "adapt.encoding.bits",
     "found 1, allowed is 2 to 8"},
    {"RefinementBelowOne", [](auto& s) { EncodingOf(s, kDq).set_refinement(0.5); },
     "adapt.encoding.refinement", "allowed is 1 to 1024"},
    {"BinZero", [](auto& s) { EncodingOf(s, kAdacomp).set_bin(0); }, "adapt.encoding.bin",
     "found 0, allowed is 1 to 16384"},
    {"MessagesToManyWorkers",
     [](auto& s) {
       EncodingOf(s, kAdacomp);
       s.mutable_workers()->set_min(64);
     },
     "adapt.encoding.policy",
     "found adacomp, which among 64 workers would send 1.46 times as much"},
    {"SignsOfLambOnUnlikeDevices",
     [](auto& s) {
       EncodingOf(s, v1::ENCODING_POLICY_ONE_BIT);
       s.mutable_optimizer()->mutable_lamb();
       s.mutable_workers()->set_device(v1::DEVICE_KIND_ANY);
     },
     "workers.device", "found any, with optimizer lamb and adapt.encoding.policy one_bit"},
    {"DqWithAdasum",
     [](auto& s) {
       EncodingOf(s, kDq);
       s.mutable_adapt()->mutable_aggregation()->set_policy(v1::AGGREGATION_POLICY_ADASUM);
     },
     "adapt.encoding.policy", "found dq, which does not go with adapt.aggregation.policy adasum"},
    {"AdacompWithAdasum",
     [](auto& s) {
       EncodingOf(s, kAdacomp);
       s.mutable_adapt()->mutable_aggregation()->set_policy(v1::AGGREGATION_POLICY_ADASUM);
     },
     "adapt.encoding.policy", "found adacomp, which does not go with adapt.aggregation.policy"},
    {"DqWithAdascale",
     [](auto& s) {
       EncodingOf(s, kDq);
       s.mutable_adapt()->mutable_learning_rate()->set_policy(v1::LEARNING_RATE_POLICY_ADASCALE);
     },
     "adapt.encoding.policy", "the gain follows the noise of gradients"},
    {"AdacompWithAdascale",
     [](auto& s) {
       EncodingOf(s, kAdacomp);
       s.mutable_adapt()->mutable_learning_rate()->set_policy(v1::LEARNING_RATE_POLICY_ADASCALE);
     },
     "adapt.encoding.policy", "does not go with adapt.learning_rate.policy adascale"},
};

INSTANTIATE_TEST_SUITE_P(Rules, EncodingRuleTest, testing::ValuesIn(kEncodingRules),
                         [](const auto& info) { return info.param.name; });

TEST(EncodingChecksTest, EachIsTakenWithItsDefaults) {
  for (const auto policy :
       {kDq, v1::ENCODING_POLICY_SKETCH, kAdacomp, v1::ENCODING_POLICY_ONE_BIT}) {
    v1::JobSpec spec = TextSpec();
    EncodingOf(spec, policy);
    if (policy == v1::ENCODING_POLICY_ONE_BIT) spec.mutable_optimizer()->mutable_adamw();

    EXPECT_TRUE(SpecViolations(spec).empty()) << spec.DebugString();
  }
}

TEST(EncodingChecksTest, SignsOfTheMomentumAreRefusedWithWhatTheyDoNotGoWith) {
  const auto found_at = [](const auto& change) {
    v1::JobSpec spec = TextSpec();
    EncodingOf(spec, v1::ENCODING_POLICY_ONE_BIT);
    spec.mutable_optimizer()->mutable_adamw();
    change(spec);
    std::string found;
    for (const runtime::FieldViolation& violation : SpecViolations(spec)) {
      found += violation.field + ": " + violation.description + "\n";
    }
    return found;
  };

  for (const auto policy : {v1::SYNCHRONIZATION_POLICY_PERIODIC, v1::SYNCHRONIZATION_POLICY_ADACOMM,
                            v1::SYNCHRONIZATION_POLICY_DELAYED}) {
    const std::string found = found_at([policy](v1::JobSpec& spec) {
      spec.mutable_adapt()->mutable_synchronization()->set_policy(policy);
    });
    EXPECT_THAT(found,
                HasSubstr("found one_bit, which does not go with adapt.synchronization.policy"));
  }
  EXPECT_THAT(
      found_at([](v1::JobSpec& spec) { spec.mutable_optimizer()->set_clip_norm(1); }),
      HasSubstr("found one_bit, which does not go with optimizer.clip_norm 1.00: gradients"));
  EXPECT_THAT(found_at([](v1::JobSpec& spec) { spec.mutable_optimizer()->mutable_sgd(); }),
              HasSubstr("found one_bit, which does not go with optimizer sgd"));
}

TEST(EncodingChecksTest, ASketchHasAnOddNumberOfRowsAndIsSmallerThanTheValues) {
  v1::JobSpec spec = TextSpec();
  EncodingOf(spec, v1::ENCODING_POLICY_SKETCH).set_rows(4);
  v1::JobSpec large = TextSpec();
  EncodingOf(large, v1::ENCODING_POLICY_SKETCH).set_share(0.1);
  const auto description = [](const v1::JobSpec& of, const char* field) {
    for (const runtime::FieldViolation& violation : SpecViolations(of)) {
      if (violation.field == field) return violation.description;
    }
    return std::string();
  };

  EXPECT_THAT(description(spec, "adapt.encoding.rows"), HasSubstr("found 4, allowed is an odd"));
  EXPECT_THAT(description(large, "adapt.encoding.share"),
              HasSubstr("found 0.10, which with these candidates and rows would send 1.60 times"));
}

TEST(EngineOptionsTest, WhatIsSaidOfTheEncodingReachesTheEngineAndThePolicies) {
  v1::JobSpec spec = TextSpec();
  EncodingOf(spec, kDq).set_bits(6);
  const ResolvedSpec dq = Resolve(spec);
  spec = TextSpec();
  EncodingOf(spec, kAdacomp).set_bin(64);
  const ResolvedSpec adacomp = Resolve(spec);

  EXPECT_EQ(EngineOptionsOf(dq).encoding.dq.first_bits, 6);
  EXPECT_EQ(PlannerOptionsOf(dq).encoding.bits, 6);
  EXPECT_EQ(EngineOptionsOf(adacomp).encoding.adacomp.bin, 64u);
  EXPECT_EQ(PlannerOptionsOf(adacomp).encoding.bin, 64u);
}

TEST(EngineOptionsTest, WhatIsSaidOfSketchesAndSignsReachesTheEngineAndThePolicies) {
  v1::JobSpec spec = TextSpec();
  v1::EncodingAxis& axis = EncodingOf(spec, v1::ENCODING_POLICY_SKETCH);
  axis.set_share(0.002);
  axis.set_candidates(3);
  axis.set_rows(7);
  axis.set_columns(640);
  axis.set_offered(0);
  const engine::SketchOptions sketch = EngineOptionsOf(Resolve(spec)).encoding.sketch;
  const policies::EncodingOptions priced = PlannerOptionsOf(Resolve(spec)).encoding;
  v1::JobSpec signs = TextSpec();
  signs.mutable_optimizer()->mutable_adamw();
  EncodingOf(signs, v1::ENCODING_POLICY_ONE_BIT).set_warm_up(60);

  EXPECT_EQ(sketch.share, 0.002);
  EXPECT_EQ(sketch.candidates, 3u);
  EXPECT_EQ(sketch.rows, 7u);
  EXPECT_EQ(sketch.columns, 640u);
  EXPECT_EQ(sketch.offered, 0u);
  EXPECT_EQ(priced, (policies::EncodingOptions{
                        .share = 0.002, .candidates = 3, .rows = 7, .columns = 640}));
  EXPECT_EQ(EngineOptionsOf(Resolve(signs)).encoding.one_bit.warm_up, 60u);
}

// What is priced where nothing is said is what workers do then.
TEST(EngineOptionsTest, TheDefaultsOfEncodingsAreThoseOfTheEngineAndOfThePolicies) {
  v1::JobSpec spec = TextSpec();
  EncodingOf(spec, kDq);
  const engine::DqOptions dq = EngineOptionsOf(Resolve(spec)).encoding.dq;
  const policies::EncodingOptions of_dq = PlannerOptionsOf(Resolve(spec)).encoding;
  EncodingOf(spec, kAdacomp);
  const engine::AdacompOptions adacomp = EngineOptionsOf(Resolve(spec)).encoding.adacomp;

  EXPECT_EQ(dq.first_bits, engine::DqOptions().first_bits);
  EXPECT_EQ(dq.rho, engine::DqOptions().rho);
  EXPECT_EQ(of_dq, policies::EncodingOptions());
  EXPECT_EQ(adacomp.bin, engine::AdacompOptions().bin);
  EXPECT_EQ(adacomp.bin_of_convolutions, engine::AdacompOptions().bin_of_convolutions);
  EXPECT_EQ(PlannerOptionsOf(Resolve(spec)).encoding, policies::EncodingOptions());

  EncodingOf(spec, v1::ENCODING_POLICY_SKETCH);
  const engine::SketchOptions sketch = EngineOptionsOf(Resolve(spec)).encoding.sketch;
  EXPECT_EQ(sketch.share, engine::SketchOptions().share);
  EXPECT_EQ(sketch.candidates, engine::SketchOptions().candidates);
  EXPECT_EQ(sketch.rows, engine::SketchOptions().rows);
  EXPECT_EQ(sketch.columns, engine::SketchOptions().columns);
  EXPECT_EQ(sketch.offered, engine::SketchOptions().offered);
  EXPECT_EQ(PlannerOptionsOf(Resolve(spec)).encoding, policies::EncodingOptions());
}

}  // namespace
}  // namespace tactus::spec
