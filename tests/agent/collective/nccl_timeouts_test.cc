#include "agent/collective/nccl_timeouts.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(TimeoutLadderTest, TheUsualLadderIsInOrder) { EXPECT_EQ(TimeoutLadder().Validate(), ""); }

TEST(TimeoutLadderTest, EveryStepMustBeLongerThanTheOneBelow) {
  using Limit = Duration TimeoutLadder::*;
  const Limit steps[] = {&TimeoutLadder::between_groups, &TimeoutLadder::in_group,
                         &TimeoutLadder::init,           &TimeoutLadder::round,
                         &TimeoutLadder::agent_lease,    &TimeoutLadder::job};
  for (std::size_t i = 1; i < std::size(steps); ++i) {
    TimeoutLadder equal, just_longer;
    equal.*steps[i] = equal.*steps[i - 1];
    just_longer.*steps[i] = just_longer.*steps[i - 1] + Duration(1);

    EXPECT_THAT(equal.Validate(), HasSubstr("must be longer than")) << i;
    EXPECT_EQ(just_longer.Validate(), "") << i;
  }
}

TEST(TimeoutLadderTest, TheReasonNamesBothSteps) {
  TimeoutLadder ladder;
  ladder.init = Seconds(1);

  EXPECT_THAT(ladder.Validate(), AllOf(HasSubstr("init (1.0"), HasSubstr("in_group (600.0")));
}

TEST(TimeoutLadderTest, NoStepMayBeZero) {
  TimeoutLadder ladder;
  ladder.between_groups = Duration(0);

  EXPECT_THAT(ladder.Validate(), HasSubstr("must be positive"));
}

TEST(TimeoutLadderTest, TheLadderAboveALimitIsInOrderWhateverTheLimit) {
  for (const double seconds : {0.01, 1.0, 600.0, 86400.0}) {
    const TimeoutLadder ladder = TimeoutLadder::Above(Seconds(seconds));
    EXPECT_EQ(ladder.in_group, Seconds(seconds));
    EXPECT_EQ(ladder.Validate(), "") << seconds;
  }
}

}  // namespace
}  // namespace tactus::collective
