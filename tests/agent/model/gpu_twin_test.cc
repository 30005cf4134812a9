// A model on a GPU against the same model on the host. Needs a libtorch with CUDA and a device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/script.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>

#include "agent/model/model.h"
#include "tests/agent/model/model_support.h"
#include "tests/agent/model/torchscript_files.h"

namespace tactus::model {
namespace {

constexpr char kGpu[] = "cuda:0";

// A model bound to memory of the GPU.
class GpuModel {
 public:
  explicit GpuModel(ModelOptions options) {
    options.device = kGpu;
    absl::StatusOr<std::unique_ptr<Model>> opened = Model::Open(options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    model_ = *std::move(opened);
    const auto length = static_cast<std::int64_t>(cuda::FlatLength(model_->segments()));
    const auto on_gpu = at::TensorOptions().dtype(at::kFloat).device(at::Device(kGpu));
    // More in front and behind, to be found as it was.
    parameters_ = torch::full({length + 2 * kGuard}, kUntouched, on_gpu);
    gradients_ = torch::full({length + 2 * kGuard}, kUntouched, on_gpu);
    gradients_.slice(0, kGuard, kGuard + length).zero_();
    losses_ = torch::zeros({1}, on_gpu.dtype(at::kDouble));
    model_->Bind(Span(parameters_, length), {losses_.data_ptr<double>(), 1});
  }

  // Model::ForwardBackward, of which the gradients are added up; then `ready`, if set, is told.
  absl::Status Pass(const Examples& examples,
                    const std::function<void(std::size_t segment)>& ready = {}) {
    return model_->ForwardBackward(examples, [&](const SegmentGradient& gradient) {
      const cuda::Segment& segment = model_->segments()[gradient.segment];
      const auto offset = kGuard + static_cast<std::int64_t>(segment.offset);
      const auto length = static_cast<std::int64_t>(segment.length);
      if (gradient.values != nullptr) {
        gradients_.slice(0, offset, offset + length)
            .add_(torch::from_blob(const_cast<float*>(gradient.values), {length},
                                   gradients_.options()));
      }
      if (ready) ready(gradient.segment);
    });
  }

  Model& operator*() { return *model_; }
  Model* operator->() { return model_.get(); }

  std::vector<float> Weights() const { return Read(parameters_); }
  std::vector<float> Gradients() const { return Read(gradients_); }

  // The sum of losses, which begins anew.
  double TakeLosses() {
    const double sum = losses_.item<double>();
    losses_.zero_();
    return sum;
  }

 private:
  static constexpr std::int64_t kGuard = 64;
  static constexpr float kUntouched = 12345;

  static std::span<float> Span(const at::Tensor& tensor, std::int64_t length) {
    return {tensor.data_ptr<float>() + kGuard, static_cast<std::size_t>(length)};
  }

  static std::vector<float> Read(const at::Tensor& tensor) {
    const at::Tensor host = tensor.cpu();
    const float* values = host.data_ptr<float>();
    for (std::int64_t i = 0; i < kGuard; ++i) {
      EXPECT_EQ(values[i], kUntouched);
      EXPECT_EQ(values[host.numel() - 1 - i], kUntouched);
    }
    return {values + kGuard, values + host.numel() - kGuard};
  }

  std::unique_ptr<Model> model_;
  at::Tensor parameters_;
  at::Tensor gradients_;
  at::Tensor losses_;
};

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (torch::cuda::is_available()) return;
    ASSERT_EQ(std::getenv("TACTUS_REQUIRE_GPU"), nullptr) << "libtorch sees no CUDA device";
    GTEST_SKIP() << "no GPU: libtorch sees no CUDA device";
  }

  const ScratchFolder folder_;
};

class GpuTwinTest : public GpuTest, public testing::WithParamInterface<std::string> {
 protected:
  static ModelOptions Options(Precision precision = Precision::kFloat32) {
    ModelOptions options{.builtin = GetParam(), .width = 16, .precision = precision};
    if (GetParam() == "bytes-lm") {
      options.heads = 2;
      options.layers = 2;
      options.context = 16;
    }
    return options;
  }

  static ExampleSet Set() { return GetParam() == "bytes-lm" ? Tokens(8, 16) : Images(8, 32); }

  // By name, in the host's memory.
  template <class Tensors>
  static void ExpectSameTensors(const Tensors& found, const Tensors& expected) {
    ASSERT_EQ(found.size(), expected.size());
    auto other = expected.begin();
    for (const auto& tensor : found) {
      EXPECT_EQ(tensor.name, (*other).name);
      EXPECT_TRUE(tensor.value.is_cpu()) << tensor.name;
      EXPECT_TRUE(tensor.value.equal((*other).value)) << tensor.name;
      ++other;
    }
  }

  // What is compared is float32: cuDNN's TF32 has 10 bits, of which 20 layers and batches of three
  // samples make per cents.
  void SetUp() override {
    GpuTest::SetUp();
    at::globalContext().setAllowTF32CuDNN(false);
  }
  void TearDown() override { at::globalContext().setAllowTF32CuDNN(true); }

  // Equal but for float32's rounding, in the norm: a rounding at zero flips a ReLU, which changes
  // single derivatives by up to a hundredth of the largest. On processors, of 40 draws of these
  // sizes 7 had flips, which made 2e-4 to 4e-3 of the norm against float64; the others 1e-6.
  static void ExpectNear(const std::vector<float>& values, const std::vector<float>& expected) {
    ASSERT_EQ(values.size(), expected.size());
    double difference2 = 0;
    double norm2 = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference2 += std::pow(double{values[i]} - double{expected[i]}, 2);
      norm2 += std::pow(double{expected[i]}, 2);
    }
    EXPECT_LE(std::sqrt(difference2), 1e-2 * std::sqrt(norm2));
  }
};

TEST_P(GpuTwinTest, ComputesWhatTheHostDoes) {
  BoundModel host(Options());
  GpuModel gpu(Options());
  const ExampleSet set = Set();
  std::vector<std::size_t> ready;

  const double expected = host.Step(set.All()) + host.Step(set.Range(0, 3));
  ASSERT_TRUE(gpu.Pass(set.All()).ok());
  ASSERT_TRUE(gpu.Pass(set.Range(0, 3), [&ready](std::size_t i) { ready.push_back(i); }).ok());
  EXPECT_NEAR(gpu.TakeLosses(), expected, 1e-3 * expected);
  EXPECT_EQ(gpu.Weights(), host.Weights());
  ExpectNear(gpu.Gradients(), host.Gradients());
  ExpectNear(gpu->ReadBuffers(), host.model->ReadBuffers());
  std::ranges::sort(ready);
  ASSERT_EQ(ready.size(), gpu->segments().size());
  for (std::size_t i = 0; i < ready.size(); ++i) EXPECT_EQ(ready[i], i);
}

TEST_P(GpuTwinTest, EvaluatesAsTheHostDoes) {
  BoundModel host(Options());
  GpuModel gpu(Options());

  const absl::StatusOr<EvaluationSums> expected = host.model->Evaluate(Set().All());
  const absl::StatusOr<EvaluationSums> sums = gpu->Evaluate(Set().All());

  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_NEAR(sums->loss_sum, expected->loss_sum, 1e-2 * expected->loss_sum);
  EXPECT_TRUE(sums->has_accuracy);
  EXPECT_NEAR(sums->correct_sum, expected->correct_sum, 0.5);
}

TEST_P(GpuTwinTest, ATrialChangesNothing) {
  GpuModel gpu(Options());
  const ExampleSet set = Set();
  ASSERT_TRUE(gpu.Pass(set.All()).ok());
  const std::vector<float> gradients = gpu.Gradients();
  const std::vector<float> buffers = gpu->ReadBuffers();

  const absl::Status status = gpu->TryOut(set.All());

  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(gpu.Gradients(), gradients);
  EXPECT_EQ(gpu->ReadBuffers(), buffers);
}

TEST_P(GpuTwinTest, IsSavedForTheHost) {
  GpuModel gpu(Options());
  BoundModel host(Options());
  std::vector<float> buffers = gpu->ReadBuffers();
  for (float& value : buffers) value += 0.5F;
  gpu->WriteBuffers(buffers);
  host.model->WriteBuffers(buffers);

  ASSERT_TRUE(gpu->SaveTorchScript(folder_.Path("gpu.pt")).ok());
  ASSERT_TRUE(host.model->SaveTorchScript(folder_.Path("host.pt")).ok());
  ASSERT_TRUE(gpu->SaveSafetensors(folder_.Path("gpu.safetensors")).ok());
  ASSERT_TRUE(host.model->SaveSafetensors(folder_.Path("host.safetensors")).ok());

  // Not the files' bytes: pickles remember what happens to be shared.
  const auto load = [this](const char* name) { return torch::jit::load(folder_.Path(name)); };
  const torch::jit::Module saved = load("gpu.pt");
  const torch::jit::Module expected = load("host.pt");
  ExpectSameTensors(saved.named_parameters(), expected.named_parameters());
  ExpectSameTensors(saved.named_buffers(), expected.named_buffers());
  const auto loss = [this](const char* name) {
    BoundModel model({.torchscript = folder_.Path(name)});
    return model.model->Evaluate(Set().All())->loss_sum;
  };
  EXPECT_EQ(loss("gpu.pt"), loss("host.pt"));
  EXPECT_EQ(ReadText(folder_.Path("gpu.safetensors")), ReadText(folder_.Path("host.safetensors")));
}

TEST_P(GpuTwinTest, ComputesInBfloat16) {
  GpuModel gpu(Options(Precision::kBfloat16));
  BoundModel host(Options());
  const ExampleSet set = Set();

  const absl::Status tried = gpu->TryOut(set.All());
  ASSERT_TRUE(tried.ok()) << tried;
  ASSERT_TRUE(gpu.Pass(set.All()).ok());

  // Some 20 layers, each off by a rounding of bfloat16 or two.
  const double expected = host.Step(set.All());
  const double found = gpu.TakeLosses();
  EXPECT_NEAR(found, expected, 20 * 2.0 / 512 * expected);
  GpuModel exact(Options());
  ASSERT_TRUE(exact.Pass(set.All()).ok());
  EXPECT_NE(found, exact.TakeLosses());  // or it was float32 all the same
}

TEST_F(GpuTest, GoesOnAfterItRanOutOfMemory) {
  // A large first input asks for more than any GPU has, forward and (below it) backward.
  WriteTorchScript(folder_.Path("m.pt"),
                   {{.name = "w", .shape = {2, 3}}, {.name = "b", .shape = {1}}},
                   "def forward(self, x):\n"
                   "    y = torch.linear(x, self.w) + self.b\n"
                   "    if bool(x[0, 0] > 200.0):\n"
                   "        y = y.new_empty([1152921504606846976])\n"
                   "    elif bool(x[0, 0] > 100.0):\n"
                   "        y = y + self.b.expand([1152921504606846976])[0]\n"
                   "    return y\n");
  GpuModel gpu({.torchscript = folder_.Path("m.pt")});
  const std::vector<std::int64_t> targets = {0, 1};
  std::vector<float> inputs = {1, 2, 3, 4, 5, 6};
  const Examples examples{.count = 2,
                          .input_specs = {{data::ElementType::kFloat32, {3}}},
                          .target_spec = {data::ElementType::kInt64, {}},
                          .inputs = std::as_bytes(std::span(inputs)),
                          .targets = std::as_bytes(std::span(targets))};
  ASSERT_TRUE(gpu.Pass(examples).ok());
  const double loss = gpu.TakeLosses();

  for (const float failing : {300.0F, 150.0F}) {
    inputs[0] = failing;
    const absl::Status status = gpu.Pass(examples);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    gpu.TakeLosses();
    inputs[0] = 1;
    ASSERT_TRUE(gpu.Pass(examples).ok());
    EXPECT_EQ(gpu.TakeLosses(), loss);
  }
}

INSTANTIATE_TEST_SUITE_P(Builtins, GpuTwinTest,
                         testing::Values("bytes-lm", "cifar-cnn", "resnet18"),
                         [](const testing::TestParamInfo<std::string>& parameter) {
                           std::string name = parameter.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace tactus::model
