// The losses: their sums, right answers, and users' own modules.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "agent/model/model.h"
#include "tests/agent/model/model_support.h"
#include "tests/agent/model/torchscript_files.h"

namespace tactus::model {
namespace {

// Outputs are the inputs times a weight of one.
void WriteIdentity(const std::string& path) {
  WriteTorchScript(path, {{.name = "w", .shape = {1}, .fill = 1.0F}},
                   "def forward(self, x):\n    return x * self.w\n");
}

Examples Of(std::span<const float> inputs, std::span<const float> targets,
            std::vector<std::int64_t> shape) {
  const auto per_sample = static_cast<std::uint64_t>(shape.empty() ? 1 : shape[0]);
  return {.count = inputs.size() / per_sample,
          .input_specs = {{data::ElementType::kFloat32, shape}},
          .target_spec = {data::ElementType::kFloat32, shape},
          .inputs = std::as_bytes(inputs),
          .targets = std::as_bytes(targets)};
}

class LossesTest : public testing::Test {
 protected:
  LossesTest() { WriteIdentity(path_); }

  // A module without tensors as a loss.
  BoundModel WithLoss(const std::string& source) {
    WriteTorchScript(folder_.Path("loss.pt"), {}, source);
    return BoundModel({.torchscript = path_, .loss = folder_.Path("loss.pt")});
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.Path("m.pt");
  const std::vector<float> inputs_ = {1, 2, 3, 4, 5, 6};
  const std::vector<float> targets_ = {1, 2, 3, 4, 5, 0};
};

TEST_F(LossesTest, MeanSquaredErrorIsTheMeanOverElementsSummedOverSamples) {
  BoundModel bound({.torchscript = path_, .loss = "mse"});

  EXPECT_DOUBLE_EQ(bound.Step(Of(inputs_, targets_, {2})), 36.0 / 2);
  EXPECT_DOUBLE_EQ(bound.Step(Of(inputs_, targets_, {})), 36.0);
}

TEST_F(LossesTest, MeanSquaredErrorHasNoRightAnswers) {
  BoundModel bound({.torchscript = path_, .loss = "mse"});

  const absl::StatusOr<EvaluationSums> sums = bound.model->Evaluate(Of(inputs_, targets_, {2}));

  ASSERT_TRUE(sums.ok());
  EXPECT_FALSE(sums->has_accuracy);
  EXPECT_EQ(sums->samples, 3U);
  EXPECT_DOUBLE_EQ(sums->loss_sum, 18);
}

TEST_F(LossesTest, CrossEntropyCountsRightAnswers) {
  BoundModel bound({.torchscript = path_});
  const std::vector<std::int64_t> classes = {1, 0, 1};
  Examples examples = Of(inputs_, targets_, {2});
  examples.target_spec = {data::ElementType::kInt64, {}};
  examples.targets = std::as_bytes(std::span(classes));

  const absl::StatusOr<EvaluationSums> sums = bound.model->Evaluate(examples);

  ASSERT_TRUE(sums.ok());
  EXPECT_TRUE(sums->has_accuracy);
  EXPECT_DOUBLE_EQ(sums->correct_sum, 2);
  const double right = std::log(1 + std::exp(-1.0));
  EXPECT_NEAR(sums->loss_sum, 3 * right + 1, 1e-5);
}

TEST_F(LossesTest, CrossEntropyOverPositionsCountsShares) {
  BoundModel bound({.torchscript = path_});
  const std::vector<float> logits = {0, 1, 0, 1, 0, 1, 0, 1};
  const std::vector<std::int64_t> classes = {1, 0, 1, 1};
  const Examples examples{.count = 2,
                          .input_specs = {{data::ElementType::kFloat32, {2, 2}}},
                          .target_spec = {data::ElementType::kInt64, {2}},
                          .inputs = std::as_bytes(std::span(logits)),
                          .targets = std::as_bytes(std::span(classes))};

  const absl::StatusOr<EvaluationSums> sums = bound.model->Evaluate(examples);

  ASSERT_TRUE(sums.ok());
  EXPECT_DOUBLE_EQ(sums->correct_sum, 1.5);
  const double right = std::log(1 + std::exp(-1.0));
  EXPECT_NEAR(sums->loss_sum, (4 * right + 1) / 2, 1e-5);
}

TEST_F(LossesTest, BytesServeAsClasses) {
  BoundModel bound({.torchscript = path_});
  const std::vector<std::uint8_t> classes = {1, 0, 1};
  Examples examples = Of(inputs_, targets_, {2});
  examples.target_spec = {data::ElementType::kUint8, {}};
  examples.targets = std::as_bytes(std::span(classes));

  EXPECT_TRUE(bound.model->TryOut(examples).ok());
  EXPECT_NEAR(bound.Step(examples), 3 * std::log(1 + std::exp(-1.0)) + 1, 1e-5);
}

TEST_F(LossesTest, ModuleThatReturnsTheMeanCountsTimesTheSamples) {
  BoundModel bound = WithLoss("def forward(self, y, t):\n    return (y - t).abs().mean()\n");
  const Examples examples = Of(inputs_, targets_, {2});

  ASSERT_TRUE(bound.model->TryOut(examples).ok());
  EXPECT_DOUBLE_EQ(bound.Step(examples), 3.0);
  // d/dw of 3 * mean |x w - t|: the last element alone differs, with slope 6.
  EXPECT_FLOAT_EQ(bound.gradients.span()[0], 3.0F);
}

TEST_F(LossesTest, ModuleThatReturnsOneNumberASampleIsSummed) {
  BoundModel bound = WithLoss("def forward(self, y, t):\n    return (y - t).abs().sum(1)\n");
  const Examples examples = Of(inputs_, targets_, {2});

  ASSERT_TRUE(bound.model->TryOut(examples).ok());
  EXPECT_DOUBLE_EQ(bound.Step(examples), 6.0);
  EXPECT_FLOAT_EQ(bound.gradients.span()[0], 6.0F);
}

TEST_F(LossesTest, AModuleWithParametersToBeTrainedIsRefused) {
  const std::string loss = folder_.Path("loss.pt");
  const std::string forward =
      "def forward(self, y, t):\n    return (self.w * (y - t)).abs().mean()\n";
  WriteTorchScript(loss, {{.name = "w", .shape = {2}}}, forward);
  const absl::Status status = Model::Open({.torchscript = path_, .loss = loss}).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "model.loss: the parameter w of the module wants a gradient, and a loss is not trained; "
      "allowed: none, or frozen ones (requires_grad_(False))");

  WriteTorchScript(loss, {{.name = "w", .shape = {2}, .needs_gradient = false}}, forward);
  EXPECT_TRUE(Model::Open({.torchscript = path_, .loss = loss}).ok());
}

TEST_F(LossesTest, ModuleThatReturnsAnotherShapeIsRefused) {
  BoundModel bound = WithLoss("def forward(self, y, t):\n    return (y - t).abs()\n");

  const absl::Status status = bound.model->TryOut(Of(inputs_, targets_, {2}));

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "model.loss: the module gives float32 [3, 2]; allowed: one number, the mean over the "
            "samples, or [3], one a sample");
}

TEST_F(LossesTest, ModuleThatFailsIsRefusedWithTheReason) {
  BoundModel bound = WithLoss("def forward(self, y, t):\n    return torch.mm(y, t)\n");

  const absl::Status status = bound.model->TryOut(Of(inputs_, targets_, {2}));

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::StartsWith("model.loss: the module fails on outputs float32 [3, 2] and "
                                  "targets float32 [3, 2]: "));
}

// ---- Weighted samples, and what tells them apart

Examples Classes(std::span<const float> logits, std::span<const std::int64_t> classes,
                 std::vector<std::int64_t> shape) {
  Examples examples = Of(logits, logits, std::move(shape));
  examples.target_spec = {data::ElementType::kInt64, {}};
  examples.targets = std::as_bytes(classes);
  return examples;
}

// Section 8h, vector 2, of the specification of subsets.
TEST_F(LossesTest, ProxiesOfCrossEntropyAreSoftmaxLessTarget) {
  BoundModel bound({.torchscript = path_});
  const std::vector<float> logits = {2, 0, 0, 1, 1, 0};
  const std::vector<std::int64_t> classes = {0, 0};

  const absl::StatusOr<GradientProxies> proxies =
      bound.model->Proxies(Classes(logits, classes, {3}));

  ASSERT_TRUE(proxies.ok()) << proxies.status();
  EXPECT_EQ(proxies->width, 3U);
  EXPECT_EQ(proxies->class_count, 3U);
  EXPECT_THAT(proxies->classes, testing::ElementsAre(0, 0));
  const std::vector<float> expected = {-.213014F, .106507F, .106507F,
                                       -.577681F, .422319F, .155362F};
  EXPECT_THAT(proxies->values, testing::Pointwise(testing::FloatNear(1e-6F), expected));
}

TEST_F(LossesTest, ProxiesOfOtherLossesAreTheirGradientsInOneClass) {
  BoundModel bound({.torchscript = path_, .loss = "mse"});

  const absl::StatusOr<GradientProxies> proxies = bound.model->Proxies(Of(inputs_, targets_, {2}));

  ASSERT_TRUE(proxies.ok()) << proxies.status();
  EXPECT_EQ(proxies->class_count, 1U);
  EXPECT_THAT(proxies->values, testing::ElementsAre(0, 0, 0, 0, 0, 6));
}

TEST_F(LossesTest, ProxiesChangeNothing) {
  BoundModel bound({.torchscript = path_, .loss = "mse"});
  const double before = bound.Step(Of(inputs_, targets_, {2}));
  const std::vector<float> gradients = bound.Gradients();

  ASSERT_TRUE(bound.model->Proxies(Of(inputs_, targets_, {2})).ok());

  EXPECT_EQ(bound.Gradients(), gradients);
  bound.ClearGradients();
  EXPECT_EQ(bound.Step(Of(inputs_, targets_, {2})), before);
  EXPECT_EQ(bound.Gradients(), gradients);
}

// The sum of weight times loss, and its gradient.
TEST_F(LossesTest, WeightsMultiplyLossesAndGradients) {
  const std::string per_sample =
      "def forward(self, output, target):\n"
      "    return torch.mean(torch.pow(output - target, 2), [1])\n";
  BoundModel mse({.torchscript = path_, .loss = "mse"});
  BoundModel module = WithLoss(per_sample);
  const std::vector<float> weights = {0.5F, 2, 0.25F};
  Examples examples = Of(inputs_, targets_, {2});
  const std::vector<float> others = {0, 0, 0, 0, 0, 0};
  examples.targets = std::as_bytes(std::span(others));
  examples.weights = weights;

  // Losses are (1 + 4) / 2, (9 + 16) / 2, (25 + 36) / 2; gradients by w twice that.
  const double expected = 0.5 * 2.5 + 2 * 12.5 + 0.25 * 30.5;
  EXPECT_DOUBLE_EQ(mse.Step(examples), expected);
  EXPECT_FLOAT_EQ(mse.Gradients()[0], static_cast<float>(2 * expected));
  EXPECT_DOUBLE_EQ(module.Step(examples), expected);
  EXPECT_FLOAT_EQ(module.Gradients()[0], static_cast<float>(2 * expected));
}

TEST_F(LossesTest, CrossEntropyIsWeightedToo) {
  BoundModel bound({.torchscript = path_});
  const std::vector<std::int64_t> classes = {1, 0, 1};
  Examples examples = Classes(inputs_, classes, {2});
  const std::vector<float> weights = {2, 0.5F, 0.5F};
  examples.weights = weights;

  const double right = std::log(1 + std::exp(-1.0));
  EXPECT_NEAR(bound.Step(examples), 2 * right + 0.5 * (right + 1) + 0.5 * right, 1e-5);
}

TEST_F(LossesTest, AModuleThatGivesAMeanCannotBeWeighted) {
  BoundModel bound = WithLoss(
      "def forward(self, output, target):\n"
      "    return torch.mean(torch.pow(output - target, 2))\n");
  Examples examples = Of(inputs_, targets_, {2});
  const std::vector<float> weights = {1, 1, 1};
  examples.weights = weights;

  const absl::Status status = bound.model->TryOut(examples);

  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::StartsWith("model.loss: the module gives one number"),
                             testing::HasSubstr("[3], one a sample")));
}

}  // namespace
}  // namespace tactus::model
