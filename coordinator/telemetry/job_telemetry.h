// What the coordinator's events and actions say in metrics and in the log.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/telemetry/queue_age.h"
#include "metrics/coordinator_metrics.h"
#include "policies/gradient_noise.h"

namespace tactus::telemetry {

// Folds the core's inputs and outputs into the coordinator's metrics, and logs each event once:
// changes of state as info, what is degraded as warn, the rest as debug. A job has series from its
// first start until a while after its end (metrics::JobSeries); final states in tactus_jobs count
// those since the start of this process. One thread.
class JobTelemetry {
 public:
  // `metrics` outlives this. `wall`: [ns] since 1970.
  explicit JobTelemetry(metrics::CoordinatorMetrics& metrics,
                        std::function<std::int64_t()> wall = runtime::WallNow);

  // An event is about to be handed to the core.
  void OnEvent(const job::Event& event, Instant now);

  // The core answered the event with these, after so long; nothing of them is carried out yet.
  void OnStep(const job::Actions& actions, Duration spent);

  // An action is carried out.
  void OnAction(const job::Action& action);

 private:
  struct Job {
    std::string name;
    job::JobState state = job::JobState::kQueued;
    std::string reason;
    std::string checkpoint;
    std::uint32_t suspensions = 0;
    std::uint32_t attempts_lost = 0;
    std::uint32_t regroups = 0;
    std::uint32_t differences = 0;
    std::uint64_t selections = 0;
    std::uint32_t resizes = 0;
    std::vector<WorkerId> workers{};  // by rank; those that sit on devices
    policies::Plan plan{};            // in force, as published last
    policies::RoundNoise noise{};
    bool skipped = false;                                        // an update was, and was told of
    bool repeated = false;                                       // likewise a pass
    bool unrecorded = false;                                     // likewise a round
    std::set<std::pair<std::uint64_t, policies::Axis>> decided;  // by plans on their way
    std::optional<Instant> suspending_since{};                   // until its checkpoint is here
    std::optional<Instant> last_word{};                          // of its workers, meanwhile
  };
  struct Member {
    JobId job{};
    std::uint32_t rank = 0;
  };

  void On(const job::PublishJob& action);
  void On(const job::PublishProgress& action);
  void On(const job::PersistRound& action);
  void On(const job::PersistDecision& action);
  void OnSuspended(WorkerId worker);
  void ObserveCheckpoint(const job::JobRecord& record);
  void OnReport(WorkerId worker, const policies::Report& report);
  Job& Enter(const job::JobRecord& record);
  void SetMembers(Job& job, const job::JobRecord& record);
  void SetProgress(JobId id, Job& job, const job::Progress& progress);
  void Leave(JobId id);
  void Count(job::JobState state, int change);

  metrics::CoordinatorMetrics& metrics_;
  const std::function<std::int64_t()> wall_;
  QueueAge queue_;
  Instant now_{};              // of the event that the core deals with
  std::map<JobId, Job> jobs_;  // not over
  const std::function<std::string(JobId)> name_of_ = [this](JobId id) {
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? std::string("-") : found->second.name;
  };
  std::unordered_map<std::uint64_t, Member> members_;  // of jobs_, by their workers' ids
  std::map<job::JobState, std::uint64_t> counts_;
};

}  // namespace tactus::telemetry
