// What the coordinator's events and actions say in metrics and in the log.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/time.h"
#include "coordinator/job/actions.h"
#include "runtime/metrics.h"

namespace tactus::telemetry {

// Folds the core's inputs and outputs into the coordinator's metrics, and logs each event once:
// changes of state as info, what is degraded as warn, the rest as debug. Series of a job go when
// the job is over; final states in tactus_jobs count those since the start of this process. One
// thread.
class JobTelemetry {
 public:
  // `metrics` outlives this.
  explicit JobTelemetry(runtime::CoordinatorMetrics& metrics);

  // An event is about to be handed to the core.
  void OnEvent(const job::Event& event, Instant now);

  // An action is carried out.
  void OnAction(const job::Action& action);

  // A decision is about to be written; counted once, not again when its gain is measured.
  void OnDecision(const job::PersistDecision& persist);

  // The core took so long over an event.
  void OnStep(Duration spent) { metrics_.AddControllerOverhead(spent); }

 private:
  struct JobSeries {
    std::string name;
    job::JobState state = job::JobState::kQueued;
    std::string reason;
    std::set<std::pair<std::uint64_t, policies::Axis>> decided;  // by plans on their way
  };

  void On(const job::PublishJob& action);
  void On(const job::PublishProgress& action);
  void SetProgress(JobSeries& series, const job::Progress& progress);
  void Count(job::JobState state, int change);

  runtime::CoordinatorMetrics& metrics_;
  std::map<JobId, JobSeries> jobs_;  // not over
  std::map<job::JobState, std::uint64_t> counts_;
};

// "running".
const char* NameOf(job::JobState state);

}  // namespace tactus::telemetry
