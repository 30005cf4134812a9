#include "agent/torchscript/split_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/mesh_groups.h"

namespace tactus::torchscript {
namespace {

using testing::ElementsAre;

// Passes that are counted.
class CountedPasses final : public Passes {
 public:
  absl::Status TryOut(std::span<const std::uint64_t>) override { return absl::OkStatus(); }
  absl::Status ForwardBackward(std::span<const std::uint64_t> indices,
                               std::span<const std::uint64_t> next,
                               const SegmentReady& ready) override {
    EXPECT_FALSE(bool{ready});
    sizes_.push_back(indices.size());
    next_.push_back(next.size());
    for (const std::uint64_t index : indices) EXPECT_EQ(index, seen_++);
    return absl::OkStatus();
  }
  void BeginSum() override { ++sums_; }
  void GoBack() override { ADD_FAILURE() << "nothing is tried again"; }

  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> next_;
  std::uint64_t seen_ = 0;
  int sums_ = 0;
};

// Of two members with so many samples each.
std::vector<CountedPasses> RunTwo(std::vector<std::size_t> samples, std::uint32_t ceiling) {
  model::ModelOptions options{.builtin = "bytes-lm",
                              .mesh = {.kind = model::MeshKind::k1d, .devices = 2}};
  options.width = 8;
  options.heads = 2;
  options.layers = 1;
  options.context = 8;
  std::vector<collective::MeshGroups> groups =
      collective::MakeInProcessMeshes(2, {.rows = 1, .columns = 2}, [] { return Instant{}; });
  std::vector<CountedPasses> passes(2);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto model = *model::PartitionedModel::OpenApart(options);
      SplitModel split(*model);
      ASSERT_TRUE(split.Join(groups[rank]).ok());
      std::vector<std::uint64_t> indices(samples[rank]);
      std::iota(indices.begin(), indices.end(), 0);
      const std::vector<std::uint64_t> likely_next(7);
      EXPECT_TRUE(split.Run(passes[rank], indices, ceiling, likely_next).ok());
    });
  }
  threads.clear();
  return passes;
}

TEST(SplitModelTest, AllMakeAsManyPassesAsWhoHasMostSamples) {
  const std::vector<CountedPasses> passes = RunTwo({5, 2}, 2);
  EXPECT_THAT(passes[0].sizes_, ElementsAre(2, 2, 1));
  EXPECT_THAT(passes[1].sizes_, ElementsAre(2, 0, 0));
  EXPECT_THAT(passes[0].next_, ElementsAre(2, 1, 7));
  EXPECT_THAT(passes[1].next_, ElementsAre(0, 0, 7));
  for (const CountedPasses& member : passes) EXPECT_EQ(member.sums_, 1);
}

TEST(SplitModelTest, WithoutSamplesThereIsOnePassThatMakesTheSumZero) {
  for (const CountedPasses& member : RunTwo({0, 0}, 64)) {
    EXPECT_THAT(member.sizes_, ElementsAre(0));
  }
}

}  // namespace
}  // namespace tactus::torchscript
