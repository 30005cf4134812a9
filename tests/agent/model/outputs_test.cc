// Models with several inputs and several outputs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "agent/model/model.h"
#include "tests/agent/model/model_support.h"
#include "tests/agent/model/torchscript_files.h"

namespace tactus::model {
namespace {

using testing::HasSubstr;

constexpr char kMseOfFirst[] =
    "def forward(self, y: Tuple[Tensor, Tensor], t):\n    return (y[0] - t).square().mean()\n";

// Two numbers a sample, as inputs and targets.
class OutputsTest : public testing::Test {
 protected:
  // A module with one weight of one.
  std::string Model(const std::string& source) {
    WriteTorchScript(folder_.Path("m.pt"), {{.name = "w", .shape = {1}, .fill = 1.0F}}, source);
    return folder_.Path("m.pt");
  }
  std::string Loss(const std::string& source) {
    WriteTorchScript(folder_.Path("loss.pt"), {}, source);
    return folder_.Path("loss.pt");
  }

  Examples Pairs() const {
    return {.count = 2,
            .input_specs = {{data::ElementType::kFloat32, {1}}},
            .target_spec = {data::ElementType::kFloat32, {1}},
            .inputs = std::as_bytes(std::span(inputs_)),
            .targets = std::as_bytes(std::span(targets_))};
  }

  std::string TryOut(const ModelOptions& options) {
    BoundModel bound(options);
    return std::string(bound.model->TryOut(Pairs()).message());
  }

  // The summed loss of a step, and its gradient: sum of (x - t)^2 is 1 + 4, of 2 (x - t) x 2 + 8.
  static void ExpectSquares(BoundModel bound, const Examples& examples) {
    ASSERT_TRUE(bound.model->TryOut(examples).ok()) << bound.model->TryOut(examples);
    EXPECT_DOUBLE_EQ(bound.Step(examples), 5);
    EXPECT_FLOAT_EQ(bound.Gradients()[0], 10);
    EXPECT_DOUBLE_EQ(bound.EvaluateLoss(examples), 5);
  }

  const ScratchFolder folder_;
  const std::vector<float> inputs_ = {1, 2};
  const std::vector<float> targets_ = {0, 0};
};

TEST_F(OutputsTest, AModuleOfALossTakesAllThatTheModelGives) {
  const std::string model = Model("def forward(self, x):\n    return x * self.w, x\n");

  ExpectSquares(BoundModel({.torchscript = model, .loss = Loss(kMseOfFirst)}), Pairs());
}

TEST_F(OutputsTest, OneOfATupleIsNamedByItsPlace) {
  const std::string model = Model("def forward(self, x):\n    return x + 1, x * self.w\n");

  ExpectSquares(BoundModel({.torchscript = model, .loss = "mse", .output = "1"}), Pairs());
}

TEST_F(OutputsTest, OneOfADictIsNamedByItsKey) {
  const std::string model =
      Model("def forward(self, x):\n    return {'hidden': x + 1, 'predicted': x * self.w}\n");

  ExpectSquares(BoundModel({.torchscript = model, .loss = "mse", .output = "predicted"}), Pairs());
}

TEST_F(OutputsTest, OneOfAListIsNamedByItsPlaceAndGivenToAModule) {
  const std::string model = Model("def forward(self, x):\n    return [x * self.w, x]\n");
  const std::string loss = Loss("def forward(self, y, t):\n    return (y - t).square().mean()\n");

  ExpectSquares(BoundModel({.torchscript = model, .loss = loss, .output = "0"}), Pairs());
}

TEST_F(OutputsTest, Bfloat16ComesBackAsFloat32FromWithinATuple) {
  const std::string model = Model(
      "def forward(self, x):\n    y = torch.matmul(x, self.w.unsqueeze(0))\n    return y, x\n");
  const std::string loss = Loss(
      "def forward(self, y: Tuple[Tensor, Tensor], t):\n"
      "    assert y[0].element_size() == 4\n"
      "    return (y[0] - t).square().mean()\n");

  ExpectSquares(BoundModel({.torchscript = model, .loss = loss, .precision = Precision::kBfloat16}),
                Pairs());
}

TEST_F(OutputsTest, ALossOfOneTensorSaysWhatItFoundInstead) {
  const std::string tuple = Model("def forward(self, x):\n    return x * self.w, x\n");
  EXPECT_THAT(TryOut({.torchscript = tuple, .loss = "mse"}),
              HasSubstr("model.torchscript: forward returns a tuple of 2; allowed: a tensor, or "
                        "model.output"));
  EXPECT_THAT(TryOut({.torchscript = tuple, .loss = "mse", .output = "2"}),
              HasSubstr("model.output: \"2\" is not among what forward returns, a tuple of 2"));
  EXPECT_THAT(TryOut({.torchscript = tuple, .loss = "mse", .output = "logits"}),
              HasSubstr("model.output: \"logits\" is not among"));

  const std::string dict = Model("def forward(self, x):\n    return {'y': [x * self.w]}\n");
  EXPECT_THAT(TryOut({.torchscript = dict, .loss = "mse", .output = "z"}),
              HasSubstr("what forward returns, a dict of y"));
  EXPECT_THAT(TryOut({.torchscript = dict, .loss = "mse", .output = "y"}),
              HasSubstr("model.output: forward returns a list of 1"));
}

TEST_F(OutputsTest, SeveralInputsAreTheArgumentsInTheirOrder) {
  const std::string model = Model(
      "def forward(self, x, scale, mask):\n"
      "    return torch.where(mask, x * self.w * scale, x * self.w)\n");
  Examples examples = Pairs();
  examples.input_specs = {{data::ElementType::kFloat32, {1}},
                          {data::ElementType::kInt64, {}},
                          {data::ElementType::kBool, {1}}};
  const data::TensorPlaces places = data::PlacesOf(examples.input_specs, 2);
  std::vector<std::byte> bytes(places.bytes);
  const std::vector<float> x = {0.25F, 2};
  const std::vector<std::int64_t> scale = {4, 100};
  const std::vector<std::uint8_t> mask = {1, 0};
  std::memcpy(bytes.data() + places.offsets[0], x.data(), 8);
  std::memcpy(bytes.data() + places.offsets[1], scale.data(), 16);
  std::memcpy(bytes.data() + places.offsets[2], mask.data(), 2);
  examples.inputs = bytes;

  // With the scale as [n], the outputs would be [n, n].
  examples.input_specs[1].shape = {1};

  ExpectSquares(BoundModel({.torchscript = model, .loss = "mse"}), examples);
}

TEST_F(OutputsTest, WhatFailsNamesAllInputs) {
  const std::string model = Model("def forward(self, x, y):\n    return x * self.w\n");
  BoundModel bound({.torchscript = model, .loss = "mse"});

  const std::string message(bound.model->TryOut(Pairs()).message());

  EXPECT_THAT(message,
              HasSubstr("model.torchscript: the model's forward fails on inputs float32 [2, 1]: "));
}

}  // namespace
}  // namespace tactus::model
