// What a worker does whose group is lost under it: it keeps what it holds, and goes on in the next.

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/life/life_fixture.h"

namespace tactus::life {
namespace {

using protocol::StopMessage;
using testing::AllOf;
using testing::Contains;
using testing::Not;

class RegroupedLifeTest : public LifeTest {
 protected:
  using World = ScriptedWorld;

  // In the round after so many, once.
  void LoseGroupAfter(std::uint64_t rounds) {
    world_.on_compute = [this, rounds, over = false](const engine::Batch& batch) mutable {
      if (batch.round == rounds && !std::exchange(over, true)) world_.transport().Abort("gone");
    };
  }
};

TEST_F(RegroupedLifeTest, AfterALossItGoesOnWithTheNextGroup) {
  world_.disk = World::Disk::kSlow;
  LoseGroupAfter(1);
  world_.mail = {World::Group(), World::Peers(), World::NextGroup(4, 1), World::Peers(4)};

  std::vector<std::string> expected = {
      "step 1", "abandon",
      "leave",  "says lost 3 after 1: the group was lost: rank 0: gone",
      "meet",   "says endpoint here of 4",
      "go on"};
  for (const std::string& line : Round(1)) expected.push_back(line);
  for (const char* const line : {"agree over 8", "copy 2", "validate", "keep result", "discard",
                                 "says evaluated", "says finished model.pt (2 rounds completed)"}) {
    expected.emplace_back(line);
  }
  EXPECT_THAT(Run(), AfterRounds(1, expected));
  EXPECT_FALSE(failed_);
}

// Not in the next collective, which may be far.
TEST_F(RegroupedLifeTest, WhoComputesWhileAnotherIsGoneGivesTheGroupUp) {
  world_.options.micro_batch = 2;  // two a round
  world_.on_compute = [this](const engine::Batch& batch) {
    if (batch.round == 1) world_.gone = {1};
  };

  EXPECT_THAT(Run(), AllOf(Contains("step 1").Times(1),
                           Contains("says lost 3 after 1: the group was lost: rank 1: closed the "
                                    "connection, by 1")));
}

TEST_F(RegroupedLifeTest, WhatIsSaidOfOlderGroupsIsLeftUnread) {
  LoseGroupAfter(1);
  world_.mail = {World::Group(),         World::Peers(), World::Group(), World::Group(0, 2),
                 World::NextGroup(4, 1), World::Peers(), World::Peers(4)};

  EXPECT_THAT(Run(), AllOf(Contains("meet").Times(1),
                           Contains("says finished model.pt (2 rounds completed)")));
}

// It was sent before anybody knew that the group is no more.
TEST_F(RegroupedLifeTest, AskedToSuspendWithoutAGroupItAwaitsTheNext) {
  LoseGroupAfter(1);
  world_.mail = {World::Group(), World::Peers(), StopMessage{.reason = "enough", .suspend = true},
                 World::NextGroup(4, 1), World::Peers(4)};

  EXPECT_THAT(Run(),
              AllOf(Contains("go on"), Contains("says finished model.pt (2 rounds completed)")));
}

TEST_F(RegroupedLifeTest, AskedToDiscardWithoutAGroupItGoesWithoutAWord) {
  LoseGroupAfter(1);
  world_.mail = {World::Group(), World::Peers(), StopMessage{.reason = "enough", .discard = true}};

  EXPECT_EQ(Run().back(), "says lost 3 after 1: the group was lost: rank 0: gone");
  EXPECT_FALSE(failed_);
}

TEST_F(RegroupedLifeTest, WhatItWasAskedForBeforeTheLossIsVotedForAfterIt) {
  Stop({.reason = "cancelled"});
  LoseGroupAfter(0);
  world_.mail = {World::Group(), World::Peers(), World::NextGroup(4, 0), World::Peers(4)};

  EXPECT_THAT(Run(), AllOf(Contains("step 0").Times(2), Not(Contains("step 1")),
                           Contains("says finished model.pt checkpoint.safetensors (cancelled)")));
}

TEST_F(RegroupedLifeTest, ANewerGroupTakesThePlaceOfOneThatTrains) {
  world_.in_training = {World::NextGroup(4, 1)};
  world_.mail = {World::Group(), World::Peers(), World::Peers(4)};

  const std::vector<std::string> done = Run();

  EXPECT_THAT(done, testing::IsSupersetOf(
                        {"says lost 3 after 1: the group was lost: another group was formed",
                         "says endpoint here of 4", "go on",
                         "says finished model.pt (2 rounds completed)"}));
}

TEST_F(RegroupedLifeTest, ANewerGroupTakesThePlaceOfOneThatWaitsForEndpoints) {
  world_.mail = {World::Group(), World::NextGroup(4, 0), World::Peers(4)};

  EXPECT_THAT(Run({}), testing::IsSupersetOf(
                           {"says lost 3 after 0: the group could not be formed: nobody came",
                            "says endpoint here of 4", "go on",
                            "says finished model.pt (2 rounds completed)"}));
}

TEST_F(RegroupedLifeTest, ANewerGroupTakesThePlaceOfOneThatConnects) {
  world_.in_meeting = {World::NextGroup(4, 0)};
  world_.mail = {World::Group(), World::Peers(), World::Peers(4)};

  EXPECT_THAT(Run({}), testing::IsSupersetOf({"says lost 3 after 0: the group could not be formed: "
                                              "another group was formed",
                                              "says endpoint here of 4", "go on",
                                              "says finished model.pt (2 rounds completed)"}));
}

const StopMessage kRegroup{.reason = "one more", .suspend = true, .regroup = true};

TEST_F(RegroupedLifeTest, AskedToRegroupItLeavesAtTheRoundsEdgeAndGoesOnInTheNextGroup) {
  world_.disk = World::Disk::kSlow;
  Stop(kRegroup);
  world_.options.stop.rounds = 3;
  world_.mail = {World::Group(), World::Peers(), World::NextGroup(4, 1), World::Peers(4)};

  std::vector<std::string> expected = {
      "abandon", "leave", "says left 3 after 1: one more", "meet", "says endpoint here of 4",
      "go on"};
  for (const int round : {1, 2}) {
    for (const std::string& line : Round(round)) expected.push_back(line);
  }
  for (const char* const line : {"agree over 12", "copy 3", "validate", "keep result", "discard",
                                 "says evaluated", "says finished model.pt (3 rounds completed)"}) {
    expected.emplace_back(line);
  }
  EXPECT_THAT(Run(), AfterRounds(1, expected));
  EXPECT_FALSE(failed_);
}

TEST_F(RegroupedLifeTest, AStopConditionOfTheSameRoundWinsOverARegroup) {
  Stop(kRegroup);
  world_.options.stop.rounds = 1;

  EXPECT_THAT(Run(), Contains("says finished model.pt (1 rounds completed)"));
}

TEST_F(RegroupedLifeTest, AskedToRegroupWithoutAGroupItAwaitsOneAllTheSame) {
  LoseGroupAfter(1);
  world_.mail = {World::Group(), World::Peers(), kRegroup, World::NextGroup(4, 1), World::Peers(4)};

  EXPECT_THAT(Run(),
              AllOf(Contains("go on"), Contains("says finished model.pt (2 rounds completed)")));
}

TEST_F(RegroupedLifeTest, ARegroupThatALossForestalledIsNotVotedForAgain) {
  Stop(kRegroup);
  world_.options.stop.rounds = 4;
  LoseGroupAfter(0);
  world_.mail = {World::Group(), World::Peers(), World::NextGroup(4, 0), World::Peers(4)};

  EXPECT_THAT(Run(), AllOf(Not(Contains(testing::StartsWith("says left"))),
                           Contains("says finished model.pt (4 rounds completed)")));
}

TEST_F(RegroupedLifeTest, AGroupThatCannotMeetIsLostAfterWhatWasLoaded) {
  world_.rounds_before = 7;
  world_.meeting = Failure{.message = "connection refused", .of_group = true};

  EXPECT_THAT(Run({}), Contains("says lost 3 after 7: the group could not be formed: connection "
                                "refused"));
}

TEST_F(RegroupedLifeTest, AGroupThatIsLostInTheEvaluationIsNotTrainedAgain) {
  world_.validating = Failure{.message = "peer 1 is gone", .of_group = true};
  world_.on_validate = [this, first = true]() mutable {
    if (!std::exchange(first, false)) world_.validating.reset();
  };
  world_.mail = {World::Group(), World::Peers(), World::NextGroup(4, 2), World::Peers(4)};

  EXPECT_THAT(Run(), AllOf(Contains("validate").Times(2), Contains("step 1").Times(1),
                           Contains("says evaluated"),
                           Contains("says finished model.pt (2 rounds completed)")));
}

TEST_F(RegroupedLifeTest, RoundsOfAnotherSizeAreRefused) {
  protocol::GroupMessage group = World::Group();
  group.rounds = {0, 0, 0};
  world_.mail = {group, World::Peers()};

  EXPECT_EQ(Run({}).back(), "says failed the group's plan does not fit its size");
}

TEST_F(RegroupedLifeTest, CheckpointsGoOnUnderTheNewGenerationsName) {
  world_.checkpoints_every = Seconds(1);
  world_.options.stop.rounds = 4;
  LoseGroupAfter(2);
  world_.mail = {World::Group(), World::Peers(), World::NextGroup(4, 2), World::Peers(4)};

  EXPECT_THAT(Run(), testing::IsSupersetOf({"says checkpoint checkpoints/3-1.safetensors",
                                            "says checkpoint checkpoints/4-3.safetensors"}));
}

}  // namespace
}  // namespace tactus::life
