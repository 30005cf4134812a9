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
    ASSERT_FALSE(stillness_.Over(Seconds(2), At(seconds_)));
  }
}

TEST_F(StillnessTest, WhoTakesProcessorTimeIsBusy) {
  Look({WaitsFor({1}), Working(5, 10.0), WaitsFor({1})});

  EXPECT_EQ(Look({WaitsFor({1}), Working(5, 10.2), WaitsFor({1})}).kind, Kind::kBusy);
  // What its other threads take is none.
  EXPECT_EQ(Look({WaitsFor({1}), Working(5, 10.25), WaitsFor({1})}).kind, Kind::kStill);
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
  EXPECT_EQ(Look({WaitsFor({}), WaitsFor({}), WaitsFor({})}).kind, Kind::kUnknown);
}

TEST_F(StillnessTest, OfWhoDidNotAnswerNothingIsSaid) {
  EXPECT_EQ(Look({WaitsFor({2}), WaitsFor({2})}).kind, Kind::kUnknown);
  EXPECT_EQ(Look({}).kind, Kind::kUnknown);
}

TEST_F(StillnessTest, ARankThatIsNoneIsPassedOver) {
  EXPECT_EQ(Look({WaitsFor({7}), WaitsFor({1}), Working(1)}),
            (Standstill{.kind = Kind::kAwaited, .rank = 2}));
}

TEST_F(StillnessTest, ItIsOverWhenTwoLooksAgreeAndNothingMovedForSoLong) {
  const std::vector<StandingMessage> standings = {WaitsFor({1}), Working(5), WaitsFor({1})};
  Look(standings);
  EXPECT_FALSE(stillness_.Over(Seconds(1), At(seconds_)));  // one look
  Look(standings);

  EXPECT_FALSE(stillness_.Over(Seconds(5), At(seconds_)));
  EXPECT_TRUE(stillness_.Over(Seconds(4), At(seconds_)));

  Look({WaitsFor({1}), Working(6), WaitsFor({1})});
  EXPECT_FALSE(stillness_.Over(Seconds(1), At(seconds_)));
  Look({WaitsFor({1}), Working(6), WaitsFor({1})});
  Look({WaitsFor({2}), WaitsFor({2}), Working(6)});  // somebody else
  EXPECT_FALSE(stillness_.Over(Seconds(1), At(seconds_)));
}

TEST_F(StillnessTest, WhereAllComputeTheTimeBeginsAnewWithWhatTheyDo) {
  Look({Working(1), Working(1), Working(1)});
  Look({Working(1), Working(2), Working(1)});
  Look({Working(1), Working(2), Working(1)});

  EXPECT_FALSE(stillness_.Over(Seconds(3), At(seconds_)));
  Look({Working(1), Working(2), Working(1)});
  EXPECT_TRUE(stillness_.Over(Seconds(4), At(seconds_)));
}

}  // namespace
}  // namespace tactus::job
