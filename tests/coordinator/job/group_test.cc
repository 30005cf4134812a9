#include "coordinator/job/group.h"

#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

const std::vector<MemberRecord> kMembers = {{.worker = WorkerId{1}, .node = "a"},
                                            {.worker = WorkerId{2}, .node = "a"},
                                            {.worker = WorkerId{3}, .node = "b"}};

const Departure kKilled = WorkerExited{.signal = 9};

TEST(GroupTest, WhoIsGoneIsSentNothingAndStoppedByNobody) {
  Group group(kMembers, true);
  Actions actions;

  group.Depart({1}, kKilled);
  group.SendToAll(StopMessage{}, actions);
  group.Stop(Seconds(1), actions);
  group.Stop(Seconds(1), actions);

  EXPECT_EQ(Sent<StopMessage>(actions).size(), 2u);
  EXPECT_EQ(Stopped(actions), (std::vector<WorkerId>{WorkerId{1}, WorkerId{3}}));
  EXPECT_EQ(group.LiveOn("a"), std::vector<std::uint32_t>{0});
}

TEST(GroupTest, WhoIsNotBackAfterARestartIsGivenUpWhenAllAreStopped) {
  Group group(kMembers, false);
  Actions actions;

  group.Return(0);
  group.SetFinished(2, Finished(2));
  const std::vector<MemberRecord> absent = group.Absent();
  group.Stop(Seconds(1), actions);

  ASSERT_EQ(absent.size(), 1u);
  EXPECT_EQ(absent.front().worker, WorkerId{2});
  EXPECT_EQ(Stopped(actions), std::vector<WorkerId>{WorkerId{1}});
  EXPECT_FALSE(group.Live(1));
}

TEST(GroupTest, AKilledWorkerIsAVerdictAndItsPeersWordsAreNot) {
  Group group(kMembers, true);

  EXPECT_FALSE(group.OnFailed(0, {.message = "reset by peer", .lost_generation = 1}, At(1)));
  EXPECT_EQ(group.SuspectSince(), At(1));
  group.Depart({1}, kKilled);
  const auto verdict = group.Judge({1}, kKilled, At(2));

  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->worker, WorkerId{2});
}

TEST(GroupTest, AnExitAfterTheLastWordIsNoFailureButTheLossOfTheLeadersNodeIs) {
  Group group(kMembers, true);
  for (std::uint32_t rank = 0; rank < 3; ++rank) group.SetFinished(rank, Finished(rank));

  EXPECT_FALSE(group.Judge({0}, WorkerExited{.worker = WorkerId{1}, .exit_code = 1}, At(1)));
  EXPECT_FALSE(group.Judge({2}, NodeLost{.node = "b"}, At(1)));
  EXPECT_FALSE(group.SuspectSince());
  EXPECT_TRUE(group.Judge({0, 1}, NodeLost{.node = "a"}, At(1)));
}

// Their agents were started again since.
TEST(GroupTest, WhoHasSaidItsLastWordAndOwesNothingEndedWellWhateverBecameOfItsAgent) {
  Group group(kMembers, false);
  group.SetFinished(0, {.files = {"model.pt"}});
  group.SetFinished(1, Finished(1));

  EXPECT_FALSE(group.EndedWell(0, 77));  // its file is missing
  EXPECT_TRUE(group.EndedWell(1, 77));
  EXPECT_FALSE(group.EndedWell(2, 77));  // it was still training

  group.results().AddArtifact({.path = "model.pt", .size_bytes = 1});
  EXPECT_TRUE(group.EndedWell(0, 77));
}

TEST(GroupTest, ALastWordWithdrawsWhatSpokeAgainstItsWorker) {
  Group group(kMembers, true);
  group.OnFailed(0, {.message = "reset by peer", .lost_generation = 1}, At(1));

  group.SetFinished(0, Finished(0));

  EXPECT_FALSE(group.SuspectSince());
}

}  // namespace
}  // namespace tactus::job
