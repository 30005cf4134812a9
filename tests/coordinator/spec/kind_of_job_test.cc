#include "coordinator/spec/kind_of_job.h"

#include <gtest/gtest.h>

#include <functional>

#include "coordinator/spec/spec_validation.h"
#include "tests/coordinator/spec/rule.h"

namespace tactus::spec {
namespace {

std::string KindWith(const std::function<void(v1::JobSpec&)>& change) {
  v1::JobSpec spec = TextSpec();
  change(spec);
  return KindOfJob(Resolve(spec));
}

const std::string& Standard() {
  static const std::string kind = KindWith([](v1::JobSpec&) {});
  return kind;
}

TEST(KindOfJobTest, WhatDoesNotMatterToAPeriodIsLeftOut) {
  EXPECT_EQ(Standard().size(), 32u);
  EXPECT_EQ(KindWith([](v1::JobSpec& spec) { spec.set_name("another"); }), Standard());
  EXPECT_EQ(KindWith([](v1::JobSpec& spec) { spec.set_seed(7); }), Standard());
  EXPECT_EQ(KindWith([](v1::JobSpec& spec) { spec.mutable_stop()->set_epochs(99); }), Standard());
  EXPECT_EQ(KindWith([](v1::JobSpec& spec) { spec.mutable_workers()->set_max(2); }), Standard());
  EXPECT_EQ(KindWith([](v1::JobSpec& spec) { spec.mutable_adapt()->add_frozen("batch"); }),
            Standard());
}

TEST(KindOfJobTest, ADefaultIsTheSameWhetherItIsWrittenOrNot) {
  EXPECT_EQ(KindWith([](v1::JobSpec& spec) {
              spec.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
            }),
            Standard());
}

TEST(KindOfJobTest, AnyOtherPartMakesAnotherKind) {
  EXPECT_NE(
      KindWith([](v1::JobSpec& spec) { spec.mutable_model()->mutable_options()->set_width(64); }),
      Standard());
  EXPECT_NE(KindWith([](v1::JobSpec& spec) { spec.mutable_model()->set_builtin("resnet18"); }),
            Standard());
  EXPECT_NE(KindWith([](v1::JobSpec& spec) {
              spec.mutable_model()->set_precision(v1::PRECISION_BFLOAT16);
            }),
            Standard());
  EXPECT_NE(KindWith([](v1::JobSpec& spec) { spec.mutable_data()->set_text("/other.txt"); }),
            Standard());
  EXPECT_NE(KindWith([](v1::JobSpec& spec) { spec.mutable_optimizer()->mutable_adam(); }),
            Standard());
  EXPECT_NE(KindWith([](v1::JobSpec& spec) {
              spec.mutable_optimizer()->mutable_sgd()->set_momentum(0.9);
            }),
            Standard());
  EXPECT_NE(KindWith([](v1::JobSpec& spec) {
              spec.mutable_adapt()->mutable_batch()->set_per_worker(64);
            }),
            Standard());
}

TEST(KindOfJobTest, SettingsHaveItUnlessTheUserRefuses) {
  v1::JobSpec spec = TextSpec();
  EXPECT_EQ(ParseSpec(spec)->kind, Standard());

  spec.mutable_adapt()->set_warm_start(true);
  EXPECT_EQ(ParseSpec(spec)->kind, Standard());

  spec.mutable_adapt()->set_warm_start(false);
  EXPECT_EQ(ParseSpec(spec)->kind, "");
}

}  // namespace
}  // namespace tactus::spec
