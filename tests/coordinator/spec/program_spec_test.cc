// What a job may say that is a program of a user's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/spec/spec_validation.h"

namespace tactus::spec {
namespace {

v1::JobSpec ProgramSpec() {
  v1::JobSpec spec;
  spec.set_name("program");
  spec.mutable_program()->add_command("python3");
  spec.mutable_program()->set_directory("/code");
  return spec;
}

std::vector<std::string> FieldsOf(const v1::JobSpec& spec) {
  std::vector<std::string> fields;
  for (const runtime::FieldViolation& violation : SpecViolations(spec)) {
    fields.push_back(violation.field);
  }
  return fields;
}

TEST(ProgramSpecTest, AProgramIsEnough) {
  EXPECT_THAT(FieldsOf(ProgramSpec()), testing::IsEmpty());
  const auto settings = ParseSpec(ProgramSpec());
  ASSERT_TRUE(settings.ok());
  EXPECT_TRUE(settings->program);
  EXPECT_EQ(settings->device, job::DeviceKind::kCpu);
}

TEST(ProgramSpecTest, WhatTheProgramSaysIsRefused) {
  v1::JobSpec spec = ProgramSpec();
  spec.mutable_model()->set_builtin("cifar-cnn");
  spec.mutable_data()->set_cifar("/cifar");
  spec.mutable_optimizer()->mutable_sgd();
  spec.mutable_stop()->set_patience(3);
  spec.mutable_adapt()->mutable_batch()->set_per_worker(8);
  spec.set_seed(2);
  spec.mutable_validation()->set_epochs(1);
  spec.set_result(v1::RESULT_CHOICE_BEST);

  EXPECT_THAT(FieldsOf(spec),
              testing::ElementsAre("model", "data", "optimizer", "stop.patience",
                                   "adapt.batch.per_worker", "seed", "validation", "result"));
}

// Its optimizer's momentum is out of reach.
TEST(ProgramSpecTest, ItsWorkersDoNotMixWithNeighbours) {
  v1::JobSpec spec = ProgramSpec();
  spec.mutable_adapt()->mutable_synchronization()->set_policy(v1::SYNCHRONIZATION_POLICY_DECENTLAM);

  EXPECT_THAT(FieldsOf(spec), testing::ElementsAre("adapt.synchronization.policy"));
}

TEST(ProgramSpecTest, ItHasAFolderOrFiles) {
  v1::JobSpec spec = ProgramSpec();
  spec.mutable_program()->clear_directory();
  EXPECT_THAT(FieldsOf(spec), testing::ElementsAre("program.directory"));
  spec.mutable_program()->add_files("/here/train.py");
  EXPECT_THAT(FieldsOf(spec), testing::ElementsAre("program.names"));
  spec.mutable_program()->add_names("train.py");
  EXPECT_THAT(FieldsOf(spec), testing::IsEmpty());
  spec.mutable_program()->set_directory("/code");
  EXPECT_THAT(FieldsOf(spec), testing::ElementsAre("program.directory"));
}

TEST(ProgramSpecTest, NamesStayWithinTheFolder) {
  for (const char* name : {"../a", "/a", "a/../b", "a//b", ".", "", "a\nb"}) {
    v1::JobSpec spec = ProgramSpec();
    spec.mutable_program()->clear_directory();
    spec.mutable_program()->add_files("/here/train.py");
    spec.mutable_program()->add_names(name);
    EXPECT_THAT(FieldsOf(spec), testing::ElementsAre("program.names")) << name;
  }
}

TEST(ProgramSpecTest, WordsAreWhatASystemTakes) {
  v1::JobSpec spec = ProgramSpec();
  spec.mutable_program()->clear_command();
  EXPECT_THAT(FieldsOf(spec), testing::ElementsAre("program.command"));
  spec.mutable_program()->add_command(std::string("a\0b", 3));
  EXPECT_THAT(FieldsOf(spec), testing::ElementsAre("program.command"));
}

TEST(ProgramSpecTest, ProgramsTrainOnAnyDevice) {
  v1::JobSpec spec = ProgramSpec();
  for (const v1::DeviceKind kind : {v1::DEVICE_KIND_CUDA, v1::DEVICE_KIND_ANY}) {
    spec.mutable_workers()->set_device(kind);
    EXPECT_THAT(FieldsOf(spec), testing::IsEmpty());
  }
}

}  // namespace
}  // namespace tactus::spec
