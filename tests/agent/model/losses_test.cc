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

}  // namespace
}  // namespace tactus::model
