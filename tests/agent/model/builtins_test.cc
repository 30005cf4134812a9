// The built-in models: sizes, names, initial weights, buffers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "agent/model/model.h"
#include "tests/agent/model/model_support.h"

namespace tactus::model {
namespace {

std::size_t CountParameters(const Model& model) {
  std::size_t count = 0;
  for (const cuda::Segment& segment : model.segments()) count += segment.length;
  return count;
}

std::vector<float> WeightsOf(const std::string& builtin, std::uint64_t seed) {
  ModelOptions options{.builtin = builtin, .seed = seed};
  options.width = 8;
  return BoundModel(options).Weights();
}

BoundModel SmallResnet() {
  ModelOptions options{.builtin = "resnet18"};
  options.width = 4;
  return BoundModel(options);
}

TEST(BuiltinsTest, HaveTheKnownNumbersOfParameters) {
  EXPECT_EQ(CountParameters(*BoundModel({.builtin = "bytes-lm"}).model), 867'328U);
  EXPECT_EQ(CountParameters(*BoundModel({.builtin = "cifar-cnn"}).model), 620'362U);
  EXPECT_EQ(CountParameters(*BoundModel({.builtin = "resnet18"}).model), 11'173'962U);
}

TEST(BuiltinsTest, NameTheirParametersAsPyTorchDoes) {
  const BoundModel bytes_lm({.builtin = "bytes-lm"});
  const BoundModel resnet = SmallResnet();

  EXPECT_EQ(bytes_lm.model->segments().back().name, "token.weight");
  EXPECT_EQ(bytes_lm.model->segments().front().name, "head.bias");
  const auto named = [](const BoundModel& bound, const std::string& name) {
    return std::ranges::any_of(bound.model->segments(), [&name](const cuda::Segment& segment) {
      return segment.name == name;
    });
  };
  EXPECT_TRUE(named(bytes_lm, "blocks.3.qkv.weight"));
  EXPECT_TRUE(named(resnet, "layer2.0.downsample.1.bias"));
}

TEST(BuiltinsTest, TakeSizes) {
  ModelOptions lm{.builtin = "bytes-lm"};
  lm.width = 24;
  lm.heads = 3;
  lm.layers = 1;
  lm.context = 16;
  BoundModel bytes_lm(lm);
  EXPECT_EQ(bytes_lm.model->context(), 16U);
  EXPECT_TRUE(bytes_lm.model->TryOut(Tokens(2, 16).All()).ok());
  EXPECT_FALSE(bytes_lm.model->TryOut(Tokens(2, 17).All()).ok());

  ModelOptions cnn{.builtin = "cifar-cnn"};
  cnn.width = 8;
  cnn.classes = 100;
  cnn.channels = 1;
  BoundModel cifar_cnn(cnn);
  const ExampleSet grey(2, {.shape = {1, 32, 32}}, {data::ElementType::kInt64, {}, 100});
  EXPECT_EQ(cifar_cnn.model->context(), std::nullopt);
  EXPECT_TRUE(cifar_cnn.model->TryOut(grey.All()).ok());
}

TEST(BuiltinsTest, GetTheSameBytesFromTheSameSeed) {
  for (const char* builtin : {"bytes-lm", "cifar-cnn", "resnet18"}) {
    EXPECT_EQ(WeightsOf(builtin, 7), WeightsOf(builtin, 7)) << builtin;
    EXPECT_NE(WeightsOf(builtin, 7), WeightsOf(builtin, 8)) << builtin;
  }
}

TEST(BuiltinsTest, StartWithTheDistributionsOfPyTorch) {
  const BoundModel bound({.builtin = "cifar-cnn"});

  for (const cuda::Segment& segment : bound.model->segments()) {
    if (segment.name != "conv2.weight") continue;
    const double limit = 1 / std::sqrt(32.0 * 9);
    double square = 0;
    for (const float w : bound.parameters.span().subspan(segment.offset, segment.length)) {
      ASSERT_LE(std::abs(w), limit);
      square += static_cast<double>(w) * w;
    }
    // The variance of U(-a, a) is a^2 / 3; 18,432 draws put the estimate within 4 % (six
    // deviations).
    const double variance = square / static_cast<double>(segment.length);
    EXPECT_NEAR(variance, limit * limit / 3, 0.04 * limit * limit / 3);
    return;
  }
  FAIL() << "no conv2.weight";
}

TEST(BuiltinsTest, BytesLmStartsNearTheLossOfGuessing) {
  BoundModel bound({.builtin = "bytes-lm"});

  EXPECT_NEAR(bound.EvaluateLoss(Tokens(2, 64).All()) / 2, std::log(256.0), 0.2);
}

TEST(BuiltinsTest, BytesLmSeesNoLaterByte) {
  ModelOptions options{.builtin = "bytes-lm"};
  options.width = 16;
  options.context = 4;
  BoundModel bound(options);
  std::vector<std::int64_t> tokens = {10, 20, 30, 40};
  std::vector<std::int64_t> targets = {20, 20, 20, 20};
  Examples examples = {.count = 1,
                       .input_specs = {{data::ElementType::kInt64, {4}}},
                       .target_spec = {data::ElementType::kInt64, {4}},
                       .inputs = std::as_bytes(std::span(tokens)),
                       .targets = std::as_bytes(std::span(targets))};
  // The loss of the first three bytes alone, with the last one cut off.
  examples.input_specs.front().shape = {3};
  examples.target_spec.shape = {3};
  examples.inputs = examples.inputs.first(24);
  examples.targets = examples.targets.first(24);
  const double alone = 3 * bound.EvaluateLoss(examples);

  examples.input_specs.front().shape = {4};
  examples.target_spec.shape = {4};
  examples.inputs = std::as_bytes(std::span(tokens));
  examples.targets = std::as_bytes(std::span(targets));
  std::vector<double> together;
  for (const std::int64_t last : {40, 41, 200}) {
    tokens[3] = last;
    bound.ClearGradients();
    bound.Step(examples);
    together.push_back(4 * bound.EvaluateLoss(examples));
  }

  // Only the last position's own loss, at least 0 and near ln 256, may differ.
  for (const double loss : together) {
    EXPECT_GT(loss - alone, 4.5);
    EXPECT_LT(loss - alone, 6.5);
  }
}

TEST(BuffersTest, ChangeInTrainingAndNotInEvaluation) {
  BoundModel bound = SmallResnet();
  const ExampleSet examples = Images(4, 8);
  const std::vector<float> start = bound.model->ReadBuffers();

  bound.EvaluateLoss(examples.All());
  EXPECT_EQ(bound.model->ReadBuffers(), start);

  bound.Step(examples.All());
  EXPECT_NE(bound.model->ReadBuffers(), start);
}

TEST(BuffersTest, AreWhatEvaluationUses) {
  BoundModel bound = SmallResnet();
  const ExampleSet examples = Images(4, 8);
  const std::vector<float> start = bound.model->ReadBuffers();
  const double before = bound.EvaluateLoss(examples.All());
  bound.Step(examples.All());
  const double after = bound.EvaluateLoss(examples.All());

  bound.model->WriteBuffers(start);

  EXPECT_NE(after, before);
  EXPECT_EQ(bound.EvaluateLoss(examples.All()), before);
  EXPECT_EQ(bound.model->ReadBuffers(), start);
}

TEST(BuffersTest, OfModelsWithoutStatisticsAreEmpty) {
  EXPECT_TRUE(BoundModel({.builtin = "bytes-lm"}).model->ReadBuffers().empty());
}

}  // namespace
}  // namespace tactus::model
