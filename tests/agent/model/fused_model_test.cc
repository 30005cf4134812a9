// Models that are computed together, against each by itself.

#include "agent/model/fused_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "agent/model/fused_ops.h"
#include "tests/agent/model/model_support.h"

namespace tactus::model {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

at::Tensor Floats(std::vector<float> values, std::vector<std::int64_t> shape) {
  return torch::tensor(values).reshape(shape);
}
std::vector<float> ToVector(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

// Section 6h, vector 1.
TEST(FusedPaperTest, LinearLossesGradientsAndSteps) {
  const at::Tensor x = Floats({1, 2, 0, 1}, {1, 2, 2}).expand({2, -1, -1});
  const at::Tensor weight = Floats({1, 0, 0, 1, 2, -1, 1, 1}, {2, 2, 2}).requires_grad_(true);
  const at::Tensor bias = Floats({.5F, -.5F, 0, 1}, {2, 2});

  const at::Tensor out = FusedLinear(x, weight, bias);
  const at::Tensor losses = out.pow(2).flatten(1).mean(1);
  losses.sum().backward();

  EXPECT_THAT(ToVector(out), ElementsAre(1.5, 1.5, .5, .5, 0, 4, -1, 2));
  EXPECT_THAT(ToVector(losses), ElementsAre(1.25, 5.25));
  EXPECT_EQ(losses.sum().item<float>(), 6.5F);
  EXPECT_THAT(ToVector(weight.grad()), ElementsAre(.75, 1.75, .75, 1.75, 0, -.5, 2, 5));
  const at::Tensor rates = Floats({.1F, .01F}, {2, 1, 1});
  const std::vector<float> stepped = {.925F, -.175F, -.075F, .825F, 2, -.995F, .98F, .95F};
  EXPECT_THAT(ToVector(weight.detach() - rates * weight.grad()),
              Pointwise(FloatNear(1e-6F), stepped));
}

// Section 6h, vector 2: x is (1, 2 | 3, 4), two pixels of each of two models.
TEST(FusedPaperTest, ConvolutionByGroupsAndEmbeddingInOneTable) {
  const at::Tensor y = FusedConvolution(Floats({1, 2, 3, 4}, {1, 2, 1, 2}),
                                        Floats({2, -1}, {2, 1, 1, 1, 1}), Floats({0, 10}, {2, 1}));
  EXPECT_THAT(ToVector(y), ElementsAre(2, 4, 7, 6));

  // Rows 1, 4 of the first table and 5, 7 of both: a row's only number is its place in all.
  const at::Tensor table = torch::arange(10, at::kFloat).reshape({2, 5, 1});
  const at::Tensor indices = torch::tensor({1, 4, 0, 2}, at::kLong).reshape({2, 2});
  EXPECT_THAT(ToVector(FusedEmbedding(indices, table)), ElementsAre(1, 4, 5, 7));
}

TEST(FusedOpsTest, ASharedImageIsEachModels) {
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({2, 3, 4, 4});
  const at::Tensor weight = torch::randn({4, 5, 3, 3, 3});
  const at::Tensor bias = torch::randn({4, 5});

  const at::Tensor shared = FusedConvolution(x, weight, bias);
  const at::Tensor apart = FusedConvolution(x.repeat({1, 4, 1, 1}), weight, bias);

  EXPECT_TRUE(at::allclose(shared, apart, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(ToDense(shared, 4)[2],
                           at::conv2d(x, weight[2], bias[2], 1, 1).flatten(1), 1e-4, 1e-5));
}

struct Case {
  std::string name;
  ModelOptions options;
  ExampleSet (*examples)();
};

ExampleSet SixTokens() { return Tokens(6, 16); }
ExampleSet SixImages() { return Images(6, 32); }

class FusedModelTest : public testing::TestWithParam<Case> {
 protected:
  // Models with initial weights by these seeds, each by itself and all in one pass.
  struct Fused {
    explicit Fused(const ModelOptions& options, const std::vector<std::uint64_t>& seeds) {
      for (const std::uint64_t seed : seeds) {
        alone.push_back(std::make_unique<BoundModel>(Seeded(options, seed)));
        parameters.push_back(alone.back()->Weights());
      }
      segments = (*Model::Open(options))->segments();
      model = *FusedModel::Open(options, segments);
    }
    absl::Status Pass(const std::vector<std::size_t>& models,
                      const std::vector<Examples>& examples) {
      std::vector<FusedPart> parts;
      for (std::size_t i = 0; i < models.size(); ++i) {
        parts.push_back({.parameters = parameters[models[i]], .examples = examples[i]});
      }
      auto passed = model->ForwardBackward(parts);
      if (passed.ok()) sums = *std::move(passed);
      return passed.status();
    }
    // In the flat layout, of the pass's i-th part.
    std::vector<float> Gradients(std::size_t i) const {
      std::vector<float> flat(cuda::FlatLength(segments));
      for (std::size_t k = 0; k < segments.size(); ++k) {
        std::copy_n(sums[i].gradients[k], segments[k].length, flat.data() + segments[k].offset);
      }
      return flat;
    }

    std::vector<std::unique_ptr<BoundModel>> alone;
    std::vector<std::vector<float>> parameters;
    cuda::SegmentTable segments;
    std::unique_ptr<FusedModel> model;
    std::vector<FusedSums> sums;
  };

  static ModelOptions Seeded(ModelOptions options, std::uint64_t seed) {
    options.seed = seed;
    return options;
  }
  static float Largest(const std::vector<float>& values) {
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    return largest;
  }
};

// To the published tolerance: 1e-4, of the gradient's largest number.
TEST_P(FusedModelTest, EachIsWhatItIsByItself) {
  const ExampleSet set = GetParam().examples();
  Fused fused(GetParam().options, {3, 4, 5});
  // The first two share their samples; the last one has others.
  const std::vector<Examples> examples = {set.Range(0, 3), set.Range(0, 3), set.Range(3, 3)};

  ASSERT_TRUE(fused.Pass({0, 1, 2}, examples).ok());

  for (std::size_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    const double loss = fused.alone[i]->Step(examples[i]);
    EXPECT_NEAR(fused.sums[i].loss, loss, 1e-5 * loss);
    const std::vector<float> gradients = fused.alone[i]->Gradients();
    EXPECT_THAT(fused.Gradients(i), Pointwise(FloatNear(1e-4F * Largest(gradients)), gradients));
  }
}

// As those of a subset have them.
TEST_P(FusedModelTest, WeightsAreBySampleAndModel) {
  const ExampleSet set = GetParam().examples();
  Fused fused(GetParam().options, {3, 4});
  const std::vector<float> weights = {2, 0, .5F};
  std::vector<Examples> examples(2, set.Range(0, 3));
  examples[1].weights = weights;

  ASSERT_TRUE(fused.Pass({0, 1}, examples).ok());

  for (std::size_t i = 0; i < 2; ++i) {
    SCOPED_TRACE(i);
    const double loss = fused.alone[i]->Step(examples[i]);
    EXPECT_NEAR(fused.sums[i].loss, loss, 1e-5 * loss);
    const std::vector<float> gradients = fused.alone[i]->Gradients();
    EXPECT_THAT(fused.Gradients(i), Pointwise(FloatNear(1e-4F * Largest(gradients)), gradients));
  }
}

TEST_P(FusedModelTest, WhatOneHoldsChangesNoBitOfAnother) {
  const ExampleSet set = GetParam().examples();
  const std::vector<Examples> examples(3, set.Range(0, 2));
  Fused before(GetParam().options, {3, 4, 5});
  Fused after(GetParam().options, {3, 4, 5});
  std::ranges::fill(after.parameters[1], std::numeric_limits<float>::quiet_NaN());

  ASSERT_TRUE(before.Pass({0, 1, 2}, examples).ok());
  ASSERT_TRUE(after.Pass({0, 1, 2}, examples).ok());

  for (const std::size_t i : {0, 2}) {
    EXPECT_EQ(before.Gradients(i), after.Gradients(i));
    EXPECT_EQ(before.sums[i].loss, after.sums[i].loss);
  }
  EXPECT_TRUE(std::isnan(after.sums[1].loss));
}

TEST_P(FusedModelTest, WhoGoesTogetherIsEachPassesOwn) {
  const ExampleSet set = GetParam().examples();
  Fused fused(GetParam().options, {3, 4, 5});

  for (const std::vector<std::size_t>& models : {std::vector<std::size_t>{0, 1, 2}, {0, 2}, {2}}) {
    const std::vector<Examples> examples(models.size(), set.Range(0, 2));
    ASSERT_TRUE(fused.Pass(models, examples).ok());
    BoundModel last(Seeded(GetParam().options, 5));
    const double loss = last.Step(examples.back());
    EXPECT_NEAR(fused.sums.back().loss, loss, 1e-5 * loss);
  }
}

TEST_P(FusedModelTest, PermutedJobsHavePermutedResults) {
  const ExampleSet set = GetParam().examples();
  const std::vector<Examples> examples(2, set.Range(0, 2));
  Fused fused(GetParam().options, {3, 4});
  Fused turned(GetParam().options, {4, 3});

  ASSERT_TRUE(fused.Pass({0, 1}, examples).ok());
  ASSERT_TRUE(turned.Pass({0, 1}, examples).ok());

  for (const std::size_t i : {0, 1}) {
    EXPECT_NEAR(fused.sums[i].loss, turned.sums[1 - i].loss, 1e-5 * fused.sums[i].loss);
    const std::vector<float> there = turned.Gradients(1 - i);
    EXPECT_THAT(fused.Gradients(i), Pointwise(FloatNear(1e-4F * Largest(there)), there));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FusedModelTest,
    testing::Values(
        Case{"BytesLm",
             {.builtin = "bytes-lm", .width = 16, .heads = 2, .layers = 2, .context = 16},
             SixTokens},
        Case{"CifarCnn", {.builtin = "cifar-cnn", .width = 4}, SixImages}),
    [](const auto& info) { return info.param.name; });

// The table that all share has such a row: the next one's.
TEST(FusedModelErrorsTest, AnIndexBehindAModelsOwnReadsNobodyElses) {
  const ModelOptions options = {
      .builtin = "bytes-lm", .width = 16, .heads = 2, .layers = 1, .context = 4};
  BoundModel one(options);
  const auto model = *FusedModel::Open(options, one.model->segments());
  const std::vector<float> parameters = one.Weights();
  const auto message = [&](std::int64_t input, std::int64_t target) {
    std::vector<std::int64_t> inputs(4, 65), targets(4, 66);
    inputs[2] = input;
    targets[1] = target;
    const data::TensorSpec spec{.type = data::ElementType::kInt64, .shape = {4}};
    const Examples examples{.count = 1,
                            .input_specs = {spec},
                            .target_spec = spec,
                            .inputs = std::as_bytes(std::span(inputs)),
                            .targets = std::as_bytes(std::span(targets))};
    const std::vector<FusedPart> parts(2, {.parameters = parameters, .examples = examples});
    return std::string(model->ForwardBackward(parts).status().message());
  };

  EXPECT_EQ(message(255, 255), "");
  EXPECT_THAT(message(256, 0), HasSubstr("the inputs reach 256; the model has tokens 0 to 255"));
  EXPECT_THAT(message(-1, 0), HasSubstr("the inputs go down to -1"));
  EXPECT_THAT(message(0, 256), HasSubstr("the targets reach 256; the model has classes 0 to 255"));
}

TEST(FusedModelErrorsTest, SayWhatCannotBeFused) {
  const auto message = [](const ModelOptions& options) {
    return std::string(FusedModel::Open(options, {}).status().message());
  };

  EXPECT_EQ(WhyNotFused({.builtin = "cifar-cnn"}), "");
  EXPECT_THAT(message({.builtin = "resnet18"}),
              HasSubstr("model.builtin: \"resnet18\" is not fused; allowed are bytes-lm and "));
  EXPECT_THAT(message({.builtin = "cifar-cnn", .precision = Precision::kBfloat16}),
              HasSubstr("model.precision: found bfloat16"));
  EXPECT_THAT(message({.builtin = "bytes-lm", .loss = "mse"}),
              HasSubstr("model.loss: found \"mse\", fused jobs have cross_entropy"));
  EXPECT_THAT(message({.torchscript = "/m.pt"}), HasSubstr("model.torchscript: only built-in"));
}

TEST(FusedModelErrorsTest, ShapesDifferBySizesAndNotBySeeds) {
  const ModelOptions one = {.builtin = "bytes-lm", .width = 16, .seed = 1};
  ModelOptions other = one;
  other.seed = 2;
  EXPECT_EQ(FusedShapeOf(one), FusedShapeOf(other));
  other.layers = 1;
  EXPECT_NE(FusedShapeOf(one), FusedShapeOf(other));
}

}  // namespace
}  // namespace tactus::model
