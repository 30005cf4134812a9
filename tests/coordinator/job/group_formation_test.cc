#include "coordinator/job/group_formation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;

GroupFormation Loaded(const std::vector<std::uint64_t>& train_samples) {
  GroupFormation formation(static_cast<std::uint32_t>(train_samples.size()));
  for (std::uint32_t rank = 0; rank < train_samples.size(); ++rank) {
    formation.SetReady(rank, {.parameters = 1, .train_samples = train_samples[rank]});
  }
  return formation;
}

TEST(GroupFormationTest, NodesAreNumberedInOrderOfFirstAppearance) {
  EXPECT_THAT(NodesOf({{.node = "b"}, {.node = "a"}, {.node = "b"}, {.node = "c"}}),
              ElementsAre(0u, 1u, 0u, 2u));
}

TEST(GroupFormationTest, TheLastReadyIsTrueAndARepeatedOneIsNot) {
  GroupFormation formation(2);

  EXPECT_FALSE(formation.SetReady(1, Ready()));
  EXPECT_FALSE(formation.SetReady(1, Ready()));
  EXPECT_THAT(formation.Missing(), ElementsAre(0u));
  EXPECT_TRUE(formation.SetReady(0, Ready()));
}

TEST(GroupFormationTest, EqualCountsAreNoMismatch) {
  EXPECT_FALSE(Loaded({5, 5, 5}).FindMismatch(false).has_value());
}

TEST(GroupFormationTest, TheOddOneIsTheOneThatDiffersFromMost) {
  const std::optional<Mismatch> odd = Loaded({4, 5, 5}).FindMismatch(false);

  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->rank, 0u);
  EXPECT_EQ(odd->reference, 1u);
  EXPECT_EQ(odd->found, 4u);
  EXPECT_EQ(odd->expected, 5u);
  EXPECT_EQ(odd->field, "data");
}

TEST(GroupFormationTest, OnATieTheLowestRankIsRight) {
  const std::optional<Mismatch> odd = Loaded({4, 5}).FindMismatch(false);

  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->rank, 1u);
  EXPECT_EQ(odd->reference, 0u);
}

TEST(GroupFormationTest, DifferentModelsBlameTheModel) {
  GroupFormation formation(2);
  formation.SetReady(0, {.parameters = 1, .train_samples = 3});
  formation.SetReady(1, {.parameters = 2, .train_samples = 4});

  EXPECT_EQ(formation.FindMismatch(false)->field, "model");
}

TEST(GroupFormationTest, AnEncodingIsKnownThatAllKnow) {
  GroupFormation formation(2);
  formation.SetReady(0, {.encodings = {"dense", "float16", "dq", "of a newer version"}});
  formation.SetReady(1, {.encodings = {"adacomp", "dq", "of a newer version"}});
  formation.Begin(1);
  GroupFormation older(2);
  older.SetReady(0, {.encodings = {"float16"}});
  older.SetReady(1, {});
  older.Begin(1);

  EXPECT_THAT(formation.encodings(), ElementsAre(policies::Encoding::kDq));
  EXPECT_THAT(older.encodings(), testing::IsEmpty());
}

TEST(GroupFormationTest, EndpointsCountOnlyForTheGenerationThatBegan) {
  GroupFormation formation = Loaded({5, 5});
  EXPECT_FALSE(formation.SetEndpoint(0, {.generation = 3, .endpoint = "early"}));
  formation.Begin(3);

  EXPECT_FALSE(formation.SetEndpoint(0, {.generation = 2, .endpoint = "old"}));
  EXPECT_FALSE(formation.SetEndpoint(0, {.generation = 3, .endpoint = "x"}));
  EXPECT_THAT(formation.Missing(), ElementsAre(1u));
  EXPECT_TRUE(formation.SetEndpoint(1, {.generation = 3, .endpoint = "y"}));

  EXPECT_EQ(formation.phase(), GroupFormation::Phase::kFormed);
  EXPECT_THAT(formation.endpoints(), ElementsAre("x", "y"));
  EXPECT_EQ(formation.loaded().train_samples, 5u);
}

}  // namespace
}  // namespace tactus::job
