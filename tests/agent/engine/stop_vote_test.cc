#include "agent/engine/stop_vote.h"

#include <vector>

#include "gtest/gtest.h"

namespace tactus::engine {
namespace {

// The lanes of members who each asked for something.
Lanes VotesFor(const std::vector<StopKind>& kinds) {
  Lanes sum;
  for (const StopKind kind : kinds) {
    StopVote vote;
    vote.Request("asked", kind);
    Lanes own;
    vote.Cast(own);
    sum.stop_votes += own.stop_votes;
    sum.discard_votes += own.discard_votes;
    sum.suspend_votes += own.suspend_votes;
    sum.regroup_votes += own.regroup_votes;
  }
  return sum;
}

Outcome DecidedBy(const std::vector<StopKind>& kinds, const std::string& condition = "") {
  StopVote vote;
  return vote.Decide(condition, VotesFor(kinds)).outcome;
}

TEST(StopVoteTest, ADiscardWinsThenAFinish) {
  EXPECT_EQ(DecidedBy({}), Outcome::kTraining);
  EXPECT_EQ(DecidedBy({StopKind::kSuspend}), Outcome::kSuspended);
  EXPECT_EQ(DecidedBy({StopKind::kSuspend, StopKind::kSuspend}), Outcome::kSuspended);
  EXPECT_EQ(DecidedBy({StopKind::kSuspend, StopKind::kFinish}), Outcome::kFinished);
  EXPECT_EQ(DecidedBy({StopKind::kFinish, StopKind::kDiscard}), Outcome::kDiscarded);
  EXPECT_EQ(DecidedBy({StopKind::kSuspend, StopKind::kDiscard}), Outcome::kDiscarded);
}

TEST(StopVoteTest, ARegroupTakesAllWhoVoted) {
  EXPECT_EQ(DecidedBy({StopKind::kRegroup}), Outcome::kRegrouped);
  EXPECT_EQ(DecidedBy({StopKind::kRegroup, StopKind::kRegroup}), Outcome::kRegrouped);
  EXPECT_EQ(DecidedBy({StopKind::kRegroup, StopKind::kSuspend}), Outcome::kSuspended);
  EXPECT_EQ(DecidedBy({StopKind::kRegroup, StopKind::kFinish}), Outcome::kFinished);
  EXPECT_EQ(DecidedBy({StopKind::kRegroup, StopKind::kDiscard}), Outcome::kDiscarded);
  EXPECT_EQ(DecidedBy({StopKind::kRegroup}, "10 rounds are over"), Outcome::kFinished);
}

TEST(StopVoteTest, ARegroupTakesThePlaceOfNothingAndIsAnsweredByTheNextGroup) {
  for (const StopKind kind : {StopKind::kFinish, StopKind::kDiscard, StopKind::kSuspend}) {
    StopVote vote;
    vote.Request("by ada", kind);
    vote.Request("one more", StopKind::kRegroup);
    vote.Regrouped();
    Lanes lanes;
    vote.Cast(lanes);
    EXPECT_EQ(lanes.stop_votes, 1);
    EXPECT_EQ(lanes.regroup_votes, 0);

    StopVote replaced;
    replaced.Request("one more", StopKind::kRegroup);
    replaced.Request("by ada", kind);
    EXPECT_EQ(replaced.Decide("", VotesFor({kind})).reason, "by ada");
  }
  StopVote answered;
  answered.Request("one more", StopKind::kRegroup);
  answered.Regrouped();
  Lanes none;
  answered.Cast(none);
  EXPECT_EQ(none.stop_votes, 0);
}

TEST(StopVoteTest, WhatEndedAFormerGroupIsNoReasonForTheEndOfTheNext) {
  StopVote asked;
  asked.Request("one more", StopKind::kRegroup);
  StopVote told;
  for (StopVote* const vote : {&asked, &told}) {
    EXPECT_EQ(vote->Decide("", VotesFor({StopKind::kRegroup})).outcome, Outcome::kRegrouped);
    EXPECT_TRUE(vote->decided());

    vote->Regrouped();

    EXPECT_FALSE(vote->asked());
    EXPECT_EQ(vote->Decide("", VotesFor({StopKind::kFinish})).reason,
              "another member asked to stop");
  }
}

TEST(StopVoteTest, AConditionThatHoldsIsAFinishOfNobodysAsking) {
  StopVote vote;
  vote.Request("pause", StopKind::kSuspend);

  const Verdict verdict = vote.Decide("10 rounds are over", VotesFor({StopKind::kSuspend}));

  EXPECT_EQ(verdict.outcome, Outcome::kFinished);
  EXPECT_EQ(verdict.reason, "10 rounds are over");
  EXPECT_FALSE(vote.asked());
  EXPECT_EQ(DecidedBy({StopKind::kDiscard}, "10 rounds are over"), Outcome::kDiscarded);
}

TEST(StopVoteTest, TheReasonIsThisMembersOrThatThereWasOne) {
  StopVote asked;
  asked.Request("by ada", StopKind::kFinish);
  StopVote other;

  EXPECT_EQ(asked.Decide("", VotesFor({StopKind::kFinish})).reason, "by ada");
  EXPECT_EQ(other.Decide("", VotesFor({StopKind::kFinish})).reason, "another member asked to stop");
  EXPECT_TRUE(asked.asked());
}

TEST(StopVoteTest, ASuspensionTakesThePlaceOfNothing) {
  for (const StopKind kind : {StopKind::kFinish, StopKind::kDiscard}) {
    StopVote vote;
    vote.Request("by ada", kind);
    vote.Request("the node is leaving", StopKind::kSuspend);
    Lanes lanes;
    vote.Cast(lanes);

    EXPECT_EQ(lanes.suspend_votes, 0);
    EXPECT_EQ(vote.Decide("", lanes).reason, "by ada");
  }
}

TEST(StopVoteTest, WhoeverAsksAfterTheTimeWasUpHasAsked) {
  StopVote vote;
  vote.TimeIsUp(Seconds(2.5));
  vote.Decide("", VotesFor({StopKind::kFinish}));
  EXPECT_FALSE(vote.asked());

  vote.Request("by ada", StopKind::kDiscard);

  EXPECT_EQ(vote.Decide("", VotesFor({StopKind::kDiscard})).reason, "by ada");
  EXPECT_TRUE(vote.asked());
}

TEST(StopVoteTest, TimeThatIsUpTurnsAPauseIntoAFinishButNoOtherRequest) {
  StopVote pause;
  pause.Request("pause", StopKind::kSuspend);
  StopVote cancel;
  cancel.Request("cancel", StopKind::kDiscard);

  pause.TimeIsUp(Seconds(2.5));
  cancel.TimeIsUp(Seconds(2.5));

  EXPECT_EQ(pause.Decide("", VotesFor({StopKind::kFinish})).reason, "2.5 s are over");
  EXPECT_FALSE(pause.asked());
  EXPECT_EQ(cancel.Decide("", VotesFor({StopKind::kDiscard})).reason, "cancel");
  EXPECT_TRUE(cancel.asked());
}

}  // namespace
}  // namespace tactus::engine
