// Passes that are queued one behind the other: the sum of their losses, and what an error leaves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "agent/model/model.h"
#include "agent/model/torch_module.h"
#include "tests/agent/model/model_support.h"
#include "tests/agent/model/torchscript_files.h"

namespace tactus::model {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// More float32 elements than any machine has bytes for.
const std::string kTooMany = "1152921504606846976";
// An example whose first input is larger makes the models below fail.
constexpr float kFails = 100;

class QueuedPassesTest : public testing::TestWithParam<Precision> {
 protected:
  // A linear model with a bias; `extra` is a further line of forward, which may change y.
  BoundModel Linear(const std::string& extra = "") {
    WriteTorchScript(path_, {{.name = "w", .shape = {2, 3}}, {.name = "b", .shape = {1}}},
                     "def forward(self, x):\n    y = torch.linear(x, self.w) + self.b\n" + extra +
                         "    return y\n");
    return BoundModel({.torchscript = path_, .precision = GetParam()});
  }

  // Four examples; `failing` ones make the lines below fail.
  Examples Four(bool failing) {
    inputs_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    if (failing) inputs_[0] = 2 * kFails;
    return {.count = 4,
            .input_specs = {{data::ElementType::kFloat32, {3}}},
            .target_spec = {data::ElementType::kInt64, {}},
            .inputs = std::as_bytes(std::span(inputs_)),
            .targets = std::as_bytes(std::span(targets_))};
  }

  static std::string When(const std::string& line) {
    return "    if bool(x[0, 0] > 100.0):\n        " + line + "\n";
  }

  // A failing pass between two good ones counts for nothing but what it left in the gradients.
  void ExpectUsableAfterwards(BoundModel& bound, absl::StatusCode code) {
    const double loss = bound.Step(Four(false));
    const std::vector<float> gradients = bound.Gradients();
    ASSERT_TRUE(bound.Pass(Four(false)).ok());

    const absl::Status status = bound.Pass(Four(true));
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith("model: "), Not(HasSubstr("\n"))));

    EXPECT_GE(bound.loss_sum, loss);  // perhaps with the one that failed
    bound.loss_sum = 0;
    bound.ClearGradients();
    EXPECT_EQ(bound.Step(Four(false)), loss);
    EXPECT_EQ(bound.Gradients(), gradients);
  }

  const ScratchFolder folder_;
  const std::string path_ = folder_.Path("m.pt");
  std::vector<float> inputs_ = {};
  const std::vector<std::int64_t> targets_ = {0, 1, 1, 0};
};

TEST_P(QueuedPassesTest, AddTheirLossesInFloat64) {
  BoundModel bound({.builtin = "bytes-lm",
                    .width = 16,
                    .heads = 2,
                    .layers = 1,
                    .context = 8,
                    .precision = GetParam()});
  const ExampleSet examples = Tokens(12, 8);
  double expected = 0;
  for (const std::uint64_t first : {0, 4, 7}) expected += bound.Step(examples.Range(first, 3));

  for (const std::uint64_t first : {0, 4, 7}) {
    ASSERT_TRUE(bound.Pass(examples.Range(first, 3)).ok());
  }

  EXPECT_EQ(bound.loss_sum, expected);
}

TEST_P(QueuedPassesTest, AddToWhatIsThere) {
  BoundModel bound = Linear();
  const double once = bound.Step(Four(false));
  bound.loss_sum = 100;

  ASSERT_TRUE(bound.Pass(Four(false)).ok());

  EXPECT_GT(once, 0);
  EXPECT_EQ(bound.loss_sum, 100 + once);
}

// With the last segment the sum leaves this member.
TEST_P(QueuedPassesTest, HaveAddedTheirLossesBeforeASegmentIsReady) {
  BoundModel bound = Linear();
  const double once = bound.Step(Four(false));
  std::vector<double> then;

  const BoundModel::Ready ready = [&](std::size_t) { then.push_back(bound.loss_sum); };
  ASSERT_TRUE(bound.Pass(Four(false), ready).ok());

  EXPECT_EQ(then, (std::vector<double>{once, once}));
}

TEST_P(QueuedPassesTest, AreNotMixedWithTrialsAndEvaluations) {
  BoundModel bound = Linear();
  const double once = bound.Step(Four(false));
  ASSERT_TRUE(bound.Pass(Four(false)).ok());

  ASSERT_TRUE(bound.model->TryOut(Four(false)).ok());
  ASSERT_TRUE(bound.model->Evaluate(Four(false)).ok());

  EXPECT_EQ(bound.loss_sum, once);
}

TEST_P(QueuedPassesTest, GoOnAfterOneThatFailed) {
  BoundModel bound = Linear(When("y = y.view([7, 7])"));

  ExpectUsableAfterwards(bound, absl::StatusCode::kInternal);
}

TEST_P(QueuedPassesTest, GoOnAfterForwardRanOutOfMemory) {
  BoundModel bound = Linear(When("y = y.new_empty([" + kTooMany + "])"));

  ExpectUsableAfterwards(bound, absl::StatusCode::kResourceExhausted);
}

// A view of an endless row costs nothing, its gradient does.
TEST_P(QueuedPassesTest, GoOnAfterBackwardRanOutOfMemory) {
  BoundModel bound = Linear(When("y = y + self.b.expand([" + kTooMany + "])[0]"));

  ExpectUsableAfterwards(bound, absl::StatusCode::kResourceExhausted);
}

TEST_P(QueuedPassesTest, TrialsSayThatMemoryRanOut) {
  BoundModel forward = Linear(When("y = y.new_empty([" + kTooMany + "])"));
  EXPECT_EQ(forward.model->TryOut(Four(true)).code(), absl::StatusCode::kResourceExhausted);

  BoundModel backward = Linear(When("y = y + self.b.expand([" + kTooMany + "])[0]"));
  EXPECT_EQ(backward.model->TryOut(Four(true)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(backward.Gradients(), testing::Each(0.0F));
}

// The pass that failed must not be heard of again, neither in itself nor in those after it.
TEST_P(QueuedPassesTest, ReportNoSegmentsAfterOneThatFailed) {
  BoundModel bound = Linear(When("y = y.view([7, 7])"));
  std::vector<std::size_t> failed;
  {
    const BoundModel::Ready ready = [&failed](std::size_t segment) { failed.push_back(segment); };
    ASSERT_FALSE(bound.Pass(Four(true), ready).ok());
  }
  ASSERT_TRUE(bound.model->TryOut(Four(false)).ok());
  EXPECT_THAT(failed, testing::IsEmpty());

  std::vector<std::size_t> ready;
  bound.Step(Four(false), [&ready](std::size_t segment) { ready.push_back(segment); });
  EXPECT_THAT(ready, testing::UnorderedElementsAre(0, 1));
}

INSTANTIATE_TEST_SUITE_P(Precisions, QueuedPassesTest,
                         testing::Values(Precision::kFloat32, Precision::kBfloat16),
                         [](const testing::TestParamInfo<Precision>& parameter) {
                           return parameter.param == Precision::kFloat32 ? "Float32" : "Bfloat16";
                         });

TEST(TorchErrorTest, KnowsWhenMemoryRanOut) {
  const auto code = [](const std::exception& error) { return TorchError("model", error).code(); };

  EXPECT_EQ(code(std::bad_alloc()), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(c10::OutOfMemoryError({"f", "file", 1}, "a device is full")),
            absl::StatusCode::kResourceExhausted);
  for (const char* text :
       {"CUDA out of memory. Tried to allocate 2.00 GiB", "CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED", "DefaultCPUAllocator: can't allocate memory"}) {
    EXPECT_EQ(code(std::runtime_error(text)), absl::StatusCode::kResourceExhausted) << text;
  }
  EXPECT_EQ(code(std::runtime_error("CUDA error: an illegal memory access was encountered")),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(std::runtime_error("mat1 and mat2 shapes cannot be multiplied")),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace tactus::model
