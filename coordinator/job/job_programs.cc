// The part of JobController that knows of programs: their training is over before they are.

#include <vector>

#include "coordinator/job/job_controller.h"

namespace tactus::job {

// Programs that go on, of which nothing is wanted any more.
bool JobController::AllThere() const {
  const ResultCollector& results = group_.results();
  return record().settings.program && state() == JobState::kStopping && !group_.empty() &&
         results.AllFinished() && results.MissingFiles().empty();
}

// The result stands, and its user is told that what came behind it failed.
void JobController::NoteExit(const std::vector<std::uint32_t>& ranks, const Departure& departure) {
  const auto* const exited = std::get_if<WorkerExited>(&departure);
  const bool failed = exited != nullptr && (exited->exit_code != 0 || exited->signal != 0);
  if (!failed || !failed_behind_.empty() || ranks.empty()) return;
  failed_behind_ = FindingOf(group_.members()[ranks.front()], departure).reason;
}

}  // namespace tactus::job
