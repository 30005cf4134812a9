#include "coordinator/job/reversal.h"

#include <gtest/gtest.h>

namespace tactus::job {
namespace {

using policies::Axis;

policies::Decision Of(std::uint64_t plan_version, Axis axis) {
  return {.plan_version = plan_version, .axis = axis, .from = "before", .to = "after"};
}

// A group on a/cpu:0 and a/cpu:1 that ended under plan 3, though plan 4 was decided; and from plan
// 5 on one on a/cpu:0 and b/cpu:0.
JobRecord TwoGroups() {
  const MemberRecord first{.worker = WorkerId{1}, .node = "a", .device = "cpu:0"};
  const MemberRecord second{.worker = WorkerId{2}, .node = "a", .device = "cpu:1"};
  const MemberRecord other{.worker = WorkerId{3}, .node = "b", .device = "cpu:0"};
  JobRecord record;
  record.groups = {{.generation = 1, .members = {first, second}, .first_plan = 1, .last_plan = 3},
                   {.generation = 2, .members = {first, other}, .first_plan = 5, .last_plan = 5}};
  record.members = {first, other};
  return record;
}

TEST(ReversalTest, SizesOfOtherMembersAreRefusedAndOtherAxesAreNot) {
  const JobRecord record = TwoGroups();

  EXPECT_EQ(WhyNotReverted(record, Of(2, Axis::kBatch), 6),
            "the batch sizes before it were those of a/cpu:0, a/cpu:1, and the group is a/cpu:0, "
            "b/cpu:0");
  EXPECT_EQ(WhyNotReverted(record, Of(2, Axis::kSynchronization), 6), "");
  EXPECT_EQ(WhyNotReverted(record, Of(6, Axis::kBatch), 6), "");
}

TEST(ReversalTest, APlanThatItsGroupDidNotLiveToRunIsRefused) {
  EXPECT_EQ(WhyNotReverted(TwoGroups(), Of(4, Axis::kAggregation), 6),
            "plan 4 never came into force: its group ended under plan 3");
  EXPECT_EQ(WhyNotReverted(TwoGroups(), Of(7, Axis::kAggregation), 6),
            "plan 7 is not in force yet, but plan 6: wait until all workers run it");
}

TEST(ReversalTest, OfAGroupThatIsNotOnRecordTheSizesAreRefused) {
  JobRecord record = TwoGroups();
  record.groups.erase(record.groups.begin());

  EXPECT_EQ(WhyNotReverted(record, Of(2, Axis::kBatch), 6),
            "whose batch sizes they were is not on record any more");
  EXPECT_EQ(WhyNotReverted(record, Of(2, Axis::kSynchronization), 6), "");
}

TEST(ReversalTest, OneIsTakenBackAtATime) {
  JobRecord record = TwoGroups();
  record.reversal = Of(5, Axis::kLearningRate);

  EXPECT_EQ(
      WhyNotReverted(record, Of(6, Axis::kSynchronization), 6),
      "decision 5-learning-rate is being taken back: wait until the plan after 6 is in force");
}

TEST(ReversalTest, FrozenAxesAreInTheirOrderAndEachOnce) {
  JobSettings settings;

  for (const Axis axis : {Axis::kLearningRate, Axis::kBatch, Axis::kBatch}) Freeze(settings, axis);

  EXPECT_EQ(settings.adapt.frozen, (std::vector<Axis>{Axis::kBatch, Axis::kLearningRate}));
}

}  // namespace
}  // namespace tactus::job
