#include "policies/post_local_synchronization.h"

#include <gtest/gtest.h>

#include "tests/policies/round_reports.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

// A group of two whose rounds are at the rate that a test says.
class Group {
 public:
  explicit Group(PostLocalSynchronization& policy) : policy_(policy) {
    Plan first = TwoMembers();
    seen_.Start({.members = 2});
    reason_ = policy_.Start(first, seen_);
    plan_.synchronization = first.synchronization;
    plan_.period = first.period;
    seen_.Expect(plan_);
  }

  // So many rounds at the rate; the last proposal.
  std::optional<Proposal> Run(int rounds, double rate) {
    std::optional<Proposal> last;
    const std::function<std::optional<Plan>(const Plan&)> complete = [](const Plan& plan) {
      return std::optional<Plan>(plan);
    };
    for (int i = 0; i < rounds; ++i) {
      ObserveRounds(seen_, plan_, {.first = round_++}, {.learning_rate = rate});
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
  std::uint64_t round_ = 0;
};

const SynchronizationOptions kEveryEight = {.policy = "post_local", .period = 8};

TEST(PostLocalSynchronizationTest, EveryStepUntilTheRateHasFallenThenThePeriod) {
  PostLocalSynchronization policy(kEveryEight);
  Group group(policy);

  EXPECT_EQ(group.plan().synchronization, Synchronization::kEveryStep);
  EXPECT_FALSE(group.Run(50, 0.1));
  const std::optional<Proposal> change = group.Run(1, 0.01);

  ASSERT_TRUE(change);
  EXPECT_EQ(change->plan.synchronization, Synchronization::kPeriodic);
  EXPECT_EQ(change->plan.period, 8u);
  EXPECT_EQ(change->decision.metric, "samples/s");
  EXPECT_GT(change->decision.predicted_gain, 0);
  EXPECT_EQ(change->decision.reason,
            "the schedule lowered the learning rate from 0.10 to 0.0100: from here on parameters "
            "are averaged every 8 steps");
}

TEST(PostLocalSynchronizationTest, WarmingUpAndTheShoulderOfACosineAreNoFall) {
  PostLocalSynchronization policy(kEveryEight);
  Group group(policy);

  for (const double rate : {0.01, 0.05, 0.1, 0.09, 0.06, 0.051}) {
    EXPECT_FALSE(group.Run(10, rate)) << rate;
  }
  EXPECT_TRUE(group.Run(1, 0.05));
}

TEST(PostLocalSynchronizationTest, ThereIsNoWayBack) {
  PostLocalSynchronization policy(kEveryEight);
  Group group(policy);
  group.Run(10, 0.1);
  group.Adopt(group.Run(1, 0.01)->plan);

  EXPECT_FALSE(group.Run(50, 0.1));
  EXPECT_FALSE(group.Run(50, 0.001));
}

TEST(PostLocalSynchronizationTest, ANewGroupGoesOnWithThePeriod) {
  PostLocalSynchronization policy(kEveryEight);
  Group(policy).Run(10, 0.1);
  Group(policy).Run(10, 0.01);

  const Group third(policy);

  EXPECT_EQ(third.plan().synchronization, Synchronization::kPeriodic);
  EXPECT_EQ(third.reason(), "post_local goes on with periodic 8");
}

TEST(PostLocalSynchronizationTest, AJobThatIsResumedWithinItsPeriodsStaysThere) {
  PostLocalSynchronization policy(kEveryEight);
  policy.Resume({.synchronization = Synchronization::kPeriodic, .period = 8});

  EXPECT_EQ(Group(policy).plan().period, 8u);
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
