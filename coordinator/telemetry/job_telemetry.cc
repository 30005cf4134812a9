#include "coordinator/telemetry/job_telemetry.h"

#include <spdlog/spdlog.h>

#include <numeric>
#include <string_view>
#include <utility>
#include <variant>

#include "coordinator/job/attempts.h"
#include "coordinator/telemetry/event_log.h"
#include "policies/axis_policy.h"
#include "policies/plan_names.h"
#include "runtime/logging.h"

namespace tactus::telemetry {
namespace {

void CountEvent(const job::Event& event, metrics::CoordinatorMetrics& metrics) {
  if (const auto* joined = std::get_if<job::NodeJoined>(&event)) {
    if (!joined->same_incarnation) metrics.CountMembershipChange("joined");
  } else if (std::holds_alternative<job::NodeUnreachable>(event)) {
    metrics.CountMembershipChange("unreachable");
  } else if (std::holds_alternative<job::NodeLeaving>(event)) {
    metrics.CountMembershipChange("leaving");
  } else if (std::holds_alternative<job::NodeLost>(event)) {
    metrics.CountMembershipChange("lost");
  } else if (std::holds_alternative<job::WorkerExited>(event)) {
    metrics.CountMembershipChange("worker_exited");
  }
}

// While it does not, the members on its record are those of its last group, which is gone.
bool HoldsDevices(job::JobState state) {
  return state == job::JobState::kStarting || state == job::JobState::kRunning ||
         state == job::JobState::kStopping || state == job::JobState::kSuspending;
}

// While it does not, the speeds in its progress are those of its last rounds.
bool Trains(job::JobState state) {
  return state == job::JobState::kRunning || state == job::JobState::kStopping;
}

void SetSpeeds(const job::Progress& progress, metrics::JobFigures& figures) {
  figures.samples_per_second = progress.samples_per_second;
  for (const job::WorkerProgress& worker : progress.workers) {
    figures.workers.push_back({.batch = worker.batch_size,
                               .samples_per_second = worker.samples_per_second,
                               .idle_ratio = worker.idle_ratio,
                               .link_bytes_per_second = worker.link_bytes_per_second});
  }
}

void SetValidation(const job::ValidationProgress& progress, metrics::JobFigures& figures) {
  figures.validations = progress.count;
  if (progress.best) figures.best_validation_loss = progress.best->loss;
  if (!progress.newest) return;
  const job::ValidationRecord& newest = *progress.newest;
  figures.validation = metrics::ValidationFigures{
      .loss = newest.loss, .accuracy = newest.accuracy, .seconds = newest.seconds};
}

}  // namespace

JobTelemetry::JobTelemetry(metrics::CoordinatorMetrics& metrics, std::function<std::int64_t()> wall)
    : metrics_(metrics), wall_(std::move(wall)) {}

// ---- Events

void JobTelemetry::OnEvent(const job::Event& event, Instant now) {
  now_ = now;
  CountEvent(event, metrics_);
  if (const auto* said = std::get_if<job::WorkerSaid>(&event)) {
    const auto* message = std::get_if<job::ReportMessage>(&said->message);
    if (message != nullptr) OnReport(said->worker, message->report);
    const auto* finished = std::get_if<job::FinishedMessage>(&said->message);
    if (finished != nullptr && finished->suspended) OnSuspended(said->worker);
    const auto* taken = std::get_if<job::CheckpointedMessage>(&said->message);
    if (taken != nullptr) {
      metrics_.ObserveCheckpointTaken(taken->still_seconds, taken->write_seconds);
    }
  }
  LogEvent(event, now, name_of_);
}

void JobTelemetry::OnSuspended(WorkerId worker) {
  const auto member = members_.find(worker.value);
  if (member != members_.end()) jobs_.at(member->second.job).last_word = now_;
}

// A job that is suspended before it trains is secured at once, without a checkpoint.
void JobTelemetry::ObserveCheckpoint(const job::JobRecord& record) {
  const auto found = jobs_.find(record.id);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  if (record.state != job::JobState::kSuspending || !record.suspension || record.suspension->lost) {
    job.suspending_since.reset();
    job.last_word.reset();
  } else if (!record.suspension->secured) {
    if (!job.suspending_since) job.suspending_since = now_;
  } else if (job.suspending_since && job.last_word) {
    metrics_.ObserveCheckpoint(*job.last_word - *job.suspending_since, now_ - *job.last_word);
    job.suspending_since.reset();
  }
}

// Reports come a second and worker, or by the hundred: no text is made of them.
void JobTelemetry::OnReport(WorkerId worker, const policies::Report& report) {
  metrics_.ObserveRound({.compute_seconds = report.compute_seconds,
                         .blocked_seconds = report.blocked_seconds,
                         .transfer_seconds = report.transfer_seconds,
                         .total_seconds = report.round_seconds,
                         .steps = report.steps});
  const auto member = members_.find(worker.value);
  if (member == members_.end()) return;
  const JobId id = member->second.job;
  metrics_.jobs().CountBytes(id, report.bytes_sent);
  if (member->second.rank != 0) return;  // the following is equal on all members
  if (report.nonfinite_members > 0) {
    if (!std::exchange(jobs_.at(id).skipped, true)) LogSkipped(id, report, name_of_);
    return metrics_.jobs().CountSkipped(id);
  }
  jobs_.at(id).noise.Observe(report);
}

// ---- Actions

void JobTelemetry::OnStep(const job::Actions& actions, Duration spent) {
  metrics_.CountEvent(spent);
  for (const job::Action& action : actions) {
    if (const auto* round = std::get_if<job::PersistRound>(&action)) On(*round);
    if (const auto* decision = std::get_if<job::PersistDecision>(&action)) On(*decision);
    if (const auto* changed = std::get_if<job::PublishJob>(&action)) {
      ObserveCheckpoint(changed->record);
    }
  }
}

void JobTelemetry::OnAction(const job::Action& action) {
  if (const auto* changed = std::get_if<job::PublishJob>(&action)) On(*changed);
  if (const auto* progress = std::get_if<job::PublishProgress>(&action)) On(*progress);
  if (const auto* decision = std::get_if<job::PublishDecision>(&action)) {
    LogDecision(*decision, name_of_);
  }
  if (const auto* anew = std::get_if<job::PublishRelearning>(&action)) {
    LogRelearning(*anew, name_of_);
  }
}

void JobTelemetry::On(const job::PersistRound& action) {
  const auto found = jobs_.find(action.round.job);
  if (found == jobs_.end()) return;
  const job::RoundRecord& round = action.round;
  metrics_.jobs().SetRound(round.job, {.seconds = round.seconds,
                                       .learning_rate = round.learning_rate,
                                       .gain_ratio = round.gain,
                                       .orthogonality_ratio = round.orthogonality,
                                       .noise_scale = found->second.noise.Samples()});
}

// A decision is written when it is made and again when its gain is measured; made but once.
void JobTelemetry::On(const job::PersistDecision& action) {
  const policies::Decision& decision = action.decision;
  const std::string_view kind = policies::FieldOf(decision.axis);
  metrics::DecisionFigures figures = {.kind = kind, .measured_gain_ratio = decision.measured_gain};
  if (!decision.metric.empty()) figures.predicted_gain_ratio = decision.predicted_gain;
  metrics_.jobs().SetDecision(action.job, figures);
  if (decision.measured_gain) return;
  metrics_.CountDecision(std::string(kind), "decided");
  const auto found = jobs_.find(action.job);
  if (found != jobs_.end()) found->second.decided.emplace(decision.plan_version, decision.axis);
}

void JobTelemetry::On(const job::PublishJob& action) {
  const job::JobRecord& record = action.record;
  Job& job = Enter(record);
  if (record.state == job::JobState::kQueued) {
    const bool never_ran = record.generation == 0 && record.create_time > 0;
    queue_.Enter(record.id, never_ran ? record.create_time : wall_());
  } else {
    queue_.Leave(record.id);
    if (!job::IsFinal(record.state)) metrics_.jobs().Add(record.id, record.name);
  }
  metrics_.SetQueueOldest(queue_.Oldest());
  SetMembers(job, record);
  const std::string checkpoint = record.checkpoint ? record.checkpoint->sha256 : "";
  if (checkpoint != std::exchange(job.checkpoint, checkpoint)) {
    metrics_.jobs().SetCheckpoint(record.id);
  }
  SetProgress(record.id, job, record.progress);
  if (job::IsFinal(record.state)) Leave(record.id);
}

// The job's entry, with its state as it is now.
JobTelemetry::Job& JobTelemetry::Enter(const job::JobRecord& record) {
  const auto [entry, fresh] = jobs_.try_emplace(record.id);
  Job& job = entry->second;
  if (!fresh) Count(job.state, -1);
  Count(record.state, 1);
  if (fresh || job.state != record.state || job.reason != record.state_reason) {
    LogChange(record, NameOf(record.state));
  }
  job.name = record.name;
  job.state = record.state;
  job.reason = record.state_reason;
  job.suspensions = record.suspensions;
  const std::uint32_t lost = job::LostAttempts(record);
  if (!fresh && lost > job.attempts_lost) LogLostAttempt(record);
  job.attempts_lost = lost;
  if (!fresh && record.regroups > job.regroups) LogRegroup(record);
  job.regroups = record.regroups;
  if (!fresh && record.differences > job.differences) LogDifference(record);
  job.differences = record.differences;
  if (!fresh && record.selections > job.selections) LogSelection(record);
  job.selections = record.selections;
  if (!fresh && record.resizes > job.resizes) LogResize(record);
  job.resizes = record.resizes;
  // What a job has from before this process is none of its news.
  if (fresh && record.checkpoint) job.checkpoint = record.checkpoint->sha256;
  return job;
}

void JobTelemetry::SetMembers(Job& job, const job::JobRecord& record) {
  for (const WorkerId worker : job.workers) members_.erase(worker.value);
  job.workers.clear();
  std::vector<metrics::WorkerPlace> places;
  const std::vector<job::MemberRecord> none;
  for (const job::MemberRecord& member : HoldsDevices(record.state) ? record.members : none) {
    members_[member.worker.value] = {.job = record.id,
                                     .rank = static_cast<std::uint32_t>(job.workers.size())};
    job.workers.push_back(member.worker);
    places.push_back({.node = member.node, .device = member.device});
  }
  metrics_.jobs().SetPlaces(record.id, std::move(places));
}

void JobTelemetry::Leave(JobId id) {
  metrics_.jobs().End(id);
  jobs_.erase(id);
}

void JobTelemetry::On(const job::PublishProgress& action) {
  const auto found = jobs_.find(action.job);
  if (found != jobs_.end()) SetProgress(action.job, found->second, action.progress);
}

void JobTelemetry::SetProgress(JobId id, Job& job, const job::Progress& progress) {
  while (!job.decided.empty() && job.decided.begin()->first <= progress.plan.version) {
    const auto [version, axis] = *job.decided.begin();
    metrics_.CountDecision(std::string(policies::FieldOf(axis)),
                           version == progress.plan.version ? "adopted" : "superseded");
    job.decided.erase(job.decided.begin());
  }
  if (progress.repeated_passes > 0 && !std::exchange(job.repeated, true)) {
    LogRepeated(job.name, progress.repeated_passes);
  }
  if (progress.unrecorded_rounds > 0 && !std::exchange(job.unrecorded, true)) {
    LogUnrecorded(job.name, progress.unrecorded_rounds);
  }
  job.plan = progress.plan;
  const policies::Plan& plan = progress.plan;
  metrics::JobFigures figures = {
      .state = NameOf(job.state),
      .loss = progress.loss,
      .samples = progress.samples,
      .rounds = progress.rounds,
      .suspensions = job.suspensions,
      .attempts_lost = job.attempts_lost,
      .regroups = job.regroups,
      .differences = job.differences,
      .resizes = job.resizes,
      .members = job.workers.size(),
      .epoch = progress.epoch,
      .elapsed_seconds = progress.elapsed_seconds,
      .eta_seconds = progress.eta_seconds,
      .plan_version = plan.version,
      .global_batch =
          std::accumulate(plan.batch_sizes.begin(), plan.batch_sizes.end(), std::uint64_t{0}),
      .communication_period = plan.period};
  if (progress.epoch_samples > 0) {
    figures.epoch_progress_ratio =
        static_cast<double>(progress.epoch_consumed) / static_cast<double>(progress.epoch_samples);
  }
  if (plan.version > 0) {
    figures.synchronization = NameOf(plan.synchronization);
    figures.aggregation = NameOf(plan.aggregation);
    figures.learning_rate_rule = NameOf(plan.learning_rate_rule);
    figures.encoding = NameOf(plan.encoding);
  }
  SetValidation(progress.validation, figures);
  if (Trains(job.state)) SetSpeeds(progress, figures);
  metrics_.jobs().Set(id, std::move(figures));
}

void JobTelemetry::Count(job::JobState state, int change) {
  std::uint64_t& count = counts_[state];
  count += static_cast<std::uint64_t>(change);
  metrics_.SetJobs(NameOf(state), count);
}

}  // namespace tactus::telemetry
