#include "agent/worker/mesh_member.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/worker/checkpoint_file.h"
#include "cuda/ops/segments.h"

namespace tactus::worker {
namespace {

constexpr std::size_t kCut = 16;     // of each member
constexpr std::size_t kCopied = 16;  // the same on both

// The second of two members, each of which has a half of one tensor and all of the other.
class Halves final : public ModelParts {
 public:
  const collective::MeshShape& shape() const override { return shape_; }
  absl::StatusOr<bool> Join(const collective::MeshGroups&) override { return false; }
  const cuda::SegmentTable& dense_segments() const override { return dense_; }
  const std::vector<bool>& counts() const override { return counts_; }
  const std::vector<bool>& copies() const override { return copies_; }
  absl::StatusOr<std::vector<float>> Gather(std::span<const float>) override {
    return absl::UnimplementedError("");
  }
  std::vector<float> Cut(std::span<const float> dense) const override {
    return {dense.begin() + kCut, dense.end()};
  }
  std::vector<float> PutTogether(std::span<const std::span<const float>> by_rank) const override {
    std::vector<float> dense(by_rank[0].begin(), by_rank[0].begin() + kCut);
    dense.insert(dense.end(), by_rank[1].begin(), by_rank[1].end());
    return dense;
  }
  absl::StatusOr<std::vector<std::string>> WriteDense(std::span<const float>,
                                                      const std::string&) override {
    return absl::UnimplementedError("");
  }

 private:
  const collective::MeshShape shape_{.rows = 1, .columns = 2};
  const cuda::SegmentTable dense_{};
  const std::vector<bool> counts_{true, false};
  const std::vector<bool> copies_{false, true};
};

// As many of each value.
std::vector<float> Values(const std::vector<std::pair<std::size_t, float>>& runs) {
  std::vector<float> values;
  for (const auto& [count, value] : runs) values.insert(values.end(), count, value);
  return values;
}

TEST(MeshMemberTest, WhatMembersWereLeftWithBecomesThatOfReplicas) {
  Halves parts;
  const MeshMember member(parts);
  Checkpoint checkpoint;
  for (const float rank : {1.0f, 2.0f, 3.0f, 4.0f}) {
    checkpoint.residuals.push_back(
        {{"adacomp", Values({{kCut, rank}, {kCopied, 0}})}, {"adacomp_of", {24, 1}}});
  }

  member.MakeWhole(checkpoint);

  ASSERT_EQ(checkpoint.residuals.size(), 2u);
  EXPECT_EQ(checkpoint.residuals[0].at("adacomp"), Values({{kCut, 1}, {kCut, 2}, {kCopied, 0}}));
  EXPECT_EQ(checkpoint.residuals[1].at("adacomp"), Values({{kCut, 3}, {kCut, 4}, {kCopied, 0}}));
  for (const engine::Residuals& replica : checkpoint.residuals) {
    EXPECT_EQ(replica.at("adacomp_of"), (std::vector<float>{24, 1}));
  }
}

TEST(MeshMemberTest, NothingIsLeftOutWhereNoEncodingIs) {
  Halves parts;
  Checkpoint checkpoint;

  MeshMember(parts).MakeWhole(checkpoint);

  EXPECT_TRUE(checkpoint.residuals.empty());
}

// Of a worker that had all of the model.
TEST(MeshMemberTest, AMemberHasItsPartOfAResidualAndNothingOfCopies) {
  Halves parts;
  const MeshMember member(parts);
  cuda::SegmentTable segments = {{.name = "cut", .length = kCut, .shape = {kCut}},
                                 {.name = "copied", .length = kCopied, .shape = {kCopied}}};
  cuda::AssignOffsets(segments);

  const engine::Residuals own = member.Cut(
      {{"sketch", Values({{kCut, 1}, {kCut, 2}, {kCopied, 3}})}, {"sketch_of", {8, 0}}}, segments);

  EXPECT_EQ(own.at("sketch"), Values({{kCut, 2}, {kCopied, 0}}));
  EXPECT_EQ(own.at("sketch_of"), (std::vector<float>{8, 0}));
}

// Of a job by signs that a mesh goes on from.
TEST(MeshMemberTest, AMemberHasItsPartOfWhatAFrozenMomentIsThawedFrom) {
  Halves parts;
  Checkpoint checkpoint;
  checkpoint.parameters = Values({{kCut, 1}, {kCut, 2}, {kCopied, 3}});
  checkpoint.state.one_bit.frozen = true;
  checkpoint.state.fresh_moment = Values({{kCut, 4}, {kCut, 5}, {kCopied, 6}});

  MeshMember(parts).Cut(checkpoint);

  EXPECT_EQ(checkpoint.parameters, Values({{kCut, 2}, {kCopied, 3}}));
  EXPECT_EQ(checkpoint.state.fresh_moment, Values({{kCut, 5}, {kCopied, 6}}));
}

}  // namespace
}  // namespace tactus::worker
