#include "coordinator/job/steering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

namespace tactus::job {
namespace {

using testing::ElementsAre;

// Proposes what the test put there.
class ScriptedPolicy final : public policies::PlanPolicy {
 public:
  explicit ScriptedPolicy(std::vector<std::uint32_t>* proposal) : proposal_(proposal) {}

  policies::Revision Start(const policies::StartingGroup& group) override {
    return {
        .plan = {.batch_sizes = std::vector<std::uint32_t>(group.members, 8), .reason = "start"},
        .decisions = {{.to = "8,8", .reason = "start"}}};
  }
  std::string Memory() const override { return "learned"; }
  std::string Recall(std::string_view memory, std::uint32_t members) override {
    recalled_ = std::string(memory) + " of " + std::to_string(members);
    return {};
  }
  const std::string& recalled() const { return recalled_; }
  std::optional<double> seconds_left() const { return seconds_left_; }
  void Resume(const policies::Plan&, const policies::KnownEncodings&) override {}
  void Observe(const policies::Report&) override {}
  std::optional<policies::Revision> Decide(const policies::Plan& in_force,
                                           std::optional<double> seconds_left) override {
    seconds_left_ = seconds_left;
    if (proposal_->empty()) return std::nullopt;
    policies::Plan plan = in_force;
    plan.batch_sizes = *proposal_;
    plan.reason = "better";
    return policies::Revision{.plan = plan, .decisions = {{.to = "others", .reason = "better"}}};
  }
  policies::Undoing Undo(const policies::Plan& in_force,
                         const policies::Decision& decision) const override {
    policies::Plan plan = in_force;
    plan.reason = "back to " + decision.from;
    return {.revision = policies::Revision{
                .plan = plan, .decisions = {{.to = decision.from, .reason = plan.reason}}}};
  }
  std::optional<policies::Revision> Revert(const policies::Plan& in_force,
                                           const policies::Decision& decision) override {
    return Undo(in_force, decision).revision;
  }
  void Freeze(policies::Axis) override {}
  std::optional<policies::MeasuredGroup> Measured(const policies::Plan&) const override {
    return std::nullopt;
  }
  std::optional<policies::Prior> Learned() const override { return std::nullopt; }
  std::vector<policies::Decision> TakeMeasured() override { return {}; }

 private:
  std::vector<std::uint32_t>* const proposal_;
  std::string recalled_;
  std::optional<double> seconds_left_;
};

class SteeringTest : public testing::Test {
 protected:
  std::vector<std::uint32_t> proposal_;
  Steering steering_{std::make_unique<ScriptedPolicy>(&proposal_), 0};
};

TEST_F(SteeringTest, TheFirstPlanIsVersionOneAndAdopted) {
  const policies::Revision first = steering_.Start({.members = 2});
  const policies::Plan& plan = first.plan;

  EXPECT_EQ(plan.version, 1u);
  EXPECT_THAT(plan.batch_sizes, ElementsAre(8u, 8u));
  EXPECT_EQ(plan.reason, "start");
  EXPECT_EQ(steering_.adopted(), plan);
  EXPECT_EQ(first.decisions[0].plan_version, 1u);
}

TEST_F(SteeringTest, NothingIsDecidedBeforeARoundUnderTheNewestPlan) {
  steering_.Start({.members = 2});
  proposal_ = {10, 6};

  EXPECT_FALSE(steering_.Decide({}).has_value());
  steering_.RoundDone(1);
  const std::optional<policies::Revision> second = steering_.Decide({});

  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->plan.version, 2u);
  EXPECT_THAT(second->plan.batch_sizes, ElementsAre(10u, 6u));
  EXPECT_EQ(second->plan.reason, "better");
  EXPECT_EQ(second->decisions[0].plan_version, 2u);
}

TEST_F(SteeringTest, ThePolicyIsToldHowMuchTrainingIsLeft) {
  auto policy = std::make_unique<ScriptedPolicy>(&proposal_);
  const ScriptedPolicy& told = *policy;
  Steering steering(std::move(policy), 0);
  steering.Start({.members = 2});
  steering.RoundDone(1);

  steering.Decide(12.5);

  EXPECT_EQ(told.seconds_left(), 12.5);
}

TEST_F(SteeringTest, OnePlanTravelsAtATime) {
  steering_.Start({.members = 2});
  steering_.RoundDone(1);
  proposal_ = {10, 6};
  steering_.Decide({});
  proposal_ = {11, 5};

  steering_.RoundDone(1);
  EXPECT_FALSE(steering_.Decide({}).has_value());
  EXPECT_EQ(steering_.adopted().version, 1u);
  steering_.RoundDone(2);

  EXPECT_EQ(steering_.adopted().version, 2u);
  EXPECT_EQ(steering_.Decide({})->plan.version, 3u);
}

TEST_F(SteeringTest, WithoutAProposalThePlanStays) {
  steering_.Start({.members = 2});
  steering_.RoundDone(1);

  EXPECT_FALSE(steering_.Decide({}).has_value());
  EXPECT_EQ(steering_.newest().version, 1u);
}

TEST_F(SteeringTest, AResumedPlanKeepsItsSizesAndItsVersion) {
  const policies::Plan adopted{.version = 4, .batch_sizes = {3, 5}, .reason = "old"};

  steering_.Resume(adopted, {}, {});

  EXPECT_EQ(steering_.adopted(), adopted);
  EXPECT_EQ(steering_.newest(), adopted);
}

TEST_F(SteeringTest, APlanThatTravelledAtTheRestartTravelsStill) {
  const policies::Plan adopted{.version = 4, .batch_sizes = {3, 5}, .reason = "old"};
  const policies::Plan newest{.version = 5, .batch_sizes = {4, 4}, .reason = "new"};
  proposal_ = {2, 6};

  steering_.Resume(adopted, newest, {});

  steering_.RoundDone(4);
  EXPECT_FALSE(steering_.Decide({}).has_value());
  steering_.RoundDone(5);
  EXPECT_EQ(steering_.adopted(), newest);
  EXPECT_EQ(steering_.Decide({})->plan.version, 6u);
}

// It is the policy's to refuse what does not suit it.
TEST_F(SteeringTest, AnotherPolicyIsOfferedWhatTheFormerOneLearned) {
  steering_.Start({.members = 2});
  auto other = std::make_unique<ScriptedPolicy>(&proposal_);
  const ScriptedPolicy& kept = *other;

  steering_.Replace(std::move(other), std::nullopt);

  EXPECT_EQ(kept.recalled(), "learned of 2");
}

// As of two updates, the second of which only freezes an axis.
TEST_F(SteeringTest, AFirstPlanThatIsDueOutlivesAnotherPolicy) {
  proposal_.clear();
  steering_.Start({.members = 2});
  steering_.Replace(std::make_unique<ScriptedPolicy>(&proposal_),
                    policies::StartingGroup{.members = 2});

  steering_.Replace(std::make_unique<ScriptedPolicy>(&proposal_), std::nullopt);

  steering_.RoundDone(1);
  const std::optional<policies::Revision> revision = steering_.Decide({});
  ASSERT_TRUE(revision.has_value());
  EXPECT_EQ(revision->plan.reason, "start");
}

TEST_F(SteeringTest, VersionsGoOnAfterThoseOfAnEarlierGroup) {
  Steering steering(std::make_unique<ScriptedPolicy>(&proposal_), 7);

  EXPECT_EQ(steering.Start({.members = 1}).plan.version, 8u);
}

}  // namespace
}  // namespace tactus::job
