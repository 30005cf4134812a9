#include "coordinator/job/steering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace tactus::job {
namespace {

using testing::ElementsAre;

// Proposes what the test put there.
class ScriptedPolicy final : public policies::BatchPolicy {
 public:
  explicit ScriptedPolicy(std::vector<std::uint32_t>* proposal) : proposal_(proposal) {}

  policies::BatchDecision Start(std::uint32_t members) override {
    return {.batch_sizes = std::vector<std::uint32_t>(members, 8), .reason = "start"};
  }
  void Observe(const policies::Report&) override {}
  policies::BatchDecision Decide(const std::vector<std::uint32_t>&) override {
    return {.batch_sizes = *proposal_, .reason = "better"};
  }

 private:
  std::vector<std::uint32_t>* const proposal_;
};

class SteeringTest : public testing::Test {
 protected:
  std::vector<std::uint32_t> proposal_;
  Steering steering_{std::make_unique<ScriptedPolicy>(&proposal_), 0};
};

TEST_F(SteeringTest, TheFirstPlanIsVersionOneAndAdopted) {
  const policies::Plan plan = steering_.Start(2);

  EXPECT_EQ(plan.version, 1u);
  EXPECT_THAT(plan.batch_sizes, ElementsAre(8u, 8u));
  EXPECT_EQ(plan.reason, "start");
  EXPECT_EQ(steering_.adopted(), plan);
}

TEST_F(SteeringTest, NothingIsDecidedBeforeARoundUnderTheNewestPlan) {
  steering_.Start(2);
  proposal_ = {10, 6};

  EXPECT_FALSE(steering_.Decide().has_value());
  steering_.RoundDone(1);
  const std::optional<policies::Plan> second = steering_.Decide();

  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->version, 2u);
  EXPECT_THAT(second->batch_sizes, ElementsAre(10u, 6u));
  EXPECT_EQ(second->reason, "better");
}

TEST_F(SteeringTest, OnePlanTravelsAtATime) {
  steering_.Start(2);
  steering_.RoundDone(1);
  proposal_ = {10, 6};
  steering_.Decide();
  proposal_ = {11, 5};

  steering_.RoundDone(1);
  EXPECT_FALSE(steering_.Decide().has_value());
  EXPECT_EQ(steering_.adopted().version, 1u);
  steering_.RoundDone(2);

  EXPECT_EQ(steering_.adopted().version, 2u);
  EXPECT_EQ(steering_.Decide()->version, 3u);
}

TEST_F(SteeringTest, AProposalOfWhatIsInForceIsNoPlan) {
  steering_.Start(2);
  steering_.RoundDone(1);
  proposal_ = {8, 8};

  EXPECT_FALSE(steering_.Decide().has_value());
  EXPECT_EQ(steering_.newest().version, 1u);
}

TEST_F(SteeringTest, AResumedPlanKeepsItsSizesAndItsVersion) {
  const policies::Plan adopted{.version = 4, .batch_sizes = {3, 5}, .reason = "old"};

  steering_.Resume(adopted, {});

  EXPECT_EQ(steering_.adopted(), adopted);
  EXPECT_EQ(steering_.newest(), adopted);
}

TEST_F(SteeringTest, APlanThatTravelledAtTheRestartTravelsStill) {
  const policies::Plan adopted{.version = 4, .batch_sizes = {3, 5}, .reason = "old"};
  const policies::Plan newest{.version = 5, .batch_sizes = {4, 4}, .reason = "new"};
  proposal_ = {2, 6};

  steering_.Resume(adopted, newest);

  steering_.RoundDone(4);
  EXPECT_FALSE(steering_.Decide().has_value());
  steering_.RoundDone(5);
  EXPECT_EQ(steering_.adopted(), newest);
  EXPECT_EQ(steering_.Decide()->version, 6u);
}

TEST_F(SteeringTest, VersionsGoOnAfterThoseOfAnEarlierGroup) {
  Steering steering(std::make_unique<ScriptedPolicy>(&proposal_), 7);

  EXPECT_EQ(steering.Start(1).version, 8u);
}

}  // namespace
}  // namespace tactus::job
