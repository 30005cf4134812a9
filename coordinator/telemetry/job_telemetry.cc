#include "coordinator/telemetry/job_telemetry.h"

#include <spdlog/spdlog.h>

#include <array>
#include <numeric>
#include <variant>

#include "coordinator/telemetry/event_log.h"
#include "policies/axis_policy.h"
#include "runtime/logging.h"

namespace tactus::telemetry {
namespace {

constexpr std::array kStates = {
    job::JobState::kQueued,    job::JobState::kStarting,   job::JobState::kRunning,
    job::JobState::kStopping,  job::JobState::kSucceeded,  job::JobState::kFailed,
    job::JobState::kCancelled, job::JobState::kSuspending, job::JobState::kPaused};

void CountEvent(const job::Event& event, runtime::CoordinatorMetrics& metrics) {
  if (const auto* joined = std::get_if<job::NodeJoined>(&event)) {
    if (!joined->same_incarnation) metrics.CountMembershipChange("joined");
  } else if (std::holds_alternative<job::NodeLost>(event)) {
    metrics.CountMembershipChange("lost");
  } else if (std::holds_alternative<job::WorkerExited>(event)) {
    metrics.CountMembershipChange("worker_exited");
  } else if (const auto* said = std::get_if<job::WorkerSaid>(&event)) {
    const auto* message = std::get_if<job::ReportMessage>(&said->message);
    if (message == nullptr) return;
    metrics.ObserveRound("compute", message->report.compute_seconds);
    metrics.ObserveRound("blocked", message->report.blocked_seconds);
    metrics.ObserveRound("total", message->report.round_seconds);
  }
}

}  // namespace

const char* NameOf(job::JobState state) {
  switch (state) {
    case job::JobState::kQueued:
      return "queued";
    case job::JobState::kStarting:
      return "starting";
    case job::JobState::kRunning:
      return "running";
    case job::JobState::kStopping:
      return "stopping";
    case job::JobState::kSucceeded:
      return "succeeded";
    case job::JobState::kFailed:
      return "failed";
    case job::JobState::kCancelled:
      return "cancelled";
    case job::JobState::kSuspending:
      return "suspending";
    case job::JobState::kPaused:
      return "paused";
  }
  return "";
}

JobTelemetry::JobTelemetry(runtime::CoordinatorMetrics& metrics) : metrics_(metrics) {
  for (const job::JobState state : kStates) Count(state, 0);
}

void JobTelemetry::OnEvent(const job::Event& event, Instant now) {
  CountEvent(event, metrics_);
  LogEvent(event, now);
}

void JobTelemetry::OnAction(const job::Action& action) {
  if (const auto* changed = std::get_if<job::PublishJob>(&action)) On(*changed);
  if (const auto* progress = std::get_if<job::PublishProgress>(&action)) On(*progress);
  if (const auto* decision = std::get_if<job::PublishDecision>(&action)) LogDecision(*decision);
}

void JobTelemetry::On(const job::PublishJob& action) {
  const job::JobRecord& record = action.record;
  const auto [entry, fresh] = jobs_.try_emplace(record.id);
  JobSeries& series = entry->second;
  if (!fresh) Count(series.state, -1);
  Count(record.state, 1);
  if (fresh || series.state != record.state || series.reason != record.state_reason) {
    LogChange(record, NameOf(record.state));
  }
  series.name = record.name;
  series.state = record.state;
  series.reason = record.state_reason;
  if (!job::IsFinal(record.state)) return SetProgress(series, record.progress);
  metrics_.RemoveJob(record.name);
  jobs_.erase(entry);
}

void JobTelemetry::On(const job::PublishProgress& action) {
  const auto found = jobs_.find(action.job);
  if (found != jobs_.end()) SetProgress(found->second, action.progress);
}

void JobTelemetry::OnDecision(const job::PersistDecision& persist) {
  const policies::Decision& decision = persist.decision;
  if (decision.measured_gain) return;
  metrics_.CountDecision(std::string(policies::FieldOf(decision.axis)), "decided");
  const auto found = jobs_.find(persist.job);
  if (found != jobs_.end()) found->second.decided.emplace(decision.plan_version, decision.axis);
}

void JobTelemetry::SetProgress(JobSeries& series, const job::Progress& progress) {
  while (!series.decided.empty() && series.decided.begin()->first <= progress.plan.version) {
    const auto [version, axis] = *series.decided.begin();
    metrics_.CountDecision(std::string(policies::FieldOf(axis)),
                           version == progress.plan.version ? "adopted" : "superseded");
    series.decided.erase(series.decided.begin());
  }
  runtime::CoordinatorMetrics::Job job;
  job.loss = progress.loss;
  job.samples = progress.samples;
  job.samples_per_second = progress.samples_per_second;
  job.global_batch = std::accumulate(progress.plan.batch_sizes.begin(),
                                     progress.plan.batch_sizes.end(), std::uint64_t{0});
  for (const job::WorkerProgress& worker : progress.workers) {
    job.workers.push_back({.batch = worker.batch_size, .idle_ratio = worker.idle_ratio});
  }
  metrics_.SetJob(series.name, job);
}

void JobTelemetry::Count(job::JobState state, int change) {
  std::uint64_t& count = counts_[state];
  count += static_cast<std::uint64_t>(change);
  metrics_.SetJobs(NameOf(state), count);
}

}  // namespace tactus::telemetry
