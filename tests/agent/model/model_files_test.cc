// What is saved: read again by this library, and by Python's torch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "agent/model/model.h"
#include "agent/model/torch_module.h"
#include "agent/tensors/atomic_file.h"
#include "agent/tensors/safetensors.h"
#include "tests/agent/model/model_support.h"
#include "tests/agent/model/torchscript_files.h"

namespace tactus::model {
namespace {

constexpr char kPython[] = "/usr/bin/python3";
constexpr int kNoTorch = 77;  // the script's exit status where Python has no torch

ModelOptions Small(const std::string& builtin) {
  ModelOptions options{.builtin = builtin};
  options.width = 8;
  if (builtin == "bytes-lm") {
    options.heads = 2;
    options.layers = 2;
    options.context = 16;
  }
  return options;
}

ExampleSet ExamplesFor(const std::string& builtin) {
  return builtin == "bytes-lm" ? Tokens(4, 16) : Images(4, 32);
}

// The exit status of a shell command.
int ExitStatus(const std::string& command) { return WEXITSTATUS(std::system(command.c_str())); }

class SavedModelTest : public testing::TestWithParam<std::string> {
 protected:
  const ScratchFolder folder_;
  const std::string model_path_ = folder_.Path("model.pt");
  const std::string weights_path_ = folder_.Path("model.safetensors");
};

TEST_P(SavedModelTest, GivesTheSameAfterReloadingAndTheLiveOneGoesOn) {
  BoundModel bound(Small(GetParam()));
  const ExampleSet examples = ExamplesFor(GetParam());
  bound.Step(examples.All());
  for (std::size_t i = 0; i < bound.parameters.span().size(); ++i) {
    bound.parameters.span()[i] -= 0.001F * bound.gradients.span()[i];
  }

  ASSERT_TRUE(bound.model->SaveTorchScript(model_path_).ok());
  BoundModel again({.torchscript = model_path_});

  EXPECT_EQ(again.EvaluateLoss(examples.All()), bound.EvaluateLoss(examples.All()));
  EXPECT_EQ(again.Weights(), bound.Weights());
  EXPECT_EQ(again.model->ReadBuffers(), bound.model->ReadBuffers());
  bound.ClearGradients();
  EXPECT_EQ(again.Step(examples.All()), bound.Step(examples.All()));
  EXPECT_EQ(again.Gradients(), bound.Gradients());
}

TEST_P(SavedModelTest, HasTheSameBytesEachTime) {
  BoundModel bound(Small(GetParam()));

  ASSERT_TRUE(bound.model->SaveTorchScript(model_path_).ok());
  ASSERT_TRUE(bound.model->SaveTorchScript(folder_.Path("other.pt")).ok());

  EXPECT_EQ(ReadText(model_path_), ReadText(folder_.Path("other.pt")));
}

TEST_P(SavedModelTest, ItsWeightsAndBuffersAreTakenByAnotherOfTheSameShapes) {
  BoundModel bound(Small(GetParam()));
  const ExampleSet examples = ExamplesFor(GetParam());
  bound.Step(examples.All());  // moves the running statistics
  ASSERT_TRUE(bound.model->SaveSafetensors(weights_path_).ok());
  ModelOptions other = Small(GetParam());
  other.seed = 99;
  BoundModel taker(other);
  ASSERT_NE(taker.Weights(), bound.Weights());

  const absl::Status status = taker.model->LoadSafetensors(weights_path_);

  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(taker.Weights(), bound.Weights());
  EXPECT_EQ(taker.model->ReadBuffers(), bound.model->ReadBuffers());
  EXPECT_EQ(taker.EvaluateLoss(examples.All()), bound.EvaluateLoss(examples.All()));
}

TEST_P(SavedModelTest, WeightsOfOtherShapesAreRefusedByTheirNames) {
  BoundModel bound(Small(GetParam()));
  ASSERT_TRUE(bound.model->SaveSafetensors(weights_path_).ok());
  ModelOptions wider = Small(GetParam());
  wider.width = 16;
  BoundModel taker(wider);
  const std::vector<float> before = taker.Weights();

  const absl::Status status = taker.model->LoadSafetensors(weights_path_);

  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              testing::ContainsRegex("tensor '[a-z0-9._]+' is F32.*, this job's is F32"));
  EXPECT_EQ(taker.Weights(), before);
}

// The script checks the files against each other and against a plain PyTorch twin of the
// architecture, and prints the loss.
TEST_P(SavedModelTest, IsReadByPythonWithTheSameLoss) {
  BoundModel bound(Small(GetParam()));
  const ExampleSet set = ExamplesFor(GetParam());
  const Examples examples = set.All();
  bound.Step(examples);
  ASSERT_TRUE(bound.model->SaveTorchScript(model_path_).ok());
  ASSERT_TRUE(bound.model->SaveSafetensors(weights_path_).ok());
  WriteBytes(folder_.Path("inputs"), examples.inputs);
  WriteBytes(folder_.Path("targets"), examples.targets);

  const std::string script =
      (std::filesystem::path(__FILE__).parent_path() / "check_saved_model.py").string();
  const std::string result = folder_.Path("loss");
  const int status = ExitStatus(std::string(kPython) + " " + script + " " + GetParam() + " " +
                                folder_.Path("") + " > " + result);
  if (status == kNoTorch) GTEST_SKIP() << "Python has no torch (apt-get install python3-torch)";
  ASSERT_EQ(status, 0);

  const double loss = bound.EvaluateLoss(examples);
  EXPECT_NEAR(std::strtod(ReadText(result).c_str(), nullptr), loss, 1e-5 * loss);
}

INSTANTIATE_TEST_SUITE_P(Builtins, SavedModelTest,
                         testing::Values("bytes-lm", "cifar-cnn", "resnet18"),
                         [](const testing::TestParamInfo<std::string>& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

// What becomes of a model on a GPU when it is saved.
TEST(HostCopyTest, IsSavedAsTheModelItselfAndStandsAlone) {
  const ScratchFolder folder;
  WriteTorchScript(folder.Path("m.pt"),
                   {{.name = "a", .shape = {2, 2}},
                    {.name = "b", .tied_to = "a"},
                    {.name = "frozen", .shape = {4, 2}, .needs_gradient = false},
                    {.name = "rows", .first_rows_of = "frozen", .parameter = false},
                    {.name = "mean", .shape = {2}, .parameter = false}},
                   "def forward(self, x):\n"
                   "    return torch.linear(torch.linear(x, self.a), self.b) + self.mean\n");
  const torch::jit::Module module = torch::jit::load(folder.Path("m.pt"));

  const torch::jit::Module copy = HostCopy(module);
  ASSERT_TRUE(SaveModule(module, folder.Path("module.pt")).ok());
  ASSERT_TRUE(SaveModule(copy, folder.Path("copy.pt")).ok());

  EXPECT_EQ(ReadText(folder.Path("copy.pt")), ReadText(folder.Path("module.pt")));
  const auto memory = [](const torch::jit::Module& of, const char* name) {
    return of.attr(name).toTensor().data_ptr();
  };
  for (const char* name : {"a", "frozen", "rows", "mean"}) {
    EXPECT_NE(memory(copy, name), memory(module, name)) << name;
  }
  EXPECT_EQ(memory(copy, "a"), memory(copy, "b"));
  EXPECT_EQ(memory(copy, "rows"), memory(copy, "frozen"));
  EXPECT_TRUE(copy.attr("a").toTensor().requires_grad());
  EXPECT_TRUE(copy.attr("a").toTensor().is_leaf());
  EXPECT_FALSE(copy.attr("frozen").toTensor().requires_grad());
}

TEST(SavedModelErrorsTest, ComeFromTheFileSystemAndLeaveNothingBehind) {
  const ScratchFolder folder;
  BoundModel bound(Small("cifar-cnn"));

  EXPECT_EQ(bound.model->SaveTorchScript(folder.Path("none/model.pt")).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(bound.model->SaveSafetensors(folder.Path("none/model.safetensors")).code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(folder.CountFiles(), 0U);
}

// A limit on the size of files stands for a full disk.
TEST(SavedModelErrorsTest, SayThatTheDiskIsFull) {
  const ScratchFolder folder;
  BoundModel bound(Small("cifar-cnn"));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);

  const absl::Status torchscript = bound.model->SaveTorchScript(folder.Path("model.pt"));
  const absl::Status safetensors = bound.model->SaveSafetensors(folder.Path("model.safetensors"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(torchscript.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(safetensors.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(folder.CountFiles(), 0U);
}

TEST(AtomicFileTest, AppearsOnlyWhenCommitted) {
  const ScratchFolder folder;
  const std::string path = folder.Path("file");
  {
    const absl::StatusOr<std::unique_ptr<tensors::AtomicFile>> dropped =
        tensors::AtomicFile::Open(path);
    ASSERT_TRUE(dropped.ok());
    ASSERT_TRUE((*dropped)->Append("lost", 4).ok());
  }
  EXPECT_EQ(folder.CountFiles(), 0U);

  const absl::StatusOr<std::unique_ptr<tensors::AtomicFile>> kept = tensors::AtomicFile::Open(path);
  ASSERT_TRUE(kept.ok());
  ASSERT_TRUE((*kept)->Append("kept", 4).ok());
  ASSERT_TRUE((*kept)->Commit().ok());

  EXPECT_EQ(ReadText(path), "kept");
  EXPECT_EQ(folder.CountFiles(), 1U);
}

TEST(SafetensorsTest, HasNoGapsAndAnAlignedHeader) {
  const ScratchFolder folder;
  const std::string path = folder.Path("w.safetensors");
  const std::array<std::uint8_t, 3> small = {1, 2, 3};
  const std::array<float, 2> b = {1.5F, -2.0F};
  const std::array<float, 1> a = {4.0F};

  ASSERT_TRUE(
      tensors::WriteSafetensors(
          path,
          {{.name = "small",
            .type = "U8",
            .element_bytes = 1,
            .shape = {3},
            .bytes = std::as_bytes(std::span(small))},
           {.name = "b", .type = "F32", .shape = {2, 1}, .bytes = std::as_bytes(std::span(b))},
           {.name = "a", .type = "F32", .shape = {}, .bytes = std::as_bytes(std::span(a))}})
          .ok());

  const std::string text = ReadText(path);
  const auto length = static_cast<std::size_t>(static_cast<unsigned char>(text[0])) +
                      256 * static_cast<std::size_t>(static_cast<unsigned char>(text[1]));
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(text.substr(2, 6), std::string(6, '\0'));
  const auto header = nlohmann::json::parse(text.substr(8, length));
  EXPECT_EQ(header["__metadata__"]["format"], "pt");
  EXPECT_EQ(header["a"]["data_offsets"], (std::vector<int>{0, 4}));
  EXPECT_EQ(header["b"]["data_offsets"], (std::vector<int>{4, 12}));
  EXPECT_EQ(header["b"]["shape"], (std::vector<int>{2, 1}));
  EXPECT_EQ(header["small"]["data_offsets"], (std::vector<int>{12, 15}));
  EXPECT_EQ(header["small"]["dtype"], "U8");
  EXPECT_EQ(text.size(), 8 + length + 15);
}

TEST(BuffersTest, WithInfinitiesAreConstants) {
  const ScratchFolder folder;
  WriteTorchScript(folder.Path("m.pt"),
                   {{.name = "w", .shape = {2, 3}},
                    {.name = "mask", .shape = {2}, .fill = -INFINITY, .parameter = false},
                    {.name = "mean", .shape = {2}, .fill = 0.25F, .parameter = false}},
                   "def forward(self, x):\n    return torch.linear(x, self.w) + self.mean\n");
  BoundModel bound({.torchscript = folder.Path("m.pt")});

  EXPECT_THAT(bound.model->ReadBuffers(), testing::ElementsAre(0.25F, 0.25F));
}

}  // namespace
}  // namespace tactus::model
