// Members that choose a subset: passes that do not fit, samples that tell nothing, groups that fall
// apart.

#include "agent/worker/subset_choice.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/collective/in_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::worker {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// The ith of 100 samples has the proxy i, and is of class i % 2.
class NumberedTrainee final : public Trainee {
 public:
  absl::Status Open(const TraineeHome&) override { return absl::OkStatus(); }
  const cuda::SegmentTable& segments() const override { return segments_; }
  std::uint64_t train_samples() const override { return 10; }
  std::uint64_t data_samples() const override { return samples_; }
  std::uint64_t validation_samples() const override { return 0; }
  void Complete(engine::EngineOptions&) override {}
  void Bind(std::span<float>) override {}
  absl::StatusOr<double> TryOut() override { return 0; }
  absl::Status Compute(const engine::Batch&, engine::RoundEngine&) override {
    return absl::OkStatus();
  }
  engine::BringStretch Bringing() override { return {}; }
  Duration waited_for_data() const override { return {}; }
  absl::StatusOr<model::EvaluationSums> Evaluate(std::span<const std::uint64_t>) override {
    return model::EvaluationSums{};
  }
  void EndEvaluation() override {}
  std::uint32_t evaluation_batch() const override { return 64; }
  std::vector<float> ReadBuffers() const override { return {}; }
  void WriteBuffers(std::span<const float>) override {}
  void ReleaseMemory() override {}
  absl::Status LoadWeights(const std::string&) override { return absl::OkStatus(); }
  absl::Status CopyTensors(tensors::TensorsCopy&) const override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<std::string>> WriteModel(const std::string&) override {
    return std::vector<std::string>();
  }
  absl::StatusOr<model::GradientProxies> Proxies(std::span<const std::uint64_t> indices,
                                                 bool) override {
    if (indices.size() > fits_) return absl::ResourceExhaustedError("out of memory");
    if (width_ > 1) return Zeros(indices.size());
    model::GradientProxies proxies{.width = 1, .class_count = 2};
    for (const std::uint64_t index : indices) {
      const bool finite = std::ranges::count(spoilt_, index) == 0;
      proxies.values.push_back(finite ? static_cast<float>(index)
                                      : std::numeric_limits<float>::infinity());
      proxies.classes.push_back(static_cast<std::uint32_t>(index % 2));
    }
    return proxies;
  }

  model::GradientProxies Zeros(std::size_t count) const {
    return {.values = std::vector<float>(count * width_),
            .width = width_,
            .classes = std::vector<std::uint32_t>(count)};
  }

  std::uint64_t fits_ = 1000;
  std::uint64_t samples_ = 100;
  std::size_t width_ = 1;
  std::vector<std::uint64_t> spoilt_;

 private:
  const cuda::SegmentTable segments_;
};

const ChoiceOptions kCraig = {.subset = {.kind = engine::SubsetKind::kCraig, .fraction = 0.1}};

std::unique_ptr<collective::Transport> Alone() {
  return std::move(collective::MakeInProcessGroup(1, [] { return Instant{}; }).front());
}

TEST(SubsetChoiceTest, PassesThatDoNotFitAreRepeatedInHalves) {
  NumberedTrainee wide;
  NumberedTrainee narrow;
  narrow.fits_ = 5;

  const auto of_wide = ChooseSubset(wide, *Alone(), kCraig);
  const auto of_narrow = ChooseSubset(narrow, *Alone(), kCraig);

  ASSERT_TRUE(of_wide.ok()) << of_wide.status();
  ASSERT_TRUE(of_narrow.ok()) << of_narrow.status();
  EXPECT_EQ(of_wide->subset, of_narrow->subset);
  EXPECT_EQ(of_wide->subset->samples.size(), 10u);
  narrow.fits_ = 0;
  EXPECT_TRUE(absl::IsResourceExhausted(ChooseSubset(narrow, *Alone(), kCraig).status()));
}

TEST(SubsetChoiceTest, WhereNothingIsFiniteTheFirstChoiceFailsAndALaterOneStays) {
  NumberedTrainee trainee;
  trainee.spoilt_ = {1, 2, 3};
  ChoiceOptions later = kCraig;
  later.former = 4;

  const auto first = ChooseSubset(trainee, *Alone(), kCraig);
  const auto stays = ChooseSubset(trainee, *Alone(), later);

  EXPECT_THAT(std::string(first.status().message()),
              HasSubstr("the gradients of 3 of 100 samples are not finite before the first round"));
  ASSERT_TRUE(stays.ok());
  EXPECT_FALSE(stays->subset);
  EXPECT_THAT(stays->facts, HasSubstr("what was chosen before stays"));
}

TEST(SubsetChoiceTest, AMemberWithoutAShareTakesPart) {
  const auto group = collective::MakeInProcessGroup(2, [] { return Instant{}; });
  ChoiceOptions options = kCraig;
  options.shares = {8, 0};
  std::vector<engine::Subset> chosen(2);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      NumberedTrainee trainee;
      const auto choice = ChooseSubset(trainee, *group[rank], options);
      ASSERT_TRUE(choice.ok()) << choice.status();
      chosen[rank] = *choice->subset;
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(chosen[0], chosen[1]);
  EXPECT_EQ(chosen[0].samples.size(), 10u);
}

TEST(SubsetChoiceTest, AGroupThatFallsApartIsUnavailable) {
  NumberedTrainee trainee;
  const auto transport = Alone();
  transport->Abort("rank 1: closed the connection");

  const auto choice = ChooseSubset(trainee, *transport, kCraig);

  EXPECT_TRUE(absl::IsUnavailable(choice.status())) << choice.status();
}

TEST(SubsetChoiceTest, MoreThanMemoryMayHoldIsRefusedAtTheFirstBatch) {
  NumberedTrainee trainee;
  trainee.samples_ = 1'000'000;
  trainee.width_ = 4096;

  const auto choice = ChooseSubset(trainee, *Alone(), kCraig);

  EXPECT_TRUE(absl::IsInvalidArgument(choice.status())) << choice.status();
  EXPECT_THAT(std::string(choice.status().message()), HasSubstr("more than 8 GiB"));
  EXPECT_THAT(std::string(choice.status().message()), HasSubstr("random in place of craig"));
  trainee.samples_ = 100;
  trainee.width_ = model::GradientProxies::kWidthMax + 1;
  EXPECT_THAT(std::string(ChooseSubset(trainee, *Alone(), kCraig).status().message()),
              HasSubstr("allowed are 65536, or random in place of craig"));
}

// That passes all on, and knows of a member that is gone.
class WithoutRankOne final : public collective::Transport {
 public:
  explicit WithoutRankOne(collective::Transport& all) : all_(all) {}
  int rank() const override { return all_.rank(); }
  int size() const override { return all_.size(); }
  std::unique_ptr<collective::Collective> Start(const collective::Operation& operation) override {
    return all_.Start(operation);
  }
  std::vector<int> failed() override { return {1}; }
  void Abort(const std::string& reason) override { all_.Abort(reason); }

 private:
  collective::Transport& all_;
};

TEST(SubsetChoiceTest, AMemberThatIsGoneIsNoticedBeforeTheFirstPass) {
  NumberedTrainee trainee;
  trainee.fits_ = 0;  // no pass comes to anything
  const auto all = Alone();
  WithoutRankOne transport(*all);

  const auto choice = ChooseSubset(trainee, transport, kCraig);

  EXPECT_TRUE(absl::IsUnavailable(choice.status())) << choice.status();
}

TEST(SubsetChoiceTest, ADrawnOneIsAnotherEachTime) {
  NumberedTrainee trainee;
  ChoiceOptions random{.subset = {.kind = engine::SubsetKind::kRandom, .fraction = 0.1}};
  const auto first = ChooseSubset(trainee, *Alone(), random);
  random.former = 1;
  const auto second = ChooseSubset(trainee, *Alone(), random);

  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->subset->number, 1u);
  EXPECT_EQ(second->subset->number, 2u);
  EXPECT_NE(first->subset->samples, second->subset->samples);
  EXPECT_THAT(first->subset->weights, IsEmpty());
  EXPECT_EQ(first->facts, "10 of 100 samples, drawn");
}

}  // namespace
}  // namespace tactus::worker
