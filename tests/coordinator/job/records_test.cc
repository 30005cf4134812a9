#include "coordinator/job/records.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace tactus::job {
namespace {

const std::vector<JobState> kStates = {
    JobState::kQueued,    JobState::kStarting,   JobState::kRunning,
    JobState::kStopping,  JobState::kSucceeded,  JobState::kFailed,
    JobState::kCancelled, JobState::kSuspending, JobState::kPaused};

TEST(RecordsTest, EveryStateHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const JobState state : kStates) names.insert(NameOf(state));

  EXPECT_EQ(names.size(), kStates.size());
  EXPECT_FALSE(names.contains(""));
}

TEST(RecordsTest, AFinalStateIsFinalAndEveryOtherMayFail) {
  for (const JobState from : kStates) {
    EXPECT_EQ(MayFollow(from, JobState::kFailed), !IsFinal(from)) << NameOf(from);
    EXPECT_EQ(MayFollow(from, JobState::kCancelled), !IsFinal(from)) << NameOf(from);
    for (const JobState to : kStates) {
      EXPECT_FALSE(IsFinal(from) && MayFollow(from, to)) << NameOf(from) << " " << NameOf(to);
    }
  }
}

TEST(RecordsTest, OnlyAJobThatIsFinishingSucceeds) {
  for (const JobState from : kStates) {
    EXPECT_EQ(MayFollow(from, JobState::kSucceeded), from == JobState::kStopping) << NameOf(from);
  }
}

TEST(RecordsTest, AJobThatTrainsIsNotQueuedBeforeItsGroupIsSuspended) {
  EXPECT_FALSE(MayFollow(JobState::kRunning, JobState::kQueued));
  EXPECT_FALSE(MayFollow(JobState::kRunning, JobState::kPaused));
  EXPECT_TRUE(MayFollow(JobState::kRunning, JobState::kSuspending));
  EXPECT_TRUE(MayFollow(JobState::kSuspending, JobState::kQueued));
  EXPECT_TRUE(MayFollow(JobState::kSuspending, JobState::kPaused));
}

}  // namespace
}  // namespace tactus::job
