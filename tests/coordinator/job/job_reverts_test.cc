// Decisions that a user takes back.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using policies::Axis;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class JobRevertsTest : public testing::Test {
 protected:
  // The shares follow the speeds of 100, 100 and 50, by plan 2, which is in force.
  void ToShares() {
    rig_.ToRunning();
    for (int round = 0; round < 20 && shares_.to.empty(); ++round) {
      for (const PersistDecision& action : Only<PersistDecision>(rig_.Round())) {
        if (!action.decision.measured_gain) shares_ = action.decision;
      }
    }
    ASSERT_EQ(shares_.plan_version, 2u);
    ASSERT_EQ(shares_.from, "32,32,32");
    rig_.Round(2);
  }
  Actions Revert(const policies::Decision& decision, const std::string& request = "") {
    return rig_.Step(DecisionReverted{
        .job = JobId{1}, .decision = decision, .spec = "frozen", .request_id = request});
  }
  std::string WhyNot(const policies::Decision& decision) const {
    return rig_.cluster().WhyNotReverted(JobId{1}, decision);
  }
  // Every round whole, its plan in force.
  void Run(int rounds, std::uint64_t plan) {
    for (int round = 0; round < rounds; ++round) {
      const Actions actions = rig_.Round(plan);
      EXPECT_THAT(PlansSent(actions), IsEmpty());
    }
  }

  mutable Rig rig_;
  policies::Decision shares_{};
};

TEST_F(JobRevertsTest, TheSizesBeforeTravelAsAPlanAndStay) {
  ToShares();

  const Actions reverted = Revert(shares_);

  const std::vector<policies::Plan> plans = PlansSent(reverted);
  ASSERT_THAT(plans, SizeIs(3));
  EXPECT_EQ(plans[0].version, 3u);
  EXPECT_THAT(plans[0].batch_sizes, ElementsAre(32, 32, 32));
  const std::vector<PersistDecision> decisions = Only<PersistDecision>(reverted);
  ASSERT_THAT(decisions, SizeIs(1));
  EXPECT_EQ(decisions[0].decision.from, shares_.to);
  EXPECT_THAT(decisions[0].decision.reason, HasSubstr("reverted by a request: decision 2-batch"));
  EXPECT_THAT(rig_.record().settings.adapt.frozen, ElementsAre(Axis::kBatch));
  EXPECT_EQ(rig_.record().spec, "frozen");
  EXPECT_FALSE(rig_.record().reversal.has_value());
  Run(40, 3);
}

TEST_F(JobRevertsTest, ItIsOnRecordBeforeItIsSent) {
  ToShares();

  const Actions reverted = Revert(shares_);

  std::size_t persisted = 0;
  for (const Action& action : reverted) {
    const auto* const record = std::get_if<PersistJob>(&action);
    if (record != nullptr && record->record.newest_plan.version == 3) ++persisted;
    if (std::holds_alternative<SendToWorker>(action)) {
      EXPECT_GT(persisted, 0u);
    }
  }
  EXPECT_FALSE(Only<PublishJob>(reverted).empty());
}

TEST_F(JobRevertsTest, WhileAPlanTravelsItWaitsForThatAndOutlivesARestart) {
  ToShares();
  JobSettings settings = rig_.record().settings;
  settings.adapt.batch.per_worker = 64;
  rig_.Step(JobUpdated{.job = JobId{1}, .settings = settings});
  ASSERT_THAT(PlansSent(rig_.Round(2)), SizeIs(3)) << "plan 3 travels";

  EXPECT_THAT(PlansSent(Revert(shares_)), IsEmpty());

  EXPECT_EQ(rig_.record().reversal, shares_);
  EXPECT_THAT(WhyNot(shares_), HasSubstr("2-batch is being taken back"));
  rig_.Restart();
  rig_.Rejoin("a", 2, {WorkerId{1}, WorkerId{2}});
  rig_.Rejoin("b", 1, {WorkerId{3}});
  Run(1, 2);
  const std::vector<policies::Plan> plans = PlansSent(rig_.Round(3));
  ASSERT_THAT(plans, SizeIs(3));
  EXPECT_EQ(plans[0].version, 4u);
  EXPECT_THAT(plans[0].batch_sizes, ElementsAre(32, 32, 32));
  Run(40, 4);
}

TEST_F(JobRevertsTest, ARequestThatComesAgainDoesNothing) {
  ToShares();
  Revert(shares_, "one");
  JobSettings settings = rig_.record().settings;
  settings.adapt.frozen = {};
  rig_.Step(JobUpdated{.job = JobId{1}, .settings = settings});
  std::uint64_t version = 3;
  for (int round = 0; round < 30 && version == 3; ++round) {
    version = PlansSent(rig_.Round(3)).empty() ? 3 : 4;
  }
  ASSERT_EQ(version, 4u) << "set free, it follows the speeds again";
  rig_.Round(4);

  EXPECT_THAT(Revert(shares_, "one"), testing::Each(testing::VariantWith<WakeAt>(testing::_)));

  EXPECT_EQ(rig_.record().newest_plan.version, 4u);
}

TEST_F(JobRevertsTest, SetFreeBeforeItsPlanWasMadeTheWishIsTakenBack) {
  ToShares();
  JobSettings settings = rig_.record().settings;
  settings.adapt.batch.per_worker = 64;
  rig_.Step(JobUpdated{.job = JobId{1}, .settings = settings});
  rig_.Round(2);
  Revert(shares_);
  ASSERT_TRUE(rig_.record().reversal.has_value());

  rig_.Step(JobUpdated{.job = JobId{1}, .settings = settings});

  EXPECT_FALSE(rig_.record().reversal.has_value());
}

TEST_F(JobRevertsTest, WhatNeverCameIntoForceIsRefused) {
  rig_.ToRunning();
  policies::Decision decision;
  for (int round = 0; round < 20 && decision.to.empty(); ++round) {
    for (const PersistDecision& action : Only<PersistDecision>(rig_.Round())) {
      decision = action.decision;
    }
  }

  EXPECT_EQ(WhyNot(decision),
            "plan 2 is not in force yet, but plan 1: wait until all workers run it");
  Revert(decision);
  EXPECT_THAT(rig_.record().settings.adapt.frozen, IsEmpty());
  decision.from.clear();
  EXPECT_THAT(WhyNot(decision), HasSubstr("nothing was before"));
}

TEST_F(JobRevertsTest, AValueThatItHasIsRefused) {
  ToShares();
  Revert(shares_);
  Run(1, 3);

  EXPECT_EQ(WhyNot(shares_), "the batch is 32,32,32 already");
}

TEST_F(JobRevertsTest, AJobThatDoesNotTrainHasNothingToTakeBack) {
  rig_.ToFormed();

  EXPECT_EQ(WhyNot({.plan_version = 1, .from = "1,1,1", .to = "2,2,2"}), "the job does not train");
}

class JobRevertsLaterTest : public JobRevertsTest {
 protected:
  // Its workers crash after plan 3, and the job goes on with workers 4 to 6.
  void ToSecondGroup() {
    ToShares();
    Revert(shares_);
    rig_.Round(3);
    Actions last;
    for (std::uint64_t worker = 1; worker <= 3; ++worker) {
      last = rig_.Step(WorkerExited{.worker = WorkerId{worker}, .exit_code = 1});
    }
    rig_.StepAt(rig_.seconds() + 120, Ticked{});
    ASSERT_EQ(rig_.record().state, JobState::kStarting);
    for (std::uint64_t worker = 4; worker <= 6; ++worker) {
      formed_ = rig_.Step(Said(worker, Ready()));
    }
  }
  Actions formed_{};
};

TEST_F(JobRevertsLaterTest, TheNextGroupOfTheSameDevicesGoesOnWithWhatIsFrozen) {
  ToSecondGroup();

  const std::vector<GroupMessage> groups = Sent<GroupMessage>(formed_);
  ASSERT_THAT(groups, SizeIs(3));
  EXPECT_THAT(groups[0].plan.batch_sizes, ElementsAre(32, 32, 32));
  const std::vector<PersistDecision> decisions = Only<PersistDecision>(formed_);
  ASSERT_FALSE(decisions.empty());
  EXPECT_EQ(decisions[0].decision.reason, "the batch is frozen and stays as it was");
}

TEST_F(JobRevertsLaterTest, GroupsSayWhichOfTheirPlansCameIntoForce) {
  ToSecondGroup();

  const std::vector<GroupRecord>& groups = rig_.record().groups;
  ASSERT_THAT(groups, SizeIs(2));
  EXPECT_EQ(groups[0].first_plan, 1u);
  EXPECT_EQ(groups[0].last_plan, 3u);
  EXPECT_EQ(groups[1].first_plan, 4u);
}

}  // namespace
}  // namespace tactus::job
