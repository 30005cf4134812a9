// Passes in bfloat16: how far they may be from float32, and what stays float32.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "agent/model/model.h"
#include "tests/agent/model/model_support.h"
#include "tests/agent/model/torchscript_files.h"

namespace tactus::model {
namespace {

using testing::StartsWith;

// bfloat16 keeps 8 bits of a significand: half a unit in the last place, relative.
constexpr double kRounding = 1.0 / 512;

// The lower half of a float32's bits is zero.
bool FitsBfloat16(double value) {
  const auto narrow = static_cast<float>(value);
  return static_cast<double>(narrow) == value && (std::bit_cast<std::uint32_t>(narrow) << 16) == 0;
}

class PrecisionTest : public testing::Test {
 protected:
  static constexpr std::size_t kInputs = 7;

  // Its one output is its loss.
  ModelOptions Linear(Precision precision) {
    WriteTorchScript(folder_.Path("m.pt"), {{.name = "w", .shape = {1, kInputs}}},
                     "def forward(self, x):\n    return torch.linear(x, self.w)\n");
    WriteTorchScript(folder_.Path("loss.pt"), {},
                     "def forward(self, y, t):\n    return y.sum(1)\n");
    return {.torchscript = folder_.Path("m.pt"),
            .loss = folder_.Path("loss.pt"),
            .precision = precision};
  }

  static ModelOptions Small(const std::string& builtin, Precision precision) {
    if (builtin != "bytes-lm") return {.builtin = builtin, .width = 8, .precision = precision};
    return {.builtin = builtin,
            .width = 16,
            .heads = 2,
            .layers = 2,
            .context = 8,
            .precision = precision};
  }

  const ScratchFolder folder_;
};

TEST_F(PrecisionTest, OutputsAreOfBfloat16AndNearThoseOfFloat32) {
  BoundModel exact(Linear(Precision::kFloat32));
  BoundModel rounded(Linear(Precision::kBfloat16));
  const ExampleSet examples(1, {.shape = {kInputs}}, {.shape = {}});
  const auto* inputs = reinterpret_cast<const float*>(examples.All().inputs.data());
  double magnitude = 0;
  for (std::size_t i = 0; i < kInputs; ++i) {
    magnitude += std::abs(static_cast<double>(inputs[i]) * exact.Weights()[i]);
  }

  const double expected = exact.Step(examples.All());
  const double output = rounded.Step(examples.All());

  EXPECT_NE(output, expected);
  EXPECT_TRUE(FitsBfloat16(output)) << output;
  // An input, a weight and the output are rounded once each; float32's sum of kInputs products adds
  // less than another rounding, even were it kept in bfloat16 at each step.
  const double bound = std::pow(1 + kRounding, 3 + kInputs) - 1;
  EXPECT_NEAR(output, expected, bound * magnitude);
  EXPECT_EQ(rounded.EvaluateLoss(examples.All()), output);
}

// Each is rounded once; their sum is not.
TEST_F(PrecisionTest, GradientsAddUpInFloat32) {
  BoundModel bound(Linear(Precision::kBfloat16));
  const ExampleSet examples(2, {.shape = {kInputs}}, {.shape = {}});
  bound.Step(examples.Range(0, 1));
  const std::vector<float> first = bound.Gradients();
  bound.ClearGradients();
  bound.Step(examples.Range(1, 1));
  const std::vector<float> second = bound.Gradients();

  bound.Step(examples.Range(0, 1));

  const std::vector<float> sum = bound.Gradients();
  int wider = 0;
  for (std::size_t i = 0; i < kInputs; ++i) {
    EXPECT_TRUE(FitsBfloat16(first[i])) << first[i];
    EXPECT_EQ(sum[i], second[i] + first[i]);
    wider += FitsBfloat16(sum[i]) ? 0 : 1;
  }
  EXPECT_GT(wider, 0);
}

TEST_F(PrecisionTest, PassesFollowTheFlatWeights) {
  BoundModel bound(Linear(Precision::kBfloat16));
  const ExampleSet examples(1, {.shape = {kInputs}}, {.shape = {}});
  const double before = bound.Step(examples.All());

  for (float& weight : bound.parameters.span()) weight *= 2;

  EXPECT_EQ(bound.Step(examples.All()), 2 * before);
}

TEST_F(PrecisionTest, ModelsInFloat32AreNotTouched) {
  BoundModel exact(Linear(Precision::kFloat32));
  BoundModel rounded(Linear(Precision::kBfloat16));
  const ExampleSet examples(1, {.shape = {kInputs}}, {.shape = {}});
  const ExampleSet others(1, {.shape = {kInputs + 1}}, {.shape = {}});
  const double expected = exact.Step(examples.All());
  EXPECT_FALSE(FitsBfloat16(expected));

  rounded.Step(examples.All());
  EXPECT_EQ(exact.Step(examples.All()), expected);
  ASSERT_FALSE(rounded.Pass(others.All()).ok());
  EXPECT_EQ(exact.Step(examples.All()), expected);
}

TEST_F(PrecisionTest, WhatBfloat16LacksIsRefusedWithTheReason) {
  const std::string path = folder_.Path("dot.pt");
  WriteTorchScript(path, {{.name = "w", .shape = {2, 3}}, {.name = "v", .shape = {2}}},
                   "def forward(self, x):\n"
                   "    y = torch.linear(x, self.w)\n"
                   "    return y * torch.dot(y[0], self.v)\n");
  const ExampleSet examples = Vectors(4, 3, 2);
  BoundModel exact({.torchscript = path});
  BoundModel rounded({.torchscript = path, .precision = Precision::kBfloat16});

  EXPECT_TRUE(exact.model->TryOut(examples.All()).ok());
  const absl::Status status = rounded.model->TryOut(examples.All());

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      StartsWith("model.precision: float32 works, but bfloat16 does not: model.torchscript: "
                 "the model's forward fails on inputs float32 [4, 3]: "));
  EXPECT_THAT(rounded.Gradients(), testing::Each(0.0F));
}

TEST_F(PrecisionTest, WhatFailsInBothIsNotBlamedOnIt) {
  BoundModel bound(Linear(Precision::kBfloat16));
  const ExampleSet examples(1, {.shape = {kInputs + 1}}, {.shape = {}});

  EXPECT_THAT(std::string(bound.model->TryOut(examples.All()).message()),
              StartsWith("model.torchscript: the model's forward fails on inputs"));
}

class BuiltinPrecisionTest : public PrecisionTest, public testing::WithParamInterface<std::string> {
 protected:
  ExampleSet Set() const { return GetParam() == "bytes-lm" ? Tokens(8, 8) : Images(8, 32); }
};

TEST_P(BuiltinPrecisionTest, LearnsNearlyAsInFloat32AndIsKeptInFloat32) {
  BoundModel exact(Small(GetParam(), Precision::kFloat32));
  BoundModel rounded(Small(GetParam(), Precision::kBfloat16));
  const ExampleSet set = Set();
  ASSERT_TRUE(rounded.model->TryOut(set.All()).ok());
  const auto train = [&set](BoundModel& bound) {
    double loss = 0;
    for (int step = 0; step < 20; ++step) {
      bound.ClearGradients();
      loss = bound.Step(set.All());
      for (std::size_t i = 0; i < bound.parameters.span().size(); ++i) {
        bound.parameters.span()[i] -= 0.01F * bound.gradients.span()[i];
      }
    }
    return loss;
  };
  const double before = rounded.Step(set.All());

  // At equal weights a pass through some 20 layers is off by a rounding each.
  EXPECT_NEAR(before, exact.Step(set.All()), 20 * 2 * kRounding * before);
  const double after = train(rounded);
  EXPECT_LT(after, 0.95 * before);
  EXPECT_NEAR(before - after, before - train(exact), 0.25 * (before - after));

  ASSERT_TRUE(rounded.model->SaveTorchScript(folder_.Path("trained.pt")).ok());
  const torch::jit::Module saved = torch::jit::load(folder_.Path("trained.pt"));
  for (const at::Tensor& parameter : saved.parameters()) {
    EXPECT_EQ(parameter.scalar_type(), at::kFloat);
  }
  for (const at::Tensor& buffer : saved.buffers()) EXPECT_EQ(buffer.scalar_type(), at::kFloat);
}

INSTANTIATE_TEST_SUITE_P(Builtins, BuiltinPrecisionTest,
                         testing::Values("bytes-lm", "cifar-cnn", "resnet18"),
                         [](const testing::TestParamInfo<std::string>& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace tactus::model
