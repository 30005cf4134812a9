#include "agent/torchscript/micro_batches.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tactus::torchscript {
namespace {

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

// Where a pass that is too large fails.
enum class Fails { kInForward, kHalfWayBack };

// Passes over samples whose gradients are such that any other cut or order of a sum shows in its
// bits.
class FakePasses final : public Passes {
 public:
  explicit FakePasses(std::size_t samples_max = kAny, Fails fails = Fails::kInForward)
      : samples_max_(samples_max), fails_(fails) {}

  absl::Status TryOut(std::span<const std::uint64_t> indices) override {
    if (indices.size() > samples_max_) return OutOfMemory();
    tried_.insert(tried_.end(), indices.begin(), indices.end());
    return absl::OkStatus();
  }

  absl::Status ForwardBackward(std::span<const std::uint64_t> indices,
                               std::span<const std::uint64_t> next,
                               const SegmentReady& ready) override {
    sizes_.push_back(indices.size());
    announced_.push_back(bool{ready});
    next_.emplace_back(next.begin(), next.end());
    if (broken_) return absl::InternalError("it broke");
    const bool too_large = indices.size() > samples_max_;
    if (too_large && fails_ == Fails::kInForward) return OutOfMemory();
    for (const std::uint64_t index : indices) loss_sum_ += static_cast<double>(index);
    for (std::size_t segment = 0; segment < gradients_.size(); ++segment) {
      if (too_large && fails_ == Fails::kHalfWayBack && segment == gradients_.size() / 2) {
        return OutOfMemory();
      }
      float sum = 0;
      for (const std::uint64_t index : indices) sum += Gradient(index, segment);
      gradients_[segment] += sum;
      if (ready) ready(segment);
    }
    return absl::OkStatus();
  }

  void BeginSum() override { kept_ = loss_sum_; }

  void GoBack() override {
    std::ranges::fill(gradients_, 0.0f);
    loss_sum_ = kept_;
    ++returns_;
  }

  std::size_t samples_max_;
  Fails fails_;
  bool broken_ = false;
  std::vector<float> gradients_ = std::vector<float>(4);
  std::vector<std::size_t> sizes_;  // of all passes, the failed ones too
  std::vector<bool> announced_;     // whether they were given a `ready`
  std::vector<std::vector<std::uint64_t>> next_;
  std::vector<std::uint64_t> tried_;  // of TryOut
  double loss_sum_ = 0;
  int returns_ = 0;

 private:
  static absl::Status OutOfMemory() {
    return absl::ResourceExhaustedError("tried to allocate 2.00 GiB");
  }

  static float Gradient(std::uint64_t index, std::size_t segment) {
    return 1.0f / static_cast<float>(3 * index + segment + 1);
  }

  double kept_ = 0;
};

engine::Batch BatchOf(std::uint64_t first, std::size_t count, bool first_of_sum = true) {
  engine::Batch batch{.round = 7, .first_of_sum = first_of_sum};
  batch.indices.resize(count);
  std::iota(batch.indices.begin(), batch.indices.end(), first);
  return batch;
}

// Batches of a sum, of which the last ones are larger than those before.
std::vector<engine::Batch> Sum() {
  return {BatchOf(0, 5), BatchOf(5, 4, false), BatchOf(9, 12, false), BatchOf(21, 9, false)};
}

class MicroBatchesTest : public testing::TestWithParam<Fails> {};

TEST_P(MicroBatchesTest, AfterOutOfMemoryTheSumsAreThoseOfPiecesThatWereSmallFromTheStart) {
  FakePasses small;
  MicroBatches from_the_start(small, 3, {});
  FakePasses passes(5, GetParam());
  std::vector<std::uint32_t> ceilings;
  MicroBatches micro_batches(passes, 64, [&](std::uint32_t c) { ceilings.push_back(c); });

  for (const engine::Batch& batch : Sum()) {
    const absl::Status status = micro_batches.Run(batch, {});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(from_the_start.Run(batch, {}).ok());
    EXPECT_EQ(passes.loss_sum_, small.loss_sum_);
  }

  EXPECT_EQ(passes.gradients_, small.gradients_);
  EXPECT_EQ(ceilings, (std::vector<std::uint32_t>{6, 3}));  // 12 samples failed, then 6
  EXPECT_EQ(passes.returns_, 2);
}

// A window of local steps: each is a sum of gradients, and all add to the losses.
TEST_P(MicroBatchesTest, LossesOfFormerStepsOutliveAPassThatFails) {
  FakePasses passes(5, GetParam());
  MicroBatches micro_batches(passes, 64, {});
  ASSERT_TRUE(micro_batches.Run(BatchOf(0, 4), {}).ok());
  ASSERT_TRUE(micro_batches.Run(BatchOf(4, 4), {}).ok());

  ASSERT_TRUE(micro_batches.Run(BatchOf(8, 12), {}).ok());
  EXPECT_EQ(passes.loss_sum_, 19 * 20 / 2);

  passes.samples_max_ = 1;  // of a size that had gone through
  ASSERT_TRUE(micro_batches.Run(BatchOf(20, 3), {}).ok());
  EXPECT_EQ(passes.loss_sum_, 22 * 23 / 2);
}

TEST_P(MicroBatchesTest, TheCeilingIsRememberedAndWhatIsOverIsNotRepeated) {
  FakePasses passes(5, GetParam());
  MicroBatches micro_batches(passes, 64, {});
  ASSERT_TRUE(micro_batches.Run(BatchOf(0, 12), {}).ok());
  ASSERT_EQ(micro_batches.ceiling(), 3u);
  passes.sizes_.clear();

  ASSERT_TRUE(micro_batches.Run(BatchOf(12, 8), {}).ok());

  EXPECT_EQ(passes.sizes_, (std::vector<std::size_t>{3, 3, 2}));
  EXPECT_EQ(passes.returns_, 2);

  passes.samples_max_ = 2;
  passes.sizes_.clear();
  ASSERT_TRUE(micro_batches.Run(BatchOf(20, 3), {}).ok());
  EXPECT_EQ(passes.sizes_, (std::vector<std::size_t>{3, 1, 1, 1}));
}

INSTANTIATE_TEST_SUITE_P(Places, MicroBatchesTest,
                         testing::Values(Fails::kInForward, Fails::kHalfWayBack));

TEST(MicroBatchesTest, ASampleThatDoesNotFitAloneIsFinalAndSaysWhatToDo) {
  FakePasses passes(0);
  MicroBatches micro_batches(passes, 64, {});

  const absl::Status status = micro_batches.Run(BatchOf(0, 10), {});

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "out of memory in round 7 in a batch of 10 samples, taken one by one, so that "
            "adapt.batch.micro_batch cannot help; use a smaller model or a device with more free "
            "memory: tried to allocate 2.00 GiB");
  EXPECT_EQ(passes.sizes_, (std::vector<std::size_t>{10, 5, 2, 1}));
}

TEST(MicroBatchesTest, OtherErrorsAreReturnedAsTheyAre) {
  FakePasses passes;
  passes.broken_ = true;
  MicroBatches micro_batches(passes, 4, {});

  EXPECT_EQ(micro_batches.Run(BatchOf(0, 9), {}), absl::InternalError("it broke"));
  EXPECT_EQ(passes.sizes_.size(), 1u);
}

// Runs batches of the given sizes, each a sum of its own, and returns which passes could announce
// segments.
std::vector<bool> AnnouncedPasses(MicroBatches& micro_batches, FakePasses& passes,
                                  const std::vector<std::size_t>& sizes) {
  passes.announced_.clear();
  for (const std::size_t size : sizes) {
    EXPECT_TRUE(micro_batches.Run(BatchOf(0, size), {.ready = [](std::size_t) {}}).ok());
  }
  return passes.announced_;
}

TEST(MicroBatchesOverlapTest, APassOfANewSizeAnnouncesNothing) {
  FakePasses passes;
  MicroBatches micro_batches(passes, 64, {});

  EXPECT_EQ(AnnouncedPasses(micro_batches, passes, {4, 4, 3, 6, 6, 5}),
            (std::vector<bool>{false, true, true, false, true, true}));
}

TEST(MicroBatchesOverlapTest, OfAnAnnouncedBatchOnlyTheLastPieceAnnounces) {
  FakePasses passes;
  MicroBatches micro_batches(passes, 4, {});

  EXPECT_EQ(AnnouncedPasses(micro_batches, passes, {10}), (std::vector<bool>{false, false, true}));
}

TEST(MicroBatchesOverlapTest, ANewCeilingHasToProveItself) {
  FakePasses passes;
  MicroBatches micro_batches(passes, 64, {});
  AnnouncedPasses(micro_batches, passes, {8});
  passes.samples_max_ = 4;

  // Of 8 samples, which fails; two of 4, of which the first is proof; one of 4.
  EXPECT_EQ(AnnouncedPasses(micro_batches, passes, {8, 4}),
            (std::vector<bool>{true, false, true, true}));

  // Of 4 samples, which fails before it announces anything; two of 2.
  passes.samples_max_ = 2;
  EXPECT_EQ(AnnouncedPasses(micro_batches, passes, {4}), (std::vector<bool>{true, false, true}));
}

TEST(MicroBatchesOverlapTest, APassWhoseReductionsBeganIsNotRepeated) {
  FakePasses passes(kAny, Fails::kHalfWayBack);
  MicroBatches micro_batches(passes, 64, {});
  AnnouncedPasses(micro_batches, passes, {8});
  passes.samples_max_ = 4;  // something else took the memory
  passes.sizes_.clear();

  const absl::Status status = micro_batches.Run(BatchOf(0, 8), {.ready = [](std::size_t) {}});

  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "out of memory in round 7 in a batch of 8 samples whose reductions had begun, so "
            "that it cannot be repeated in smaller pieces; set adapt.batch.micro_batch below 8, "
            "or see what else takes the device's memory: tried to allocate 2.00 GiB");
  EXPECT_EQ(passes.sizes_.size(), 1u);
  EXPECT_EQ(passes.returns_, 0);
}

TEST(MicroBatchesTest, EveryPassIsToldTheNext) {
  FakePasses passes;
  MicroBatches micro_batches(passes, 3, {});

  ASSERT_TRUE(micro_batches.Run(BatchOf(0, 8), {.likely_next = {70, 71, 72, 73}}).ok());
  ASSERT_TRUE(micro_batches.Run(BatchOf(0, 2), {}).ok());

  EXPECT_EQ(passes.next_,
            (std::vector<std::vector<std::uint64_t>>{{3, 4, 5}, {6, 7}, {70, 71, 72}, {}}));
}

TEST(MicroBatchesTest, TryingOutHalvesTheCeilingToo) {
  FakePasses passes(3);
  std::vector<std::uint32_t> ceilings;
  MicroBatches micro_batches(passes, 64, [&](std::uint32_t c) { ceilings.push_back(c); });
  const engine::Batch batch = BatchOf(0, 10);

  ASSERT_TRUE(micro_batches.TryOut(batch.indices).ok());

  EXPECT_EQ(passes.tried_, batch.indices);
  EXPECT_EQ(ceilings, (std::vector<std::uint32_t>{5, 2}));
  passes.samples_max_ = 0;
  const absl::Status status = micro_batches.TryOut(batch.indices);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(std::string(status.message()).find("trying the model out on 10 samples"),
            std::string::npos);
}

}  // namespace
}  // namespace tactus::torchscript
