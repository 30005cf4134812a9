// What a program says of itself is read, or refused with the field.

#include "sdk/program.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::sdk {
namespace {

using testing::HasSubstr;

constexpr char kWhole[] = R"({
  "name": "cifar", "seed": 7, "batch": 64, "micro_batch": 16, "train_samples": 50000, "buffers": 12,
  "clip_norm": 1.5, "output": "/tmp/x",
  "segments": [{"name": "fc.bias", "shape": [10]}, {"name": "fc.weight", "shape": [10, 512]}],
  "optimizer": {"kind": "adamw", "buffers": 2, "momentum": 0.9, "weight": 0.1,
                "second_decay": 0.999},
  "stop": {"epochs": 3, "seconds": 60}, "adapt": {"batch": "auto", "batch_max": 512}})";

TEST(ParseProgramTest, AllOfIt) {
  const absl::StatusOr<Program> program = ParseProgram(kWhole);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->segments.size(), 2u);
  EXPECT_EQ(program->segments[1].length, 5120u);
  EXPECT_EQ(program->segments[1].offset, 16u) << "a cache line";
  EXPECT_EQ(program->micro_batch, 16u);
  EXPECT_EQ(program->buffers, 12u);
  EXPECT_EQ(program->optimizer.state_buffers, 2u);
  EXPECT_EQ(program->optimizer.bending_decay, 0.999);
  EXPECT_EQ(program->optimizer.window_momentum->weight, 0.1);
  EXPECT_TRUE(program->optimizer.counts_steps());
  EXPECT_EQ(program->stop.time, Duration(Seconds(60)));
  EXPECT_EQ(program->adapt.batch_policy, "auto");
  EXPECT_EQ(program->adapt.batch.batch_max, 512u);
  EXPECT_EQ(program->adapt.base_batch, 64u);
  EXPECT_EQ(program->adapt.optimizer, "adamw");
}

TEST(ParseProgramTest, WhatIsLeftOutIsAFixedPlanOfWholeBatches) {
  const absl::StatusOr<Program> program =
      ParseProgram(R"({"batch": 8, "train_samples": 9, "segments": [{"name": "x", "shape": []}]})");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->micro_batch, 8u);
  EXPECT_EQ(program->segments[0].length, 1u) << "a scalar";
  EXPECT_EQ(program->adapt.batch_policy, "fixed");
  EXPECT_EQ(program->adapt.synchronization.policy, "every_step");
}

struct Wrong {
  std::string name;
  std::string json;
  std::string said;
};

class WrongProgramTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongProgramTest, IsRefusedWithItsField) {
  const absl::Status status = ParseProgram(GetParam().json).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().said));
}

std::string With(const std::string& rest) {
  return R"({"batch": 8, "train_samples": 9, "segments": [{"name": "x", "shape": [3]}], )" + rest +
         "}";
}

INSTANTIATE_TEST_SUITE_P(
    Each, WrongProgramTest,
    testing::Values(
        Wrong{"NoJson", "{", "a program is a JSON object"},
        Wrong{"NoObject", "[1]", "a program is a JSON object"},
        Wrong{"NoSegments", R"({"batch": 8, "train_samples": 9})", "segments: a list of one"},
        Wrong{"NoParameters",
              R"({"batch": 8, "train_samples": 9, "segments": [{"name": "x", "shape": [0]}]})",
              "there is no parameter to train"},
        Wrong{"ASegmentThatIsNone", R"({"batch": 8, "train_samples": 9, "segments": [3]})",
              "segments[0]: an object is wanted"},
        Wrong{"NoSamples", R"({"batch": 8, "segments": [{"name": "x", "shape": [3]}]})",
              "train_samples: found 0"},
        Wrong{"NoBatch", R"({"train_samples": 9, "segments": [{"name": "x", "shape": [3]}]})",
              "batch: found 0"},
        Wrong{"NoMicroBatch", With(R"("micro_batch": 0)"), "micro_batch: found 0"},
        Wrong{"ANormOfNothing", With(R"("clip_norm": 0)"), "clip_norm: allowed is above 0"},
        Wrong{"AKind", With(R"("seed": "x")"), "seed"},
        Wrong{"APolicy", With(R"("adapt": {"batch": "magic"})"),
              "adapt.batch: found \"magic\", allowed: fixed, proportional, abs, auto"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tactus::sdk
