#include "coordinator/job/stillness.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using Kind = Standstill::Kind;
using protocol::StandingMessage;

StandingMessage Working(std::uint64_t batches, double processor_seconds = 0) {
  return {.generation = 1, .batches = batches, .processor_seconds = processor_seconds};
}
StandingMessage WaitsFor(std::vector<std::uint32_t> ranks, std::uint64_t bytes = 0) {
  return {.generation = 1, .bytes = bytes, .waits = true, .awaits = std::move(ranks)};
}

// Three members, looked at every two seconds.
class StillnessTest : public testing::Test {
 protected:
  Standstill Look(const std::vector<StandingMessage>& standings) {
    stillness_.Look();
    for (std::uint32_t rank = 0; rank < standings.size(); ++rank) {
      stillness_.Note(rank, standings[rank], At(seconds_));
    }
    seconds_ += 2;
    return stillness_.Conclude(At(seconds_));
  }

  double seconds_ = 0;
  Stillness stillness_{3, At(0)};
};

TEST_F(StillnessTest, WhoseProcessIsStoppedIsNamedAtTheFirstLook) {
  StandingMessage stopped = Working(5);
  stopped.stopped = true;

  const Standstill seen = Look({WaitsFor({2}), WaitsFor({0}), stopped});

  EXPECT_EQ(seen, (Standstill{.kind = Kind::kStopped, .rank = 2}));
  EXPECT_TRUE(seen.certain());
}

TEST_F(StillnessTest, WhoSaysNothingAnyMoreIsNamed) {
  StandingMessage silent = Working(5);
  silent.silent_seconds = 5.1;

  EXPECT_EQ(Look({WaitsFor({1}), silent, WaitsFor({1})}),
            (Standstill{.kind = Kind::kSilent, .rank = 1}));
}

TEST_F(StillnessTest, TheWaitLeadsToWhoWaitsForNobody) {
  const std::vector<StandingMessage> standings = {WaitsFor({1}), WaitsFor({2}), Working(5)};

  EXPECT_EQ(Look(standings), (Standstill{.kind = Kind::kAwaited, .rank = 2}));
  EXPECT_EQ(Look(standings), (Standstill{.kind = Kind::kStill, .rank = 2}));
}

TEST_F(StillnessTest, WhoDoesBatchesIsSlowAndIsNeverGivenUp) {
  Look({WaitsFor({1}), Working(5), WaitsFor({1})});

  for (std::uint64_t batches = 6; batches < 1000; ++batches) {
    const Standstill seen = Look({WaitsFor({1}), Working(batches), WaitsFor({1})});
    ASSERT_EQ(seen, (Standstill{.kind = Kind::kSlow, .rank = 1}));
    ASSERT_FALSE(stillness_.Over({.certain = Seconds(2), .doubtful = Seconds(2)}, At(seconds_)));
  }
}

TEST_F(StillnessTest, WhoTakesProcessorTimeIsBusy) {
  Look({WaitsFor({1}), Working(5, 10.0), WaitsFor({1})});

  EXPECT_EQ(Look({WaitsFor({1}), Working(5, 10.2), WaitsFor({1})}).kind, Kind::kBusy);
  // What its other threads take is none.
  EXPECT_EQ(Look({WaitsFor({1}), Working(5, 10.25), WaitsFor({1})}).kind, Kind::kStill);
}

TEST_F(StillnessTest, WhoWaitsForADiskIsInDoubt) {
  StandingMessage reading = Working(5);
  reading.storage = true;
  Look({WaitsFor({1}), reading, WaitsFor({1})});

  const Standstill seen = Look({WaitsFor({1}), reading, WaitsFor({1})});
  EXPECT_EQ(seen, (Standstill{.kind = Kind::kStorage, .rank = 1}));
  EXPECT_FALSE(seen.certain());
}

TEST_F(StillnessTest, TwoThatWaitForOneAnotherHaveALinkBetweenThem) {
  const std::vector<StandingMessage> standings = {WaitsFor({2}), WaitsFor({0}), WaitsFor({0})};

  EXPECT_EQ(Look(standings), (Standstill{.kind = Kind::kLink, .rank = 0, .other = 2}));
  EXPECT_EQ(Look({WaitsFor({2}, 10), WaitsFor({0}), WaitsFor({0})}),
            (Standstill{.kind = Kind::kLoaded, .rank = 0, .other = 2}));
}

// As with NCCL, which does not tell for whom.
TEST_F(StillnessTest, WhereNobodyKnowsWhomForTheOneThatDoesNotWaitIsAwaited) {
  EXPECT_EQ(Look({WaitsFor({}), WaitsFor({}), Working(1)}),
            (Standstill{.kind = Kind::kAwaited, .rank = 2}));
  const std::vector<StandingMessage> all = {WaitsFor({}), WaitsFor({}), WaitsFor({})};
  EXPECT_EQ(Look(all).kind, Kind::kUnknown);  // the third has ended its batch since
  EXPECT_EQ(Look(all).kind, Kind::kTogether);
}

// A long collective of all, whose bytes move.
TEST_F(StillnessTest, WhereAllWaitAndSomethingMovesNobodyIsGivenUp) {
  const Stillness::Patience patience{.certain = Seconds(1), .doubtful = Seconds(10)};
  for (std::uint64_t bytes = 0; bytes < 10; ++bytes) {
    EXPECT_EQ(Look({WaitsFor({}), WaitsFor({}, bytes), WaitsFor({})}).kind, Kind::kUnknown);
    EXPECT_FALSE(stillness_.Over(patience, At(seconds_)));
  }
}

// What others do is none of its doing, but somebody gets on.
TEST_F(StillnessTest, DoubtBeginsAnewWhereAnybodyMoves) {
  const Stillness::Patience patience{.certain = Seconds(1), .doubtful = Seconds(10)};
  for (std::uint64_t bytes = 0; bytes < 10; ++bytes) {
    Look({WaitsFor({1}), Working(5, 3.0 * static_cast<double>(bytes)), WaitsFor({1}, bytes)});
    EXPECT_FALSE(stillness_.Over(patience, At(seconds_)));
  }
}

TEST_F(StillnessTest, OfWhoDidNotAnswerNothingIsSaid) {
  EXPECT_EQ(Look({WaitsFor({2}), WaitsFor({2})}).kind, Kind::kUnknown);
  EXPECT_EQ(Look({}).kind, Kind::kUnknown);
}

TEST_F(StillnessTest, ARankThatIsNoneIsPassedOver) {
  EXPECT_EQ(Look({WaitsFor({7}), WaitsFor({1}), Working(1)}),
            (Standstill{.kind = Kind::kAwaited, .rank = 2}));
}

// The looks end at 2, 4, ... s.
TEST_F(StillnessTest, WhoStandsStillForCertainIsGivenUpAfterItsTimeAtEveryLook) {
  const std::vector<StandingMessage> still = {WaitsFor({1}), Working(5), WaitsFor({1})};
  const Stillness::Patience patience{.certain = Seconds(4), .doubtful = Seconds(100)};
  Look(still);  // not compared with anything
  Look(still);  // from 4 s on
  Look(still);
  EXPECT_FALSE(stillness_.Over(patience, At(7.9)));
  EXPECT_TRUE(stillness_.Over(patience, At(8)));

  Look({WaitsFor({1}), Working(5, 3.0), WaitsFor({1})});  // in between it computes
  EXPECT_FALSE(stillness_.Over(patience, At(90)));
  Look({WaitsFor({1}), Working(5, 3.0), WaitsFor({1})});  // from 10 s on
  EXPECT_FALSE(stillness_.Over(patience, At(13.9)));
  EXPECT_TRUE(stillness_.Over(patience, At(14)));
}

TEST_F(StillnessTest, WhereItIsSomebodyElseTheTimeBeginsAnew) {
  StandingMessage stopped = Working(5);
  stopped.stopped = true;
  const Stillness::Patience patience{.certain = Seconds(3), .doubtful = Seconds(100)};
  Look({stopped, Working(5), WaitsFor({0})});
  Look({Working(5), stopped, WaitsFor({0})});  // from 4 s on

  EXPECT_FALSE(stillness_.Over(patience, At(6.9)));
  EXPECT_TRUE(stillness_.Over(patience, At(7)));
}

TEST_F(StillnessTest, InDoubtItIsGivenUpWhenNothingMovedForLong) {
  const Stillness::Patience patience{.certain = Seconds(1), .doubtful = Seconds(10)};
  const auto busy = [](double seconds) {
    return std::vector<StandingMessage>{WaitsFor({1}), Working(5, seconds), WaitsFor({1})};
  };
  for (double seconds = 0; seconds < 4; ++seconds) Look(busy(seconds));
  EXPECT_FALSE(stillness_.Over(patience, At(9.9)));
  EXPECT_TRUE(stillness_.Over(patience, At(10)));

  Look({WaitsFor({1}), Working(6, 5), WaitsFor({1})});  // at 10 s it had moved
  Look(busy(6));                                        // and at 12 s, back
  EXPECT_FALSE(stillness_.Over(patience, At(21.9)));
  EXPECT_TRUE(stillness_.Over(patience, At(22)));
}

TEST_F(StillnessTest, WhereAllComputeTheTimeBeginsAnewWithWhatTheyDo) {
  const Stillness::Patience patience{.certain = Seconds(1), .doubtful = Seconds(4)};
  Look({Working(1), Working(1), Working(1)});
  Look({Working(1), Working(2), Working(1)});  // at 4 s

  Look({Working(1), Working(2), Working(1)});
  EXPECT_FALSE(stillness_.Over(patience, At(7.9)));
  EXPECT_TRUE(stillness_.Over(patience, At(8)));
}

// What has not answered yet takes nothing back, and what is certain waits for nobody.
TEST_F(StillnessTest, WhatIsSaidIsOfTheLookBeforeUntilTheNextIsOver) {
  const std::vector<StandingMessage> still = {WaitsFor({1}), Working(5), WaitsFor({1})};
  Look(still);
  Look(still);
  stillness_.Look();
  EXPECT_EQ(stillness_.Present(), (Standstill{.kind = Kind::kStill, .rank = 1}));

  StandingMessage stopped = Working(5);
  stopped.stopped = true;
  stillness_.Note(2, stopped, At(7));
  EXPECT_EQ(stillness_.Present(), (Standstill{.kind = Kind::kStopped, .rank = 2}));
}

TEST_F(StillnessTest, WhoHasNotAnsweredIsNotAskedAgain) {
  stillness_.Look();
  EXPECT_TRUE(stillness_.Ask(0));
  stillness_.Conclude(At(2));
  EXPECT_TRUE(stillness_.unanswered());
  stillness_.Look();
  EXPECT_FALSE(stillness_.Ask(0));
  EXPECT_TRUE(stillness_.Ask(1));

  stillness_.Note(0, Working(1), At(3));
  stillness_.Conclude(At(4));

  EXPECT_FALSE(stillness_.unanswered());
  EXPECT_TRUE(stillness_.Ask(0));
}

}  // namespace
}  // namespace tactus::job
