#include "coordinator/job/records.h"

namespace tactus::job {

bool IsFinal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed ||
         state == JobState::kCancelled;
}

}  // namespace tactus::job
