#include "agent/worker/evaluation.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/collective/in_process.h"
#include "gtest/gtest.h"

namespace tactus::worker {
namespace {

// Sample i has the loss i and is right when i is even.
class CountingData final : public data::Dataset {
 public:
  explicit CountingData(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const override { return size_; }
  const std::vector<data::TensorSpec>& inputs() const override { return inputs_; }
  const data::TensorSpec& targets() const override { return spec_; }
  void Read(std::span<const std::uint64_t> indices, std::span<std::byte> inputs,
            std::span<std::byte>) const override {
    std::memcpy(inputs.data(), indices.data(), indices.size_bytes());
  }

 private:
  const std::uint64_t size_;
  const data::TensorSpec spec_{.type = data::ElementType::kInt64, .shape = {}};
  const std::vector<data::TensorSpec> inputs_{spec_};
};

class CountingModel final : public model::Model {
 public:
  const cuda::SegmentTable& segments() const override { return segments_; }
  void Bind(std::span<float>, std::span<double>) override {}
  absl::Status TryOut(const model::Examples&) override { return absl::OkStatus(); }
  absl::Status ForwardBackward(const model::Examples&, const model::TakeGradient&) override {
    return absl::OkStatus();
  }
  void ReleaseCachedMemory() override {}
  absl::StatusOr<model::EvaluationSums> Evaluate(const model::Examples& examples) override {
    largest_ = std::max(largest_, examples.count);
    if (examples.count > fits_) return absl::ResourceExhaustedError("out of memory");
    model::EvaluationSums sums{.has_accuracy = true, .samples = examples.count};
    for (std::uint64_t i = 0; i < examples.count; ++i) {
      std::uint64_t index = 0;
      std::memcpy(&index, examples.inputs.data() + i * sizeof(index), sizeof(index));
      sums.loss_sum += static_cast<double>(index);
      sums.correct_sum += index % 2 == 0 ? 1 : 0;
    }
    return sums;
  }
  std::vector<float> ReadBuffers() const override { return buffers_; }
  void WriteBuffers(std::span<const float> values) override {
    buffers_.assign(values.begin(), values.end());
  }
  std::optional<std::uint32_t> context() const override { return std::nullopt; }
  absl::Status SaveTorchScript(const std::string&) const override { return absl::OkStatus(); }
  absl::Status SaveSafetensors(const std::string&) const override { return absl::OkStatus(); }
  absl::Status CopyTensors(model::TensorsCopy&) const override { return absl::OkStatus(); }
  absl::Status LoadSafetensors(const std::string&) override { return absl::OkStatus(); }

  std::vector<float> buffers_;
  std::uint64_t fits_ = 1000;  // samples of a pass
  std::uint64_t largest_ = 0;  // that was tried

 private:
  cuda::SegmentTable segments_;
};

// A group of one that loses another member after so many looks.
class LosingTransport final : public collective::Transport {
 public:
  explicit LosingTransport(int looks) : looks_(looks) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<collective::Collective> Start(const collective::Operation& operation) override {
    return inner_->Start(operation);
  }
  std::vector<int> failed() override {
    return looks_-- > 0 ? std::vector<int>() : std::vector<int>{1};
  }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 private:
  const std::unique_ptr<collective::Transport> inner_ =
      std::move(collective::MakeInProcessGroup(1, [] { return Instant{}; })[0]);
  int looks_;
};

template <typename Body>
void OnGroup(int size, const Body& body) {
  auto group = collective::MakeInProcessGroup(size, [] { return Instant{}; });
  std::vector<std::jthread> threads;
  for (auto& transport : group) threads.emplace_back([&] { body(*transport); });
}

TEST(EvaluationTest, SharesAddUpToTheWholeForAnyGroup) {
  const CountingData data(11);
  for (const int size : {1, 2, 3, 5, 13}) {
    OnGroup(size, [&](collective::Transport& transport) {
      CountingModel model;
      const auto device = cuda::MakeHostDevice("cpu:0");
      ExampleReader reader(data, *device);
      const auto evaluated = Evaluate(model, reader, transport, {.batch = 2});
      ASSERT_TRUE(evaluated.ok());
      EXPECT_DOUBLE_EQ(evaluated->loss, 5.0);
      EXPECT_NEAR(evaluated->accuracy, 6.0 / 11, 1e-7);
      EXPECT_EQ(evaluated->samples, 11u);
    });
  }
}

TEST(EvaluationTest, MembersTakeTheSharesThatTheyHaveOfAStep) {
  const CountingData data(100);
  const std::vector<std::uint32_t> shares = {30, 15, 5};
  OnGroup(3, [&](collective::Transport& transport) {
    CountingModel model;
    const auto device = cuda::MakeHostDevice("cpu:0");
    ExampleReader reader(data, *device);
    const auto evaluated = Evaluate(model, reader, transport, {.batch = 1000, .shares = shares});
    ASSERT_TRUE(evaluated.ok());
    EXPECT_DOUBLE_EQ(evaluated->loss, 49.5);
    EXPECT_EQ(model.largest_, 2 * shares[static_cast<std::size_t>(transport.rank())]);
  });
}

TEST(EvaluationTest, OfSharesThatAreNoneTheSamplesAreSharedEvenly) {
  const CountingData data(10);
  const std::vector<std::uint32_t> of_others = {1, 2, 3};
  const std::vector<std::uint32_t> nothing = {0, 0};
  for (const auto& shares : {of_others, nothing}) {
    OnGroup(2, [&](collective::Transport& transport) {
      CountingModel model;
      const auto device = cuda::MakeHostDevice("cpu:0");
      ExampleReader reader(data, *device);
      const auto evaluated = Evaluate(model, reader, transport, {.batch = 1000, .shares = shares});
      ASSERT_TRUE(evaluated.ok());
      EXPECT_DOUBLE_EQ(evaluated->loss, 4.5);
      EXPECT_EQ(model.largest_, 5u);
    });
  }
}

TEST(EvaluationTest, OnlyTheFirstSamplesCountWhenThereAreTooMany) {
  const CountingData data(1000);
  OnGroup(2, [&](collective::Transport& transport) {
    CountingModel model;
    const auto device = cuda::MakeHostDevice("cpu:0");
    ExampleReader reader(data, *device);
    const auto evaluated = Evaluate(model, reader, transport, {.samples_max = 3, .batch = 64});
    ASSERT_TRUE(evaluated.ok());
    EXPECT_DOUBLE_EQ(evaluated->loss, 1.0);
    EXPECT_EQ(evaluated->samples, 3u);
  });
}

TEST(EvaluationTest, APassThatRunsOutOfMemoryIsMadeInSmallerOnes) {
  const CountingData data(11);
  OnGroup(1, [&](collective::Transport& transport) {
    CountingModel model;
    model.fits_ = 3;
    const auto device = cuda::MakeHostDevice("cpu:0");
    ExampleReader reader(data, *device);
    const auto evaluated = Evaluate(model, reader, transport, {.batch = 8});
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    EXPECT_DOUBLE_EQ(evaluated->loss, 5.0);
    EXPECT_EQ(model.largest_, 8u);

    model.fits_ = 0;
    EXPECT_TRUE(
        absl::IsResourceExhausted(Evaluate(model, reader, transport, {.batch = 8}).status()));
  });
}

TEST(EvaluationTest, WhoIsLostMeanwhileEndsItBeforeTheNextPass) {
  const CountingData data(100);
  CountingModel model;
  const auto device = cuda::MakeHostDevice("cpu:0");
  ExampleReader reader(data, *device);
  LosingTransport transport(/*looks=*/3);
  int passes = 0;

  const auto evaluated =
      Evaluate(model, reader, transport, {.batch = 10, .beside = [&passes] { ++passes; }});

  EXPECT_TRUE(absl::IsUnavailable(evaluated.status()));
  EXPECT_EQ(evaluated.status().message(), "rank 1: closed the connection");
  EXPECT_EQ(passes, 4) << "the last one is not made";
}

TEST(EvaluationTest, BuffersAreAveragedBySamples) {
  OnGroup(2, [&](collective::Transport& transport) {
    CountingModel model;
    model.buffers_ = transport.rank() == 0 ? std::vector<float>{1, 8} : std::vector<float>{5, 0};
    ASSERT_TRUE(AverageBuffers(model, transport, transport.rank() == 0 ? 3 : 1).ok());
    EXPECT_EQ(model.buffers_, (std::vector<float>{2, 6}));
  });
}

}  // namespace
}  // namespace tactus::worker
