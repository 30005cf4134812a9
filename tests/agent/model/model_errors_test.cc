// What Open and TryOut refuse, and in which words.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "agent/model/model.h"
#include "tests/agent/model/model_support.h"
#include "tests/agent/model/torchscript_files.h"

namespace tactus::model {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kLinear[] = "def forward(self, x):\n    return torch.linear(x, self.w)\n";

absl::Status OpenError(const ModelOptions& options) { return Model::Open(options).status(); }

std::string Message(const absl::Status& status) { return std::string(status.message()); }

void ExpectInvalid(const absl::Status& status, const std::string& message) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), message);
}

// A model file made of `tensors` and `source`, opened.
class ModelErrorsTest : public testing::Test {
 protected:
  ModelOptions File(const std::vector<ScriptTensor>& tensors, const std::string& source) {
    WriteTorchScript(path_, tensors, source);
    return {.torchscript = path_};
  }

  ModelOptions Classifier(std::int64_t classes) {
    WriteClassifier(path_, {.classes = classes});
    return {.torchscript = path_};
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.Path("m.pt");
};

TEST_F(ModelErrorsTest, NeitherOrBothSourcesAreRefused) {
  ExpectInvalid(OpenError({}), "model: give one of builtin and torchscript");
  ExpectInvalid(OpenError({.builtin = "bytes-lm", .torchscript = "m.pt"}),
                "model: give one of builtin and torchscript");
}

TEST_F(ModelErrorsTest, DevicesThatAreNotThereAreRefused) {
  ModelOptions options = Classifier(2);
  options.device = "cuda:99";
  const absl::Status status = OpenError(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(status), StartsWith("workers.device: cuda:99 is "));

  for (const char* device :
       {"", "cuda", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "tpu:0"}) {
    options.device = device;
    ExpectInvalid(OpenError(options), std::string("workers.device: \"") + device +
                                          "\" is unknown; allowed: cpu:N, cuda:N");
  }
  options.device = "cpu:7";
  EXPECT_TRUE(OpenError(options).ok());
}

TEST_F(ModelErrorsTest, UnknownBuiltinIsRefusedWithThoseThatExist) {
  ExpectInvalid(OpenError({.builtin = "resnet19"}),
                "model.builtin: \"resnet19\" is unknown; allowed: bytes-lm, cifar-cnn, resnet18");
}

TEST_F(ModelErrorsTest, SizesThatDoNotBelongAreRefused) {
  ExpectInvalid(OpenError({.builtin = "cifar-cnn", .heads = 2}),
                "model.options.heads: cifar-cnn has no such size");
  ExpectInvalid(OpenError({.builtin = "bytes-lm", .classes = 2}),
                "model.options.classes: bytes-lm has no such size");
  ExpectInvalid(OpenError({.torchscript = "m.pt", .width = 2}),
                "model.options.width: only a built-in model takes sizes");
}

TEST_F(ModelErrorsTest, SizesOutOfRangeAreRefusedWithTheRange) {
  ExpectInvalid(OpenError({.builtin = "bytes-lm", .layers = 0}),
                "model.options.layers: 0 is out of range; allowed: 1 to 256");
  ExpectInvalid(OpenError({.builtin = "resnet18", .classes = 1}),
                "model.options.classes: 1 is out of range; allowed: 2 to 1000000");
  ExpectInvalid(OpenError({.builtin = "bytes-lm", .width = 130, .heads = 4}),
                "model.options.width: 130 is not a multiple of heads (4)");
}

TEST_F(ModelErrorsTest, MissingFileIsNotFound) {
  const absl::Status status = OpenError({.torchscript = "/nowhere/m.pt"});

  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(status), "model.torchscript: /nowhere/m.pt: no such file");
}

TEST_F(ModelErrorsTest, FileThatIsNotTorchScriptIsRefusedInOneLine) {
  const std::string text = "not a model";
  WriteBytes(path_, std::as_bytes(std::span(text)));

  const absl::Status status = OpenError({.torchscript = path_});

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status),
              StartsWith("model.torchscript: " + path_ + " does not load as TorchScript: "));
  EXPECT_THAT(Message(status), EndsWith("; allowed is what torch.jit.save writes, not torch.save"));
  EXPECT_EQ(Message(status).find('\n'), std::string::npos);
  ExpectInvalid(OpenError({.torchscript = folder_.Path("")}),
                "model.torchscript: " + folder_.Path("") + " is not a regular file");
}

TEST_F(ModelErrorsTest, TruncatedFileIsRefused) {
  WriteClassifier(path_, {});
  const std::string whole = ReadText(path_);
  WriteBytes(path_, std::as_bytes(std::span(whole)).first(whole.size() / 2));

  EXPECT_THAT(Message(OpenError({.torchscript = path_})), HasSubstr("does not load"));
}

TEST_F(ModelErrorsTest, ModelWithNothingToTrainIsRefused) {
  ExpectInvalid(OpenError(File({{.name = "w", .shape = {2, 3}, .needs_gradient = false}}, kLinear)),
                "model.torchscript: the model has no parameter that needs a gradient, as after "
                "torch.jit.freeze");
}

TEST_F(ModelErrorsTest, ParametersThatCannotBeViewsAreRefused) {
  ExpectInvalid(OpenError(File({{.name = "w", .shape = {2, 3}, .float64 = true}}, kLinear)),
                "model.torchscript: parameter w is Double [2, 3]; allowed: float32");
  ExpectInvalid(OpenError(File({{.name = "w", .shape = {3, 2}, .transposed = true}}, kLinear)),
                "model.torchscript: parameter w [2, 3] is not contiguous");
}

TEST_F(ModelErrorsTest, FileWithoutForwardIsRefused) {
  ExpectInvalid(OpenError(File({{.name = "w", .shape = {2, 3}}},
                               "def other(self, x):\n    return torch.linear(x, self.w)\n")),
                "model.torchscript: " + path_ + " has no forward");
}

TEST_F(ModelErrorsTest, ParametersThatSharePartOfTheirMemoryAreRefused) {
  ExpectInvalid(
      OpenError(File({{.name = "w", .shape = {4, 3}}, {.name = "part", .first_rows_of = "w"}},
                     "def forward(self, x):\n    return torch.linear(x, self.w)\n")),
      "model.torchscript: parameters w and part share part of their memory");
}

TEST_F(ModelErrorsTest, UnknownLossIsRefused) {
  ModelOptions options = Classifier(2);
  options.loss = "crossentropy";
  ExpectInvalid(OpenError(options),
                "model.loss: \"crossentropy\" is unknown; allowed: cross_entropy, mse, or the path "
                "of a TorchScript module");

  options.loss = "/nowhere/loss.pt";
  EXPECT_EQ(OpenError(options).code(), absl::StatusCode::kNotFound);
}

TEST_F(ModelErrorsTest, LogitsOfAnotherShapeAreRefused) {
  BoundModel bound(File({{.name = "w", .shape = {10, 3, 1, 1}}},
                        "def forward(self, x):\n    return torch.conv2d(x, self.w)\n"));

  ExpectInvalid(bound.model->TryOut(Images(2, 4).All()),
                "model.loss: cross_entropy needs logits [n, classes], the model gives "
                "[2, 10, 4, 4]");
}

TEST_F(ModelErrorsTest, LogitsOfOtherPositionsAreRefused) {
  BoundModel bound(File({{.name = "w", .shape = {5, 3}}}, kLinear));
  const ExampleSet examples(2, {.shape = {7, 3}}, {data::ElementType::kInt64, {6}, 5});

  ExpectInvalid(bound.model->TryOut(examples.All()),
                "model.loss: cross_entropy needs logits [2, 6, classes], the model gives "
                "[2, 7, 5]");
}

TEST_F(ModelErrorsTest, TargetsThatAreNoClassesAreRefused) {
  BoundModel bound(Classifier(5));
  std::vector<std::int64_t> classes = {3, 9};
  const ExampleSet inputs = Vectors(2, 3, 2);
  Examples examples = inputs.All();
  examples.targets = std::as_bytes(std::span(classes));

  ExpectInvalid(bound.model->TryOut(examples),
                "data: the targets reach 9 but the model has 5 classes");
  classes[1] = -1;
  ExpectInvalid(bound.model->TryOut(examples), "data: the targets go down to -1; allowed: 0 to 4");
  const ExampleSet floats(2, {.shape = {3}}, {.shape = {}});
  ExpectInvalid(bound.model->TryOut(floats.All()),
                "data: the targets are float32 [2]; cross_entropy needs int64 class indices");
}

TEST_F(ModelErrorsTest, TargetsThatDoNotFitMeanSquaredErrorAreRefused) {
  ModelOptions options = Classifier(2);
  options.loss = "mse";
  BoundModel bound(options);

  ExpectInvalid(bound.model->TryOut(Vectors(4, 3, 2).All()),
                "data: the targets are int64 [4]; mse needs float32");
  const ExampleSet examples(4, {.shape = {3}}, {.shape = {}});
  ExpectInvalid(bound.model->TryOut(examples.All()),
                "model.loss: mse needs an output of the targets' shape [4], the model gives "
                "[4, 2]");
}

TEST_F(ModelErrorsTest, InputsThatTheModelDoesNotTakeAreRefusedWithTheReason) {
  BoundModel bound(Classifier(2));

  const absl::Status status = bound.model->TryOut(Images(2, 32).All());

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      Message(status),
      StartsWith("model.torchscript: the model's forward fails on inputs float32 [2, 3, 32, "
                 "32]: "));
  EXPECT_THAT(Message(status), HasSubstr("shapes cannot be multiplied"));
  EXPECT_EQ(Message(status).find('\n'), std::string::npos);
}

TEST_F(ModelErrorsTest, OutputThatIsNoTensorIsRefused) {
  BoundModel bound(File({{.name = "w", .shape = {2, 3}}},
                        "def forward(self, x):\n    return torch.linear(x, self.w), 1\n"));

  ExpectInvalid(bound.model->TryOut(Vectors(2, 3, 2).All()),
                "model.torchscript: forward returns a tuple of 2; allowed: a tensor, or "
                "model.output says which of them the loss takes");
}

TEST_F(ModelErrorsTest, LossThatDependsOnNoParameterIsRefused) {
  BoundModel bound(
      File({{.name = "w", .shape = {2, 3}}}, "def forward(self, x):\n    return x * 2.0\n"));

  ExpectInvalid(bound.model->TryOut(Vectors(2, 3, 2).All()),
                "model.torchscript: the loss depends on no parameter");
}

TEST_F(ModelErrorsTest, BatchThatFailsInTrainingIsInternal) {
  BoundModel bound(Classifier(2));
  const ExampleSet examples = Images(2, 32);

  const absl::Status status = bound.Pass(examples.All());

  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(status), HasSubstr("shapes cannot be multiplied"));
}

TEST_F(ModelErrorsTest, TryOutChangesNothing) {
  ModelOptions options{.builtin = "resnet18"};
  options.width = 4;
  BoundModel bound(options);
  const ExampleSet examples = Images(3, 8);
  const std::vector<float> weights = bound.Weights();
  const std::vector<float> buffers = bound.model->ReadBuffers();

  ASSERT_TRUE(bound.model->TryOut(examples.All()).ok());

  EXPECT_THAT(bound.Gradients(), ::testing::Each(0.0f));
  EXPECT_EQ(bound.Weights(), weights);
  EXPECT_EQ(bound.model->ReadBuffers(), buffers);
}

TEST_F(ModelErrorsTest, TryOutDrawsNoRandomNumbers) {
  const std::vector<ScriptTensor> weights = {{.name = "w", .shape = {2, 3}}};
  const std::string source =
      "def forward(self, x):\n"
      "    return torch.linear(torch.dropout(x, 0.5, self.training), self.w)\n";
  const ExampleSet examples = Vectors(8, 3, 2);

  BoundModel plain(File(weights, source));
  const double expected = plain.Step(examples.All());
  BoundModel tried(File(weights, source));
  ASSERT_TRUE(tried.model->TryOut(examples.All()).ok());

  EXPECT_EQ(tried.Step(examples.All()), expected);
}

}  // namespace
}  // namespace tactus::model
