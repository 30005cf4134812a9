// Parts of dense tensors, and meshes that cannot be.

#include "agent/model/parallel/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/agent/model/parallel/mesh_support.h"

namespace tactus::model {
namespace {

using collective::MeshShape;
using collective::Place;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Counted(std::size_t length) {
  std::vector<float> values(length);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

std::size_t LengthOf(const std::vector<std::int64_t>& shape) {
  std::size_t length = 1;
  for (const std::int64_t size : shape) length *= static_cast<std::size_t>(size);
  return length;
}

std::vector<float> Taken(const Part& part) {
  std::vector<float> block(LengthOf(part.Shape()), -1);
  CopyPart(part, Counted(LengthOf(part.dense)), block);
  return block;
}

TEST(PartTest, IsABlockOfRowsAndColumns) {
  EXPECT_THAT(Taken({.dense = {4, 4}, .rows = {2, 1}, .columns = {2, 0}}),
              ElementsAre(9, 10, 13, 14));
}

TEST(PartTest, HeadsOfQueriesKeysAndValuesAreCutEachForItself) {
  EXPECT_THAT(Taken({.dense = {6, 2}, .groups = 3, .rows = {2, 1}}),
              ElementsAre(3, 4, 7, 8, 11, 12));
  EXPECT_THAT(Taken({.dense = {6}, .groups = 3, .rows = {2, 0}}), ElementsAre(1, 3, 5));
}

TEST(PartTest, RowsThatDoNotExistAreZero) {
  const Part last{.dense = {5, 1}, .rows = {2, 1}};
  EXPECT_THAT(last.Shape(), ElementsAre(3, 1));
  EXPECT_THAT(Taken(last), ElementsAre(4, 5, 0));
  EXPECT_EQ(last.CountReal(), 2U);
}

// bytes-lm's kinds of tensors, w = 24.
const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& Tensors() {
  static const std::vector<std::pair<std::string, std::vector<std::int64_t>>> tensors = {
      {"token.weight", {256, 24}},
      {"position.weight", {8, 24}},
      {"blocks.0.norm1.weight", {24}},
      {"blocks.11.qkv.weight", {72, 24}},
      {"blocks.11.qkv.bias", {72}},
      {"blocks.0.out.weight", {24, 24}},
      {"blocks.0.out.bias", {24}},
      {"blocks.0.norm2.bias", {24}},
      {"blocks.0.up.weight", {96, 24}},
      {"blocks.0.up.bias", {96}},
      {"blocks.0.down.weight", {24, 96}},
      {"blocks.0.down.bias", {24}},
      {"norm.weight", {24}},
      {"head.weight", {256, 24}},
      {"head.bias", {256}}};
  return tensors;
}

struct SplitKind {
  MeshKind kind;
  MeshShape shape;
};

TEST(PartTest, PartsOfAllMembersAreTheDenseTensor) {
  for (const SplitKind& split :
       {SplitKind{MeshKind::kNone, {1, 1}}, SplitKind{MeshKind::k1d, {1, 4}},
        SplitKind{MeshKind::k2d, {2, 2}}, SplitKind{MeshKind::k2d, {3, 3}}}) {
    for (const auto& [name, shape] : Tensors()) {
      std::vector<float> again(LengthOf(shape), -1);
      for (int rank = 0; rank < split.shape.devices(); ++rank) {
        const Part part =
            PartOf(name, shape, split.kind, split.shape, collective::PlaceOf(rank, split.shape));
        PlacePart(part, Taken(part), again);
      }
      EXPECT_EQ(again, Counted(again.size())) << name;
    }
  }
}

// 2-D, every element once but for what a column shares: q times.
TEST(PartTest, InTwoDimensionsOnlyBiasesNormsAndPositionsAreSharedByAColumn) {
  const MeshShape shape{3, 3};
  for (const auto& [name, dense] : Tensors()) {
    std::uint64_t held = 0;
    bool shared = false;
    for (int rank = 0; rank < 9; ++rank) {
      const Part part = PartOf(name, dense, MeshKind::k2d, shape, collective::PlaceOf(rank, shape));
      held += part.CountReal();
      shared = part.shared_by_column;
    }
    EXPECT_EQ(shared, dense.size() == 1 || name == "position.weight") << name;
    EXPECT_EQ(held, LengthOf(dense) * (shared ? 3 : 1)) << name;
  }
}

std::string Refused(const ModelOptions& options) {
  const absl::StatusOr<MeshShape> shape = MeshShapeOf(options);
  EXPECT_FALSE(shape.ok());
  return std::string(shape.status().message());
}

ModelOptions Asked(MeshKind kind, std::uint32_t devices, std::uint32_t heads = 4) {
  ModelOptions options{.builtin = "bytes-lm", .mesh = {.kind = kind, .devices = devices}};
  options.width = 48;
  options.heads = heads;
  return options;
}

TEST(MeshShapeTest, IsASquareOrALine) {
  EXPECT_EQ(*MeshShapeOf(Asked(MeshKind::k2d, 4)), (MeshShape{2, 2}));
  EXPECT_EQ(*MeshShapeOf(Asked(MeshKind::k2d, 1)), (MeshShape{1, 1}));
  EXPECT_EQ(*MeshShapeOf(Asked(MeshKind::k1d, 4)), (MeshShape{1, 4}));
  EXPECT_EQ(*MeshShapeOf(Asked(MeshKind::kNone, 1)), (MeshShape{1, 1}));
  EXPECT_EQ(*MeshShapeOf(Asked(MeshKind::k2d, 9, 6)), (MeshShape{3, 3}));
}

TEST(MeshShapeTest, NoSquareIsRefusedWithTheNearestOnes) {
  const std::string six = Refused(Asked(MeshKind::k2d, 6));
  EXPECT_THAT(six, HasSubstr("model.options.mesh.devices: found 6"));
  EXPECT_THAT(six, HasSubstr("nearest: 4 or 9, or the kind 1d"));
  EXPECT_THAT(Refused(Asked(MeshKind::k2d, 2)), HasSubstr("nearest: 1 or 4"));
}

TEST(MeshShapeTest, HeadsThatCannotBeCutAreRefusedWithTheNearestChoices) {
  const std::string nine = Refused(Asked(MeshKind::k2d, 9));
  EXPECT_THAT(nine, HasSubstr("model.options.heads: found 4, which cannot be split in 3"));
  EXPECT_THAT(nine, HasSubstr("nearest: 3 or 6"));
  EXPECT_THAT(nine, HasSubstr("model.options.mesh.devices 4 or 16"));
  EXPECT_THAT(Refused(Asked(MeshKind::k1d, 3)), HasSubstr("model.options.mesh.devices 2 or 4"));
  EXPECT_THAT(Refused(Asked(MeshKind::k1d, 8)),
              HasSubstr("nearest: 8, or model.options.mesh.devices 4"));
}

TEST(MeshShapeTest, OtherMistakesAreNamedAtTheirField) {
  EXPECT_THAT(Refused(Asked(MeshKind::k1d, 0)), HasSubstr("devices: found 0; allowed: 1 to 1024"));
  EXPECT_THAT(Refused(Asked(MeshKind::kNone, 4)), HasSubstr("mesh.kind is none"));
  ModelOptions other = Asked(MeshKind::k1d, 2);
  other.builtin = "resnet18";
  other.heads.reset();
  EXPECT_THAT(Refused(other), HasSubstr("model.options.mesh.kind: only bytes-lm"));
}

}  // namespace
}  // namespace tactus::model
