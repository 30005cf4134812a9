#include "coordinator/job/records.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tactus::job {

bool IsFinal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed ||
         state == JobState::kCancelled;
}

bool MayFollow(JobState from, JobState to) {
  using enum JobState;
  static constexpr std::pair<JobState, JobState> kSteps[] = {
      {kQueued, kStarting},     {kQueued, kPaused},       {kPaused, kQueued},
      {kStarting, kRunning},    {kStarting, kSuspending}, {kStarting, kStopping},
      {kStarting, kQueued},     {kRunning, kSuspending},  {kRunning, kStopping},
      {kSuspending, kStopping}, {kSuspending, kQueued},   {kSuspending, kPaused},
      {kStopping, kSucceeded},  {kStopping, kSuspending}};
  // A failure ends any job; after a cancel it is a cancel without a result.
  if (to == kFailed || to == kCancelled) return !IsFinal(from);
  return std::ranges::find(kSteps, std::pair(from, to)) != std::end(kSteps);
}

const char* NameOf(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "queued";
    case JobState::kStarting:
      return "starting";
    case JobState::kRunning:
      return "running";
    case JobState::kStopping:
      return "stopping";
    case JobState::kSucceeded:
      return "succeeded";
    case JobState::kFailed:
      return "failed";
    case JobState::kCancelled:
      return "cancelled";
    case JobState::kSuspending:
      return "suspending";
    case JobState::kPaused:
      return "paused";
  }
  return "";
}

}  // namespace tactus::job
