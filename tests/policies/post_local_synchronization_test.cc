#include "policies/post_local_synchronization.h"

#include <gtest/gtest.h>

#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

// A group of two whose rounds are a base step each.
class Group {
 public:
  explicit Group(PostLocalSynchronization& policy, std::uint64_t progress = 0)
      : policy_(policy), round_(progress) {
    Plan first = TwoMembers();
    seen_.Start({.members = 2});
    reason_ = policy_.Start(first, seen_);
    plan_.synchronization = first.synchronization;
    plan_.period = first.period;
    seen_.Expect(plan_);
  }

  // Rounds of a base step each up to that many; the last proposal.
  std::optional<Proposal> RunTo(std::uint64_t progress) {
    std::optional<Proposal> last;
    const std::function<std::optional<Plan>(const Plan&)> complete = [](const Plan& plan) {
      return std::optional<Plan>(plan);
    };
    while (round_ < progress) {
      const auto first = round_++;
      ObserveRounds(seen_, plan_, {.first = first}, {.progress = static_cast<double>(round_)});
      last = policy_.Decide({.in_force = plan_, .seen = seen_, .complete = complete});
    }
    return last;
  }

  void Adopt(const Plan& plan) { plan_ = plan; }
  const Plan& plan() const { return plan_; }
  const std::string& reason() const { return reason_; }

 private:
  PostLocalSynchronization& policy_;
  Observations seen_;
  Plan plan_ = TwoMembers();
  std::string reason_;
  std::uint64_t round_;  // the next one, and base steps before it
};

const SynchronizationOptions kEveryEight = {
    .policy = "post_local", .period = 8, .rate_falls_at = 50};

TEST(PostLocalSynchronizationTest, EveryStepUntilTheRateHasFallenThenThePeriod) {
  PostLocalSynchronization policy(kEveryEight);
  Group group(policy);

  EXPECT_EQ(group.plan().synchronization, Synchronization::kEveryStep);
  EXPECT_FALSE(group.RunTo(49));
  const std::optional<Proposal> change = group.RunTo(50);

  ASSERT_TRUE(change);
  EXPECT_EQ(change->plan.synchronization, Synchronization::kPeriodic);
  EXPECT_EQ(change->plan.period, 8u);
  EXPECT_EQ(change->decision.metric, "samples/s");
  EXPECT_GT(change->decision.predicted_gain, 0);
  EXPECT_EQ(change->decision.reason,
            "the schedule has halved the learning rate by base step 50: from here on parameters "
            "are averaged every 8 steps");
}

TEST(PostLocalSynchronizationTest, ThereIsNoWayBack) {
  PostLocalSynchronization policy(kEveryEight);
  Group group(policy);
  group.Adopt(group.RunTo(50)->plan);

  EXPECT_FALSE(group.RunTo(150));
}

TEST(PostLocalSynchronizationTest, ARateThatNeverFallsIsWaitedForToTheEnd) {
  PostLocalSynchronization policy({.policy = "post_local", .period = 8});

  EXPECT_FALSE(Group(policy).RunTo(200));
}

TEST(PostLocalSynchronizationTest, ANewGroupGoesOnWithThePeriod) {
  PostLocalSynchronization policy(kEveryEight);
  Group(policy).RunTo(51);

  const Group second(policy);

  EXPECT_EQ(second.plan().synchronization, Synchronization::kPeriodic);
  EXPECT_EQ(second.reason(), "post_local goes on with periodic 8");
}

// A coordinator that was restarted while no group ran knows no more than the job's file.
TEST(PostLocalSynchronizationTest, WhoDidNotSeeTheRateFallKnowsThatItHas) {
  PostLocalSynchronization policy(kEveryEight);
  Group resumed(policy, 1000);

  const std::optional<Proposal> change = resumed.RunTo(1005);

  ASSERT_TRUE(change);
  EXPECT_EQ(change->plan.period, 8u);
}

// As after a coordinator's restart, in the midst of a group's periods.
TEST(PostLocalSynchronizationTest, AGroupThatGoesOnUnderItsPeriodsIsLeftThere) {
  PostLocalSynchronization policy(kEveryEight);
  Group group(policy, 1000);
  policy.Resume({.synchronization = Synchronization::kPeriodic, .period = 8});
  Plan periods = group.plan();
  periods.synchronization = Synchronization::kPeriodic;
  periods.period = 8;
  group.Adopt(periods);

  EXPECT_FALSE(group.RunTo(1050));
}

// An update from periodic to post_local: what ran before says nothing of the rate.
TEST(PostLocalSynchronizationTest, PeriodsOfAnotherPolicyEndWhereTheRateHasNotFallen) {
  PostLocalSynchronization policy(kEveryEight);
  policy.Resume({.synchronization = Synchronization::kPeriodic, .period = 4});

  Group group(policy, 10);

  EXPECT_EQ(group.plan().synchronization, Synchronization::kEveryStep);
  EXPECT_FALSE(group.RunTo(49));
  EXPECT_TRUE(group.RunTo(50));
}

TEST(PostLocalSynchronizationTest, APeriodThatTheBatchDoesNotAllowIsShortened) {
  PostLocalSynchronization policy({.policy = "post_local", .period = 4096});
  Plan plan = {
      .synchronization = Synchronization::kPeriodic, .period = 4096, .batch_sizes = {4096, 4096}};

  EXPECT_FALSE(policy.Follow(plan, Observations()).empty());
  EXPECT_TRUE(Fits(plan, 2));
}

TEST(PostLocalSynchronizationTest, AMemberAloneRunsEveryStepAndIsFollowedByPeriods) {
  PostLocalSynchronization policy(kEveryEight);
  Observations seen;
  seen.Start({.members = 1});
  Plan plan{.batch_sizes = {32}};

  EXPECT_EQ(policy.Start(plan, seen), "every_step: one member has nobody to exchange with");
  EXPECT_EQ(plan.synchronization, Synchronization::kEveryStep);
}

}  // namespace
}  // namespace tactus::policies
