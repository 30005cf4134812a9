#include "coordinator/job/records.h"

namespace tactus::job {

bool IsFinal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed ||
         state == JobState::kCancelled;
}

bool MayFollow(JobState from, JobState to) {
  if (IsFinal(from)) return false;
  // A failure ends any job, and after a cancel a failure is a cancel without a result.
  if (to == JobState::kFailed || to == JobState::kCancelled) return true;
  switch (from) {
    case JobState::kQueued:
      return to == JobState::kStarting || to == JobState::kPaused;
    case JobState::kStarting:
      // STOPPING: who finishes before its first round reports none. QUEUED: after a restart.
      return to == JobState::kRunning || to == JobState::kSuspending || to == JobState::kStopping ||
             to == JobState::kQueued;
    case JobState::kRunning:
      return to == JobState::kSuspending || to == JobState::kStopping;
    case JobState::kSuspending:
      return to == JobState::kPaused || to == JobState::kQueued || to == JobState::kStopping;
    case JobState::kPaused:
      return to == JobState::kQueued;
    case JobState::kStopping:
      return to == JobState::kSucceeded;
    case JobState::kSucceeded:
    case JobState::kFailed:
    case JobState::kCancelled:
      break;
  }
  return false;
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
