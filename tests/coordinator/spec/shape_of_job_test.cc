#include "coordinator/spec/shape_of_job.h"

#include <gtest/gtest.h>

#include <functional>

#include "coordinator/spec/spec_validation.h"
#include "tests/coordinator/spec/rule.h"

namespace tactus::spec {
namespace {

v1::JobSpec OneWorker(const std::function<void(v1::JobSpec&)>& change = [](v1::JobSpec&) {}) {
  v1::JobSpec spec = TextSpec();
  spec.mutable_workers()->set_min(1);
  spec.mutable_workers()->set_max(1);
  change(spec);
  return spec;
}

std::string ShapeWith(const std::function<void(v1::JobSpec&)>& change) {
  return ShapeOfJob(Resolve(OneWorker(change)));
}

std::string ReasonWith(const std::function<void(v1::JobSpec&)>& change) {
  return WhyByItself(Resolve(OneWorker(change)));
}

TEST(ShapeOfJobTest, NumbersDoNotMatter) {
  const std::string shape = ShapeWith([](v1::JobSpec&) {});
  EXPECT_EQ(shape.size(), 32u);
  EXPECT_EQ(ShapeWith([](v1::JobSpec& spec) { spec.set_seed(7); }), shape);
  EXPECT_EQ(ShapeWith([](v1::JobSpec& spec) { spec.set_name("another"); }), shape);
  EXPECT_EQ(ShapeWith([](v1::JobSpec& spec) { spec.mutable_stop()->set_epochs(99); }), shape);
  EXPECT_EQ(ShapeWith([](v1::JobSpec& spec) {
              spec.mutable_optimizer()->mutable_adam()->set_learning_rate(0.5);
            }),
            shape);
}

TEST(ShapeOfJobTest, ModelDataAndStepDo) {
  const std::string shape = ShapeWith([](v1::JobSpec&) {});
  EXPECT_NE(
      ShapeWith([](v1::JobSpec& spec) { spec.mutable_model()->mutable_options()->set_width(64); }),
      shape);
  EXPECT_NE(ShapeWith([](v1::JobSpec& spec) { spec.mutable_data()->set_text("/other.txt"); }),
            shape);
  EXPECT_NE(ShapeWith([](v1::JobSpec& spec) {
              spec.mutable_adapt()->mutable_batch()->set_per_worker(64);
            }),
            shape);
}

TEST(ShapeOfJobTest, WhoTrainsByItselfIsToldWhy) {
  EXPECT_EQ(ReasonWith([](v1::JobSpec&) {}), "");
  EXPECT_EQ(WhyByItself(Resolve(TextSpec())), "workers.max: found 65536, allowed is 1");
  EXPECT_EQ(ShapeOfJob(Resolve(TextSpec())), "");
  EXPECT_EQ(ReasonWith([](v1::JobSpec& spec) { spec.mutable_workers()->set_spares(1); }),
            "workers.spares: found 1, allowed is 0");
  EXPECT_EQ(ReasonWith([](v1::JobSpec& spec) { spec.mutable_model()->set_builtin("resnet18"); }),
            "model.builtin: found \"resnet18\", allowed are bytes-lm and cifar-cnn");
  EXPECT_EQ(ReasonWith([](v1::JobSpec& spec) { spec.mutable_model()->set_torchscript("/m.pt"); }),
            "model.torchscript: allowed is a built-in model");
  EXPECT_EQ(ReasonWith([](v1::JobSpec& spec) {
              spec.mutable_model()->set_precision(v1::PRECISION_BFLOAT16);
            }),
            "model.precision: found bfloat16, allowed is float32");
  EXPECT_EQ(ReasonWith([](v1::JobSpec& spec) { spec.mutable_model()->set_loss("mse"); }),
            "model.loss: found \"mse\", allowed is cross_entropy");
  EXPECT_EQ(ReasonWith([](v1::JobSpec& spec) { spec.mutable_program()->add_command("x"); }),
            "program: its code is a process; one program trains several models together by "
            "tactus_train.fused (docs/python.md)");
}

TEST(ShapeOfJobTest, SettingsHaveIt) {
  EXPECT_EQ(ParseSpec(OneWorker())->shape, ShapeOfJob(Resolve(OneWorker())));
  EXPECT_EQ(ParseSpec(TextSpec())->shape, "");
}

}  // namespace
}  // namespace tactus::spec
