#include "agent/worker/evaluation.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "agent/collective/in_process.h"
#include "gtest/gtest.h"

namespace tactus::worker {
namespace {

// A mesh of two, of which nothing but that it is there is asked.
class TwoParts final : public ModelParts {
 public:
  const collective::MeshShape& shape() const override { return shape_; }
  absl::StatusOr<bool> Join(const collective::MeshGroups&) override { return false; }
  const cuda::SegmentTable& dense_segments() const override { return segments_; }
  const std::vector<bool>& counts() const override { return counts_; }
  const std::vector<bool>& copies() const override { return counts_; }
  absl::StatusOr<std::vector<float>> Gather(std::span<const float>) override {
    return std::vector<float>();
  }
  std::vector<float> Cut(std::span<const float>) const override { return {}; }
  std::vector<float> PutTogether(std::span<const std::span<const float>>) const override {
    return {};
  }
  absl::StatusOr<std::vector<std::string>> WriteDense(std::span<const float>,
                                                      const std::string&) override {
    return std::vector<std::string>();
  }

 private:
  const collective::MeshShape shape_{.rows = 1, .columns = 2};
  const cuda::SegmentTable segments_;
  const std::vector<bool> counts_;
};

// Of validation samples alone, of which the ith has the loss i and is right when i is even.
class CountingTrainee final : public Trainee {
 public:
  explicit CountingTrainee(std::uint64_t samples, std::uint32_t batch = 1000)
      : samples_(samples), batch_(batch) {}

  absl::Status Open(const TraineeHome&) override { return absl::OkStatus(); }
  const cuda::SegmentTable& segments() const override { return segments_; }
  std::uint64_t train_samples() const override { return 1; }
  std::uint64_t validation_samples() const override { return samples_; }
  void Complete(engine::EngineOptions&) override {}
  void Bind(std::span<float>) override {}
  absl::StatusOr<double> TryOut() override { return 0; }
  absl::Status Compute(const engine::Batch&, engine::RoundEngine&) override {
    return absl::OkStatus();
  }
  engine::BringStretch Bringing() override { return {}; }
  Duration waited_for_data() const override { return {}; }
  absl::StatusOr<model::EvaluationSums> Evaluate(std::span<const std::uint64_t> indices) override {
    largest_ = std::max<std::uint64_t>(largest_, indices.size());
    ++passes_;
    if (indices.size() > fits_) return absl::ResourceExhaustedError("out of memory");
    model::EvaluationSums sums{.has_accuracy = true, .samples = indices.size()};
    for (const std::uint64_t index : indices) {
      sums.loss_sum += static_cast<double>(index);
      sums.correct_sum += index % 2 == 0 ? 1 : 0;
    }
    return sums;
  }
  ModelParts* parts() override { return in_parts_ ? &parts_ : nullptr; }
  void EndEvaluation() override {}
  std::uint32_t evaluation_batch() const override { return batch_; }
  std::vector<float> ReadBuffers() const override { return buffers_; }
  void WriteBuffers(std::span<const float> values) override {
    buffers_.assign(values.begin(), values.end());
  }
  void ReleaseMemory() override {}
  absl::Status LoadWeights(const std::string&) override { return absl::OkStatus(); }
  absl::Status CopyTensors(tensors::TensorsCopy&) const override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<std::string>> WriteModel(const std::string&) override {
    return std::vector<std::string>();
  }

  std::vector<float> buffers_;
  std::uint64_t fits_ = 1000;  // samples of a pass
  std::uint64_t largest_ = 0;  // that was tried
  std::uint64_t passes_ = 0;   // that were made
  bool in_parts_ = false;

 private:
  TwoParts parts_;
  const cuda::SegmentTable segments_;
  const std::uint64_t samples_;
  const std::uint32_t batch_;
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
  for (const int size : {1, 2, 3, 5, 13}) {
    OnGroup(size, [&](collective::Transport& transport) {
      CountingTrainee trainee(11, 2);
      const auto evaluated = Evaluate(trainee, transport, {});
      ASSERT_TRUE(evaluated.ok());
      EXPECT_DOUBLE_EQ(evaluated->loss, 5.0);
      EXPECT_NEAR(evaluated->accuracy, 6.0 / 11, 1e-7);
      EXPECT_EQ(evaluated->samples, 11u);
    });
  }
}

TEST(EvaluationTest, MembersTakeTheSharesThatTheyHaveOfAStep) {
  const std::vector<std::uint32_t> shares = {30, 15, 5};
  OnGroup(3, [&](collective::Transport& transport) {
    CountingTrainee trainee(100);
    const auto evaluated = Evaluate(trainee, transport, {.shares = shares});
    ASSERT_TRUE(evaluated.ok());
    EXPECT_DOUBLE_EQ(evaluated->loss, 49.5);
    EXPECT_EQ(trainee.largest_, 2 * shares[static_cast<std::size_t>(transport.rank())]);
  });
}

TEST(EvaluationTest, OfSharesThatAreNoneTheSamplesAreSharedEvenly) {
  const std::vector<std::uint32_t> of_others = {1, 2, 3};
  const std::vector<std::uint32_t> nothing = {0, 0};
  for (const auto& shares : {of_others, nothing}) {
    OnGroup(2, [&](collective::Transport& transport) {
      CountingTrainee trainee(10);
      const auto evaluated = Evaluate(trainee, transport, {.shares = shares});
      ASSERT_TRUE(evaluated.ok());
      EXPECT_DOUBLE_EQ(evaluated->loss, 4.5);
      EXPECT_EQ(trainee.largest_, 5u);
    });
  }
}

// Who has no samples left would be waited for by those who have some.
TEST(EvaluationTest, MembersOfAMeshEvaluateEquallyOften) {
  const std::vector<std::uint32_t> shares = {6, 2, 0, 1};
  OnGroup(4, [&](collective::Transport& transport) {
    CountingTrainee trainee(9, 2);
    trainee.in_parts_ = true;
    const auto evaluated = Evaluate(trainee, transport, {.shares = shares});
    ASSERT_TRUE(evaluated.ok());
    EXPECT_DOUBLE_EQ(evaluated->loss, 4.0);
    EXPECT_EQ(trainee.passes_, 3u);
  });
}

TEST(EvaluationTest, OnlyTheFirstSamplesCountWhenThereAreTooMany) {
  OnGroup(2, [&](collective::Transport& transport) {
    CountingTrainee trainee(1000, 64);
    const auto evaluated = Evaluate(trainee, transport, {.samples_max = 3});
    ASSERT_TRUE(evaluated.ok());
    EXPECT_DOUBLE_EQ(evaluated->loss, 1.0);
    EXPECT_EQ(evaluated->samples, 3u);
  });
}

TEST(EvaluationTest, APassThatRunsOutOfMemoryIsMadeInSmallerOnes) {
  OnGroup(1, [&](collective::Transport& transport) {
    CountingTrainee trainee(11, 8);
    trainee.fits_ = 3;
    const auto evaluated = Evaluate(trainee, transport, {});
    ASSERT_TRUE(evaluated.ok()) << evaluated.status();
    EXPECT_DOUBLE_EQ(evaluated->loss, 5.0);
    EXPECT_EQ(trainee.largest_, 8u);

    trainee.fits_ = 0;
    EXPECT_TRUE(absl::IsResourceExhausted(Evaluate(trainee, transport, {}).status()));
  });
}

TEST(EvaluationTest, WhoIsLostMeanwhileEndsItBeforeTheNextPass) {
  CountingTrainee trainee(100, 10);
  LosingTransport transport(/*looks=*/3);
  int passes = 0;

  const auto evaluated = Evaluate(trainee, transport, {.beside = [&passes] { ++passes; }});

  EXPECT_TRUE(absl::IsUnavailable(evaluated.status()));
  EXPECT_EQ(evaluated.status().message(), "rank 1: closed the connection");
  EXPECT_EQ(passes, 4) << "the last one is not made";
}

TEST(EvaluationTest, BuffersAreAveragedBySamples) {
  OnGroup(2, [&](collective::Transport& transport) {
    CountingTrainee trainee(0);
    trainee.buffers_ = transport.rank() == 0 ? std::vector<float>{1, 8} : std::vector<float>{5, 0};
    ASSERT_TRUE(AverageBuffers(trainee, transport, transport.rank() == 0 ? 3 : 1).ok());
    EXPECT_EQ(trainee.buffers_, (std::vector<float>{2, 6}));
  });
}

TEST(EvaluationTest, BuffersThatAreNotFiniteAreLeftOut) {
  OnGroup(3, [&](collective::Transport& transport) {
    CountingTrainee trainee(0);
    const float lost = std::numeric_limits<float>::quiet_NaN();
    trainee.buffers_ = std::vector<std::vector<float>>{
        {1, 8}, {5, lost}, {5, 0}}[static_cast<std::size_t>(transport.rank())];
    ASSERT_TRUE(AverageBuffers(trainee, transport, transport.rank() == 0 ? 3 : 1).ok());
    EXPECT_EQ(trainee.buffers_, (std::vector<float>{2, 6}));
  });
}

}  // namespace
}  // namespace tactus::worker
