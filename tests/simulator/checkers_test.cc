// Every checker can say no.

#include "simulator/checkers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tactus::simulator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr GroupKey kGroup{.job = {1}, .generation = 1};

Instant At(double seconds) { return Instant{} + Seconds(seconds); }

class CheckersTest : public testing::Test {
 protected:
  CheckersTest() { checkers_.OnGroup(kGroup, 2, 4); }

  // Both members close a round of one sample each.
  void Round(std::uint64_t round, const std::vector<std::uint64_t>& samples) {
    checkers_.OnSamples(kGroup, {.round = round, .epoch = round / 2, .indices = samples});
    for (int member = 0; member < 2; ++member) {
      checkers_.OnRoundClosed(kGroup, {.round = round, .epoch = round / 2},
                              At(static_cast<double>(round)));
    }
  }
  auto Broken() {
    std::vector<std::string> what;
    for (const Violation& violation : checkers_.TakeViolations()) what.push_back(violation.what);
    return what;
  }
  static job::Actions Persist(const job::JobRecord& record) { return {job::PersistJob{record}}; }

  Checkers checkers_;
};

TEST_F(CheckersTest, AnAttemptThatGoesOnFromWhatNobodyDidIsAViolation) {
  job::JobRecord record{.id = {1}, .state_reason = "why", .revision = 1};
  record.attempts = {{.number = 1, .end_time = 1, .rounds = 7, .samples = 70},
                     {.number = 2, .first_round = 7, .first_samples = 70}};
  checkers_.OnActions({job::PersistJob{record}}, At(0));
  EXPECT_THAT(checkers_.TakeViolations(), testing::IsEmpty());

  record.revision = 2;
  record.attempts[1].first_round = 8;
  checkers_.OnActions({job::PersistJob{record}}, At(0));

  EXPECT_EQ(checkers_.TakeViolations().size(), 1u);
}

TEST_F(CheckersTest, ACleanRunBreaksNothing) {
  checkers_.OnPlan(kGroup, {.version = 1, .reason = "start"}, At(0));
  checkers_.OnPlan(kGroup, {.version = 1, .reason = "start"}, At(0));
  Round(0, {2, 0});
  Round(1, {1, 3});
  Round(2, {3, 1});

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersTest, ARoundFollowsTheFormer) {
  Round(0, {2, 0});
  checkers_.OnRoundClosed(kGroup, {.round = 2}, At(2));

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: round 2 was closed, not 1"));
}

constexpr GroupKey kNext{.job = {1}, .generation = 2};

TEST_F(CheckersTest, AGroupThatGoesOnMayNotUseWhatWasUsedBeforeTheCheckpoint) {
  Round(0, {2, 0});
  checkers_.OnCheckpoint(kGroup, {.id = "here", .rounds = 1}, At(1));
  Round(1, {1, 3});  // lost: the next group does not know of it
  checkers_.OnGroup(kNext, 1, 4);
  checkers_.OnBegun(kNext, "here", At(5));

  checkers_.OnSamples(kNext, {.round = 1, .epoch = 0, .indices = std::vector<std::uint64_t>{1, 2}});
  checkers_.OnRoundClosed(kNext, {.round = 1}, At(6));

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 2: sample 2 was used twice in epoch 0"));
}

TEST_F(CheckersTest, AGroupThatGoesOnHasTheNextRound) {
  Round(0, {2, 0});
  checkers_.OnCheckpoint(kGroup, {.id = "here", .rounds = 1}, At(1));
  checkers_.OnGroup(kNext, 1, 4);
  checkers_.OnBegun(kNext, "here", At(5));

  checkers_.OnRoundClosed(kNext, {.round = 0}, At(6));

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 2: round 0 was closed, not 1"));
}

TEST_F(CheckersTest, MembersGoOnFromOneCheckpoint) {
  checkers_.OnCheckpoint(kGroup, {.id = "here"}, At(1));
  checkers_.OnGroup(kNext, 2, 4);
  checkers_.OnBegun(kNext, "here", At(5));
  checkers_.OnBegun(kNext, "", At(5));

  EXPECT_THAT(Broken(),
              ElementsAre("job 1 generation 2: members go on from different checkpoints"));
}

// Of rounds that overlap, another member has closed the one that is still combined here.
TEST_F(CheckersTest, ACheckpointHoldsTheRoundsThatItsMemberHasApplied) {
  Round(0, {2, 0});
  Round(1, {1, 3});
  checkers_.OnCheckpoint(kGroup, {.id = "here", .rounds = 1}, At(1));
  checkers_.OnGroup(kNext, 1, 4);
  checkers_.OnBegun(kNext, "here", At(5));
  checkers_.OnSamples(kNext, {.round = 1, .epoch = 0, .indices = std::vector<std::uint64_t>{1, 3}});
  checkers_.OnRoundClosed(kNext, {.round = 1}, At(6));
  EXPECT_THAT(Broken(), IsEmpty());

  checkers_.OnCheckpoint(kGroup, {.id = "older", .rounds = 0}, At(7));
  checkers_.OnCheckpoint(kGroup, {.id = "here", .rounds = 2}, At(7));

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: a checkpoint of 0 rounds was copied after "
                                    "2",
                                    "job 1 generation 1: two checkpoints have one name"));
}

class CheckersLossTest : public CheckersTest {
 protected:
  CheckersLossTest() {
    checkers_.OnGroup(kGroup, 1, 1000);
    checkers_.OnBegun(kGroup, "", At(0));
    checkers_.OnCheckpointsDue(kGroup, Seconds(10));
  }

  // A round a second.
  void TrainUntil(double seconds) {
    for (; trained_ <= seconds; trained_ += 1) {
      checkers_.OnRoundClosed(kGroup, {.round = rounds_++}, At(trained_));
    }
  }
  void StoreEnd(bool durable = true) {
    TrainUntil(5);
    checkers_.OnCheckpoint(kGroup, {.id = "end", .rounds = rounds_, .of_end = true}, At(trained_));
    job::JobRecord record{
        .id = {1}, .state_reason = "finishing", .revision = ++revision_, .generation = 1};
    record.checkpoint = job::CheckpointRecord{.sha256 = "end"};
    checkers_.OnActions(Persist(record), At(trained_));
    if (durable) checkers_.OnStored(record);
  }
  void Lose(const std::string& checkpoint) {
    job::JobRecord record{
        .id = {1}, .state_reason = "lost", .revision = ++revision_, .generation = 1};
    record.suspension = job::Suspension{.secured = true, .lost = true};
    if (!checkpoint.empty()) record.checkpoint = job::CheckpointRecord{.sha256 = checkpoint};
    checkers_.OnActions(Persist(record), At(trained_));
    record.suspension.reset();
    record.revision = ++revision_;
    checkers_.OnActions(Persist(record), At(trained_));
  }

  double trained_ = 1;
  std::uint64_t rounds_ = 0;
  std::uint64_t revision_ = 0;
};

TEST_F(CheckersLossTest, ALossAfterTheEndsCheckpointIsOnRecordCostsNothing) {
  StoreEnd();
  Lose("");

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: lost rounds in its ending that a "
                                    "checkpoint on record has"));
}

TEST_F(CheckersLossTest, ACheckpointThatACrashKeptOffTheRecordIsNotExpected) {
  StoreEnd(false);
  Lose("");

  EXPECT_THAT(Broken(), IsEmpty());
}

// Whose checkpoint of the end turns out to be damaged goes on from the one before it.
TEST_F(CheckersLossTest, OfALaterAttemptThatComesToNoGroupNothingIsExpected) {
  StoreEnd();
  Lose("end");
  Lose("");

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersLossTest, WhereNoneWasDueALossCostsWhatThereWas) {
  TrainUntil(16);
  Lose("");

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersLossTest, ALossCostsWhatIsNewerThanTheLastCheckpointThatWasDue) {
  TrainUntil(16);
  checkers_.OnCheckpoint(kGroup, {.id = "here", .rounds = rounds_}, At(16));
  TrainUntil(33);
  Lose("here");

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersLossTest, ALossCostsNoMoreThanThat) {
  TrainUntil(16);
  checkers_.OnCheckpoint(kGroup, {.id = "here", .rounds = rounds_}, At(16));
  TrainUntil(34);
  Lose("here");

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: lost 18.000000 s of training with its "
                                    "group, at most 17.000000 s may be"));
}

TEST_F(CheckersLossTest, ACoordinatorThatWasAwayKeptNothing) {
  checkers_.HoldUpCheckpoints(At(3));
  TrainUntil(60);

  Lose("");

  EXPECT_THAT(Broken(), IsEmpty());
}

// ---- A group that goes on where another was lost

class CheckersRegroupTest : public CheckersTest {
 protected:
  CheckersRegroupTest() {
    record_.members = {{.worker = {1}}, {.worker = {2}}, {.worker = {3}}};
    checkers_.OnActions(Persist(record_), At(0));
    checkers_.OnBegun(kGroup, "", At(0));
    Round(0, {2, 0});
  }
  // The next one, of these workers, goes on from this round.
  void Regroup(const std::vector<std::uint64_t>& workers, std::uint64_t rounds) {
    ++record_.revision;
    ++record_.generation;
    ++record_.regroups;
    record_.members.clear();
    for (const std::uint64_t worker : workers) record_.members.push_back({.worker = {worker}});
    record_.lost = {{.rank = 0, .message = {.generation = 1, .rounds = rounds}}};
    checkers_.OnActions(Persist(record_), At(1));
    const GroupKey next{.job = {1}, .generation = record_.generation};
    checkers_.OnGroup(next, workers.size(), 4);
    checkers_.OnBegun(next, "", At(1));
  }

  job::JobRecord record_{.id = {1}, .state_reason = "why", .revision = 1, .generation = 1};
};

TEST_F(CheckersRegroupTest, ItHasTheRoundsAndTheSamplesOfTheFormer) {
  Regroup({1, 3}, 1);
  checkers_.OnSamples(kNext, {.round = 1, .epoch = 0, .indices = std::vector<std::uint64_t>{1, 3}});
  checkers_.OnRoundClosed(kNext, {.round = 1}, At(2));

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersRegroupTest, ARoundThatNobodyWhoIsLeftHasMayBeLost) {
  checkers_.OnSamples(kGroup,
                      {.round = 1, .epoch = 0, .indices = std::vector<std::uint64_t>{1, 3}});
  checkers_.OnRoundClosed(kGroup, {.round = 1}, At(1));
  Regroup({1, 3}, 1);
  checkers_.OnSamples(kNext, {.round = 1, .epoch = 0, .indices = std::vector<std::uint64_t>{1, 3}});
  checkers_.OnRoundClosed(kNext, {.round = 1}, At(2));

  EXPECT_THAT(Broken(), IsEmpty());
}

// Those who have it leave before the others took it over.
TEST_F(CheckersRegroupTest, ItMayBeLostWithAGroupThatClosedNone) {
  Round(1, {1, 3});
  Regroup({1, 3}, 2);
  Regroup({3}, 1);
  EXPECT_THAT(Broken(), IsEmpty());

  Regroup({3}, 0);
  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 4: goes on from round 0, the group before "
                                    "had 1"));
}

TEST_F(CheckersRegroupTest, TwoMayNot) {
  Round(1, {1, 3});
  Round(2, {3, 1});
  Regroup({1, 3}, 1);

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 2: goes on from round 1, the group before "
                                    "had 3"));
}

TEST_F(CheckersRegroupTest, ItsMembersKeepTheirProcessesAndTheirOrder) {
  Regroup({1, 4}, 1);
  EXPECT_THAT(Broken(), ElementsAre(HasSubstr("regrouped with worker 4")));
}

TEST_F(CheckersRegroupTest, WhoLoadedBesideItJoinsBehindThem) {
  record_.joiners = {{.worker = {4}}};
  ++record_.revision;
  checkers_.OnActions(Persist(record_), At(1));
  const job::JobRecord before = record_;
  Regroup({1, 2, 3, 4}, 1);
  EXPECT_THAT(Broken(), IsEmpty());

  record_ = before;
  ++record_.revision;
  checkers_.OnRestart({{record_.id, before}});
  Regroup({1, 4, 3}, 1);
  EXPECT_THAT(Broken(), ElementsAre(HasSubstr("regrouped with worker 3")));
}

TEST_F(CheckersRegroupTest, OnPurposeNoRoundIsLost) {
  checkers_.OnSamples(kGroup,
                      {.round = 1, .epoch = 0, .indices = std::vector<std::uint64_t>{1, 3}});
  checkers_.OnRoundClosed(kGroup, {.round = 1}, At(1));
  ++record_.resizes;
  --record_.regroups;
  Regroup({1, 3}, 1);

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 2: goes on from round 1, the group before "
                                    "had 2"));
}

TEST_F(CheckersRegroupTest, NothingIsAppliedInTheFormerAnyMore) {
  Regroup({1, 3}, 1);
  checkers_.OnRoundClosed(kGroup, {.round = 1}, At(2));

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: round 1 was applied after the next group "
                                    "had begun"));
}

// ---- A worker is killed and nothing else is wrong

class CheckersKillTest : public CheckersRegroupTest {
 protected:
  // Six rounds of a second; the second worker is killed a second later.
  CheckersKillTest() {
    for (std::uint64_t round = 1; round < 6; ++round) {
      Round(round,
            round % 2 == 0 ? std::vector<std::uint64_t>{2, 0} : std::vector<std::uint64_t>{1, 3});
    }
    checkers_.OnKilled({1}, {2}, Seconds(0.5), At(6));
  }
  // The next group's first round is closed then.
  void CloseAt(double seconds) {
    const std::vector<std::uint64_t> samples = {2, 0};
    checkers_.OnSamples(kNext, {.round = 6, .epoch = 3, .indices = samples});
    checkers_.OnRoundClosed(kNext, {.round = 6, .epoch = 3}, At(seconds));
  }
};

TEST_F(CheckersKillTest, TheOthersGoOnWithinTheirBudget) {
  Regroup({1, 3}, 6);
  CloseAt(14.4);

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersKillTest, MoreIsAViolation) {
  Regroup({1, 3}, 6);
  CloseAt(14.6);

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 2: closed no round for 8.600000 s after a "
                                    "worker was killed, at most 8.500000 s may be"));
}

TEST_F(CheckersKillTest, NoneOfThemIsLeftOut) {
  Regroup({1}, 6);

  EXPECT_THAT(Broken(),
              ElementsAre("job 1: regrouped without worker 3, to which nothing happened"));
}

TEST_F(CheckersKillTest, WhoLeavesItsDevicesToAnotherJobMayBe) {
  checkers_.OnActions(Persist({.id = {2},
                               .state = job::JobState::kQueued,
                               .state_reason = "needs 1 device",
                               .revision = 1}),
                      At(6));
  Regroup({1}, 6);

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersKillTest, WhatElseIsWrongExcuses) {
  checkers_.Disturb(At(6.5));
  Regroup({1}, 6);
  CloseAt(100);

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersKillTest, OfAnotherJobItDoesNot) {
  checkers_.Disturb({2}, At(6.5));
  checkers_.Disturb({1}, At(5.5));
  Regroup({1}, 6);
  CloseAt(100);

  EXPECT_EQ(Broken().size(), 2u);
}

TEST_F(CheckersKillTest, AJobThatBeginsAnewHasNoBudget) {
  checkers_.OnGroup(kNext, 2, 4);
  checkers_.OnBegun(kNext, "", At(50));
  checkers_.OnRoundClosed(kNext, {.round = 0}, At(100));

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersTest, MembersMayNotHoldDifferentPlans) {
  checkers_.OnPlan(kGroup, {.version = 1, .batch_sizes = {1, 2}, .reason = "start"}, At(0));
  checkers_.OnPlan(kGroup, {.version = 1, .batch_sizes = {2, 1}, .reason = "start"}, At(0));

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: members hold different plans 1"));
}

TEST_F(CheckersTest, ARoundHasOnePlan) {
  checkers_.OnRoundClosed(kGroup, {.round = 0, .plan_version = 1}, At(1));
  checkers_.OnRoundClosed(kGroup, {.round = 0, .plan_version = 2}, At(1));

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: members ran round 0 under plans 1 and 2"));
}

TEST_F(CheckersTest, ParametersAreEqualAfterARound) {
  checkers_.OnRoundClosed(kGroup, {.round = 0, .parameters_hash = 5}, At(1));
  checkers_.OnRoundClosed(kGroup, {.round = 0, .parameters_hash = 6}, At(1));

  EXPECT_THAT(Broken(),
              ElementsAre("job 1 generation 1: parameters differ between members after round 0"));
}

TEST_F(CheckersTest, ParametersThatNobodySawAreNotCompared) {
  checkers_.OnRoundClosed(kGroup, {.round = 0}, At(1));
  checkers_.OnRoundClosed(kGroup, {.round = 0, .parameters_hash = 6}, At(1));
  checkers_.OnGroup({.job = {2}, .generation = 1}, 3, 4);
  for (const std::optional<std::uint64_t> hash : {std::optional<std::uint64_t>(5), {}, {6}}) {
    checkers_.OnRoundClosed({.job = {2}, .generation = 1}, {.round = 0, .parameters_hash = hash},
                            At(1));
  }

  EXPECT_THAT(Broken(),
              ElementsAre("job 2 generation 1: parameters differ between members after round 0"));
}

TEST_F(CheckersTest, ASampleIsUsedOnceAnEpoch) {
  Round(0, {2, 0});
  Round(1, {2, 3});
  Round(2, {1, 0});

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: sample 2 was used twice in epoch 0",
                                    "job 1 generation 1: epoch 0 used 3 of 4 samples"));
}

TEST_F(CheckersTest, ARoundMayUseSamplesOfTwoEpochs) {
  Round(0, {2, 0});
  const std::vector<std::uint64_t> early = {2};
  checkers_.OnSamples(kGroup, {.round = 1, .epoch = 1, .indices = early});
  Round(1, {1, 3});
  Round(2, {2, 1});

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: sample 2 was used twice in epoch 1"));
}

TEST_F(CheckersTest, ARoundThatWasNotAppliedUsesNothing) {
  const std::vector<std::uint64_t> lost = {2};
  checkers_.OnSamples(kGroup, {.round = 5, .indices = lost});
  Round(0, {2, 0});

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersTest, DecisionsAndStatesHaveReasons) {
  checkers_.OnPlan(kGroup, {.version = 2}, At(0));
  checkers_.OnActions({job::PublishDecision{.job = {1}, .plan = {.version = 2}}}, At(0));
  checkers_.OnActions({job::PersistDecision{.job = {1}, .decision = {.plan_version = 2}}}, At(0));
  checkers_.OnActions(Persist({.id = {1}, .revision = 1}), At(0));

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: plan 2 has no reason",
                                    "job 1: plan 2 was decided without a reason",
                                    "job 1: a decision of plan 2 has no reason",
                                    "job 1: its state has no reason"));
}

TEST_F(CheckersTest, RecordsGoForward) {
  job::JobRecord record{.id = {1}, .state_reason = "why", .revision = 3, .generation = 2};
  checkers_.OnActions(Persist(record), At(0));
  record.generation = 1;
  record.revision = 3;
  checkers_.OnActions(Persist(record), At(0));

  EXPECT_THAT(Broken(), ElementsAre("job 1: generation went back from 2 to 1",
                                    "job 1: revision went from 3 to 3"));
}

TEST_F(CheckersTest, AJobFailsOnlyWhereSomethingHappenedToIt) {
  job::JobRecord record{.id = {1}, .state = job::JobState::kFailed, .state_reason = "why"};
  record.revision = 1;
  record.members = {{.node = "a"}};
  checkers_.OnActions(Persist(record), At(0));
  record.id = {2};
  checkers_.OnHarm(record.id);
  checkers_.OnActions(Persist(record), At(0));
  record.id = {3};
  checkers_.OnHostHarmed("a");
  checkers_.OnActions(Persist(record), At(0));

  EXPECT_THAT(Broken(), ElementsAre("job 1: failed though nothing happened to its workers: why"));
}

TEST_F(CheckersTest, AFinalStateIsFinal) {
  checkers_.OnHarm({1});
  job::JobRecord record{
      .id = {1}, .state = job::JobState::kFailed, .state_reason = "why", .revision = 3};
  checkers_.OnActions(Persist(record), At(0));
  record.revision = 4;
  checkers_.OnActions(Persist(record), At(0));

  EXPECT_THAT(Broken(), ElementsAre("job 1: changed after its end"));
}

TEST_F(CheckersTest, ARestartTakesTheRecordsBackToWhatIsDurable) {
  job::JobRecord record{.id = {1}, .state_reason = "why", .revision = 1};
  checkers_.OnActions(Persist(record), At(0));
  const job::JobRecord durable = record;
  record.revision = 2;
  checkers_.OnActions(Persist(record), At(0));

  checkers_.OnRestart({{JobId{1}, durable}});
  checkers_.OnActions(Persist(record), At(1));

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersTest, QueuesAreBounded) {
  checkers_.OnQueue("a queue", 5, 5, At(0));
  checkers_.OnQueue("a queue", 6, 5, At(0));

  EXPECT_THAT(Broken(), ElementsAre("a queue holds 6 of at most 5"));
}

TEST_F(CheckersTest, RoundsGoOnWhileTheCoordinatorIsAway) {
  checkers_.OnGroup(kGroup, 2, 100);
  for (std::uint64_t round = 0; round < 6; ++round) Round(round, {});
  checkers_.TakeViolations();
  checkers_.OnCoordinatorAway(At(5.5));

  checkers_.OnCoordinatorBack(At(30));

  EXPECT_THAT(Broken(),
              ElementsAre(HasSubstr("no round was closed while the coordinator was away")));
}

// An engine that waits for the coordinator at a round's edge still closes the round under way.
TEST_F(CheckersTest, TheRoundThatWasUnderWayDoesNotSpeakForTheNextOnes) {
  checkers_.OnGroup(kGroup, 2, 100);
  for (std::uint64_t round = 0; round < 6; ++round) Round(round, {});
  checkers_.TakeViolations();
  checkers_.OnCoordinatorAway(At(5.5));
  Round(6, {});

  checkers_.OnCoordinatorBack(At(30));

  EXPECT_THAT(Broken(),
              testing::Contains(HasSubstr("no round was closed while the coordinator was away")));
}

// Their transfers may share a link, and the newcomers' first is as long as it happens to be.
TEST_F(CheckersTest, ARoundMayWaitForTheFirstOneOfAnotherGroup) {
  checkers_.OnGroup(kGroup, 2, 100);
  for (std::uint64_t round = 0; round < 6; ++round) Round(round, {});
  checkers_.TakeViolations();
  const GroupKey other{.job = JobId{8}, .generation = 1};
  checkers_.OnGroup(other, 2, 100);
  checkers_.OnBegun(other, "", At(5));
  checkers_.OnCoordinatorAway(At(5.5));

  checkers_.OnCoordinatorBack(At(30));

  EXPECT_THAT(Broken(), IsEmpty());
}

TEST_F(CheckersTest, WhoIsDisturbedOnPurposeIsExcused) {
  for (std::uint64_t round = 0; round < 6; ++round) Round(round, {});
  checkers_.TakeViolations();
  checkers_.Excuse(kGroup, At(19));
  checkers_.OnCoordinatorAway(At(5.5));

  checkers_.OnCoordinatorBack(At(30));

  EXPECT_THAT(Broken(), IsEmpty());
}

}  // namespace
}  // namespace tactus::simulator
