#include "metrics/catalogue.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "base/check.h"
#include "metrics/closed_set.h"
#include "policies/axes.h"
#include "policies/plan_names.h"

namespace tactus::metrics {
namespace {

using enum MetricOf;
using enum MetricLife;

constexpr MetricLabel kJobLabel = {"job_id", " the 1,000 jobs at most that have series"};
constexpr MetricLabel kNodeLabel = {"node", " nodes connected in the last hour"};
constexpr MetricLabel kRankLabel = {"rank", " the first 256 of a job, of 16,384 workers in all"};
constexpr MetricLabel kKindLabel = {"kind", ClosedSet<policies::kAxisFields>()};
constexpr MetricLabel kBucketMethod = {"method", "GET|HEAD|PUT|POST|DELETE"};
constexpr MetricLabel kGpuLabel = {"gpu", " NVML's number"};
constexpr std::string_view kStates =
    "queued|starting|running|stopping|succeeded|failed|cancelled|suspending|paused";

// Who has a metric, when its series go, and what tells them apart.
struct Scope {
  MetricOf of;
  MetricLife life;
  std::array<MetricLabel, 4> labels{};
};

// Rows of the catalogue, by their kind.
constexpr MetricSpec GaugeRow(std::string_view name, const Scope& scope, std::string_view unit,
                              std::string_view help) {
  return {name, MetricKind::kGauge, scope.of, scope.life, scope.labels, unit, help};
}
constexpr MetricSpec CounterRow(std::string_view name, const Scope& scope, std::string_view unit,
                                std::string_view help) {
  return {name, MetricKind::kCounter, scope.of, scope.life, scope.labels, unit, help};
}
constexpr MetricSpec HistogramRow(std::string_view name, const Scope& scope, std::string_view unit,
                                  std::string_view help) {
  return {name, MetricKind::kHistogram, scope.of, scope.life, scope.labels, unit, help};
}

constexpr MetricSpec kMetrics[] = {
    GaugeRow("tactus_build_info", {kBoth, kProcess, {{{"version", " one"}}}}, "1",
             "The running version; always 1."),
    CounterRow("process_cpu_seconds_total", {kBoth, kProcess}, "seconds",
               "Processor time of this process, user and system."),
    GaugeRow("process_resident_memory_bytes", {kBoth, kProcess}, "bytes",
             "Memory of this process that is resident."),
    GaugeRow("process_open_fds", {kBoth, kProcess}, "descriptors",
             "File descriptors that are open."),
    GaugeRow("process_start_time_seconds", {kBoth, kProcess}, "seconds since 1970",
             "When this process started."),
    CounterRow(
        "tactus_metrics_series_dropped_total", {kCoordinator, kProcess}, "series",
        "Series that were not made because a job, or the coordinator, had as many as it may."),
    GaugeRow("tactus_jobs", {kCoordinator, kProcess, {{{"state", kStates}}}}, "jobs",
             "Jobs by state; of those that are over, the ones that ended since the coordinator "
             "started."),
    GaugeRow("tactus_queue_oldest_timestamp_seconds", {kCoordinator, kWhile}, "seconds since 1970",
             "Since when the job waits that waits longest; none while the queue is empty."),
    GaugeRow("tactus_node_connected", {kCoordinator, kNode, {{kNodeLabel}}}, "1",
             "1 while the node's agent is heard, 0 once it was not for 10 s."),
    GaugeRow("tactus_node_cordoned", {kCoordinator, kWhile, {{kNodeLabel}}}, "1",
             "1 while the connected node gets no new workers because users said so."),
    GaugeRow("tactus_node_devices",
             {kCoordinator, kWhile, {{kNodeLabel, {"state", "free|busy|cordoned|fault"}}}},
             "devices",
             "Devices of a connected node by what they do: free ones of a cordoned node are "
             "cordoned, and one at fault counts as that alone."),
    GaugeRow("tactus_agent_heartbeat_age_seconds", {kCoordinator, kNode, {{kNodeLabel}}}, "seconds",
             "Time since the agent was last heard."),
    CounterRow(
        "tactus_membership_changes_total",
        {kCoordinator, kProcess, {{{"reason", "joined|leaving|lost|unreachable|worker_exited"}}}},
        "changes", "Agents that came anew, ended or are not heard, and workers that exited."),
    CounterRow("tactus_events_total", {kCoordinator, kProcess}, "events",
               "Events handed to the coordinator's core."),
    CounterRow("tactus_controller_overhead_seconds_total", {kCoordinator, kProcess}, "seconds",
               "Time spent inside the coordinator's core."),
    GaugeRow("tactus_event_backlog_events", {kCoordinator, kProcess}, "events",
             "Events whose actions wait, for the disk or for others before them."),
    HistogramRow("tactus_wal_fsync_seconds", {kCoordinator, kProcess}, "seconds",
                 "Duration of one durable write of the store."),
    CounterRow("tactus_store_write_failures_total", {kCoordinator, kProcess}, "writes",
               "Writes of the store that failed and are tried again."),
    CounterRow("tactus_store_jobs_set_aside_total", {kCoordinator, kProcess}, "jobs",
               "Jobs whose records could not be read and were set aside."),
    GaugeRow("tactus_store_failing", {kCoordinator, kProcess}, "1",
             "1 while the last write of the store failed: changes are refused."),
    GaugeRow("tactus_backup_interval_seconds", {kCoordinator, kWhile}, "seconds",
             "What --backup-every says; none while it is off."),
    GaugeRow(
        "tactus_backup_last_success_timestamp_seconds", {kCoordinator, kWhile},
        "seconds since 1970",
        "When the newest backup that lacks nothing was made, 0 without one; none while backups "
        "are off."),
    CounterRow("tactus_backup_failures_total", {kCoordinator, kProcess}, "backups",
               "Scheduled backups that failed, or lack files that could not be read."),
    CounterRow(
        "tactus_bucket_requests_total",
        {kCoordinator, kProcess, {{kBucketMethod, {"outcome", "ok|absent|refused|busy|broken"}}}},
        "requests",
        "Requests to the bucket of --blobs, each attempt: absent, there was no such object; "
        "refused, it would be again; busy, it is tried again; broken, no whole answer came."),
    HistogramRow("tactus_bucket_request_seconds", {kCoordinator, kProcess, {{kBucketMethod}}},
                 "seconds", "Duration of one such attempt."),
    GaugeRow("tactus_bucket_waiting_files", {kCoordinator, kProcess}, "files",
             "Files that are on their way to the bucket, or being looked for there."),
    GaugeRow("tactus_state_free_bytes", {kCoordinator, kProcess}, "bytes",
             "Room left on the file system of the state folder."),
    GaugeRow("tactus_state_size_bytes", {kCoordinator, kProcess}, "bytes",
             "Size of the file system of the state folder."),
    GaugeRow("tactus_state_floor_bytes", {kCoordinator, kProcess}, "bytes",
             "Room on that file system that only checkpoints and results may use: below it uploads "
             "and jobs are refused."),
    CounterRow(
        "tactus_refused_total",
        {kCoordinator,
         kProcess,
         {{{"bound", "connections|calls|first_message|nodes|upload_bytes|disk"}}}},
        "refusals",
        "Connections and calls that were refused, as somebody had too much or the disk too little, "
        "by the bound."),
    GaugeRow("tactus_transfers",
             {kCoordinator, kProcess, {{{"direction", "client_upload|agent_upload|download"}}}},
             "calls", "Uploads and downloads under way."),
    CounterRow(
        "tactus_rpc_server_handled_total",
        {kCoordinator, kProcess, {{{"method", " the methods of the API"}, {"code", " gRPC's 17"}}}},
        "calls", "Calls answered; streams when they end."),
    HistogramRow("tactus_round_seconds",
                 {kCoordinator, kProcess, {{{"phase", "compute|blocked|total"}}}}, "seconds",
                 "Duration of one worker's round: computing, blocked (waiting for others and "
                 "transferring), and from one round's end to the next."),
    HistogramRow(
        "tactus_worker_step_seconds", {kCoordinator, kProcess}, "seconds",
        "Computing of one optimizer step of a worker; of rounds with several, their mean."),
    HistogramRow(
        "tactus_collective_seconds", {kCoordinator, kProcess}, "seconds",
        "Duration of a round's collective at one worker, whether it computed meanwhile or not."),
    CounterRow(
        "tactus_decisions_total",
        {kCoordinator, kProcess, {{kKindLabel, {"outcome", "decided|adopted|superseded"}}}},
        "decisions",
        "Decisions made; of them, those under which a round ran, and those that gave way before."),
    GaugeRow("tactus_job_state", {kCoordinator, kJob, {{kJobLabel, {"state", kStates}}}}, "1",
             "The state of a job that has started; 1 for the state it is in."),
    GaugeRow("tactus_job_workers", {kCoordinator, kJob, {{kJobLabel}}}, "workers",
             "Workers of the job that sit on devices, from their start to their end."),
    GaugeRow("tactus_job_loss", {kCoordinator, kJob, {{kJobLabel}}}, "loss",
             "Training loss of the last 20 steps, at parameters that all workers had."),
    GaugeRow("tactus_job_validation_loss", {kCoordinator, kJob, {{kJobLabel}}}, "loss",
             "Loss of the newest validation; none before the first."),
    GaugeRow("tactus_job_best_validation_loss", {kCoordinator, kJob, {{kJobLabel}}}, "loss",
             "Least loss of a validation so far; none before the first."),
    GaugeRow(
        "tactus_job_validation_accuracy_ratio", {kCoordinator, kJob, {{kJobLabel}}}, "ratio",
        "Share of right answers in the newest validation; none where the loss has no notion of "
        "it."),
    CounterRow("tactus_job_validations_total", {kCoordinator, kJob, {{kJobLabel}}}, "validations",
               "Validations made, counted since this coordinator first saw the job."),
    GaugeRow("tactus_job_validation_seconds", {kCoordinator, kJob, {{kJobLabel}}}, "seconds",
             "That training stood still for the newest validation; none before the first."),
    CounterRow("tactus_job_samples_total", {kCoordinator, kJob, {{kJobLabel}}}, "samples",
               "Samples trained on, counted since this coordinator first saw the job."),
    CounterRow("tactus_job_rounds_total", {kCoordinator, kJob, {{kJobLabel}}}, "rounds",
               "Rounds that all workers reported, since this coordinator first saw the job."),
    CounterRow("tactus_job_skipped_rounds_total", {kCoordinator, kJob, {{kJobLabel}}}, "rounds",
               "Rounds that taught nothing because a gradient was not finite."),
    CounterRow("tactus_job_collective_bytes_total", {kCoordinator, kJob, {{kJobLabel}}}, "bytes",
               "Payload of the collectives that the workers reported, all together."),
    CounterRow("tactus_job_suspensions_total", {kCoordinator, kJob, {{kJobLabel}}}, "suspensions",
               "How often the job was taken off its devices, to go on from a checkpoint."),
    CounterRow("tactus_job_attempts_lost_total", {kCoordinator, kJob, {{kJobLabel}}}, "attempts",
               "How often the job lost a worker or a file, to be tried again from its last "
               "checkpoint."),
    CounterRow("tactus_job_regroups_total", {kCoordinator, kJob, {{kJobLabel}}}, "regroups",
               "How often the job lost workers, or a connection between them, and the others went "
               "on from the round that they were in."),
    CounterRow("tactus_job_differences_total", {kCoordinator, kJob, {{kJobLabel}}}, "comparisons",
               "Comparisons that found a worker's parameters wrong; it took over the others'."),
    CounterRow("tactus_job_resizes_total", {kCoordinator, kJob, {{kJobLabel}}}, "resizes",
               "How often workers joined the job's group, or left it, while the others trained "
               "on."),
    GaugeRow("tactus_job_goodput_samples_per_second", {kCoordinator, kWhile, {{kJobLabel}}},
             "samples/s",
             "Samples of applied rounds a second, over the last seconds; none while the job does "
             "not train."),
    GaugeRow("tactus_job_epoch", {kCoordinator, kJob, {{kJobLabel}}}, "epochs",
             "Epochs completed."),
    GaugeRow("tactus_job_epoch_progress_ratio", {kCoordinator, kJob, {{kJobLabel}}}, "ratio",
             "Share of the running epoch that is done."),
    GaugeRow("tactus_job_elapsed_seconds", {kCoordinator, kJob, {{kJobLabel}}}, "seconds",
             "Time since the first round, without suspensions."),
    GaugeRow("tactus_job_eta_seconds", {kCoordinator, kJob, {{kJobLabel}}}, "seconds",
             "Estimated time to the end; none while there is no estimate."),
    GaugeRow("tactus_job_last_round_seconds", {kCoordinator, kJob, {{kJobLabel}}}, "seconds",
             "Duration of the newest round."),
    GaugeRow("tactus_job_last_round_timestamp_seconds", {kCoordinator, kJob, {{kJobLabel}}},
             "seconds since 1970",
             "When the newest round was complete at the coordinator, or the job began to run, "
             "whichever was later."),
    GaugeRow("tactus_checkpoint_last_success_timestamp_seconds",
             {kCoordinator, kJob, {{kJobLabel}}}, "seconds since 1970",
             "When the newest checkpoint became known to this coordinator process; none before."),
    HistogramRow(
        "tactus_checkpoint_seconds", {kCoordinator, kProcess, {{{"phase", "still|write|upload"}}}},
        "seconds",
        "Duration of a checkpoint. Of one taken while a job trains: still, that training stood "
        "still for it, and write, beside training until it was read back. Of a suspension's: "
        "write, from its beginning to the last worker's word that it is written, and upload, from "
        "there until it is at the coordinator."),
    GaugeRow("tactus_job_plan_version", {kCoordinator, kJob, {{kJobLabel}}}, "1",
             "Version of the plan in force."),
    GaugeRow("tactus_job_global_batch_samples", {kCoordinator, kJob, {{kJobLabel}}}, "samples",
             "Samples of a step, all workers."),
    GaugeRow("tactus_job_communication_period_steps", {kCoordinator, kJob, {{kJobLabel}}}, "steps",
             "Optimizer steps between synchronizations."),
    GaugeRow(
        "tactus_job_synchronization_mode",
        {kCoordinator, kJob, {{kJobLabel, {"mode", ClosedSet<policies::kSynchronizationNames>()}}}},
        "1", "When workers' results are combined; 1 for the mode in force."),
    GaugeRow(
        "tactus_job_aggregation_mode",
        {kCoordinator, kJob, {{kJobLabel, {"mode", ClosedSet<policies::kAggregationNames>()}}}},
        "1", "How workers' results are combined; 1 for the mode in force."),
    GaugeRow("tactus_job_learning_rate_rule",
             {kCoordinator,
              kJob,
              {{kJobLabel, {"rule", ClosedSet<policies::kLearningRateRuleNames>()}}}},
             "1", "How the learning rate follows the batch; 1 for the rule in force."),
    GaugeRow("tactus_job_encoding_mode",
             {kCoordinator, kJob, {{kJobLabel, {"mode", ClosedSet<policies::kEncodingNames>()}}}},
             "1", "In which form workers' results travel; 1 for the mode in force."),
    GaugeRow("tactus_job_learning_rate", {kCoordinator, kJob, {{kJobLabel}}}, "1",
             "Learning rate of the newest round."),
    GaugeRow("tactus_job_learning_rate_gain_ratio", {kCoordinator, kJob, {{kJobLabel}}}, "ratio",
             "That learning rate over the one of the schedule."),
    GaugeRow("tactus_job_gradient_noise_scale", {kCoordinator, kJob, {{kJobLabel}}}, "samples",
             "Gradient noise scale: the batch beyond which more samples say little new; none while "
             "rounds do not measure it."),
    GaugeRow("tactus_job_orthogonality_ratio", {kCoordinator, kJob, {{kJobLabel}}}, "ratio",
             "How far the workers' gradients differ, of the newest round; 1: they are orthogonal, "
             "1 over the number of workers: they are the same."),
    GaugeRow("tactus_job_decision_timestamp_seconds",
             {kCoordinator, kJob, {{kJobLabel, kKindLabel}}}, "seconds since 1970",
             "When the newest decision of this kind was made."),
    GaugeRow("tactus_job_decision_predicted_gain_ratio",
             {kCoordinator, kWhile, {{kJobLabel, kKindLabel}}}, "ratio",
             "Gain that the newest decision of this kind promised; 0.25: a quarter more; none "
             "where it promised nothing."),
    GaugeRow("tactus_job_decision_measured_gain_ratio",
             {kCoordinator, kJob, {{kJobLabel, kKindLabel}}}, "ratio",
             "Gain that was measured of the newest decision of this kind that could be measured."),
    GaugeRow("tactus_decision_predicted_error_ratio",
             {kCoordinator, kJob, {{kJobLabel, kKindLabel}}}, "ratio",
             "Promised less measured gain of the newest decision that could be measured; above 0: "
             "too much was promised."),
    GaugeRow("tactus_worker_info",
             {kCoordinator,
              kWorker,
              {{kJobLabel, kRankLabel, {"node", " of the worker"}, {"device", " of the node"}}}},
             "1", "Where a worker runs."),
    GaugeRow("tactus_worker_batch_samples", {kCoordinator, kWorker, {{kJobLabel, kRankLabel}}},
             "samples", "Samples of a step, this worker."),
    GaugeRow("tactus_worker_samples_per_second", {kCoordinator, kWorker, {{kJobLabel, kRankLabel}}},
             "samples/s", "Samples a second while computing, over the last 20 rounds."),
    GaugeRow("tactus_worker_idle_ratio", {kCoordinator, kWorker, {{kJobLabel, kRankLabel}}},
             "ratio", "Share of time neither computing nor transferring, over the last 20 rounds."),
    GaugeRow("tactus_worker_link_bytes_per_second",
             {kCoordinator, kWorker, {{kJobLabel, kRankLabel}}}, "bytes/s",
             "What the other workers together can bring this one at once, over the last 20 rounds; "
             "none while messages are too short to tell."),
    GaugeRow("tactus_agent_workers", {kAgent, kProcess}, "workers", "Worker processes running."),
    GaugeRow("tactus_agent_connected", {kAgent, kProcess}, "1",
             "1 while the coordinator's stream is up."),
    CounterRow("tactus_agent_reports_relayed_total", {kAgent, kProcess}, "reports",
               "Workers' reports handed to the coordinator."),
    CounterRow("tactus_agent_reports_dropped_total", {kAgent, kProcess}, "reports",
               "Workers' reports, of rounds and of validations, lost because the buffer was full."),
    CounterRow("tactus_agent_out_of_memory_total", {kAgent, kProcess}, "passes",
               "Workers' passes that ran out of memory and were made smaller."),
    GaugeRow("tactus_gpu_info",
             {kAgent, kProcess, {{kGpuLabel, {"uuid", " of the GPU"}, {"model", " of the GPU"}}}},
             "1", "Always 1."),
    GaugeRow("tactus_gpu_utilization_ratio", {kAgent, kWhile, {{kGpuLabel}}}, "ratio",
             "Share of the last sampling period in which a kernel ran."),
    GaugeRow("tactus_gpu_memory_used_bytes", {kAgent, kWhile, {{kGpuLabel}}}, "bytes",
             "Memory of the GPU that is used, by any process."),
    GaugeRow("tactus_gpu_temperature_celsius", {kAgent, kWhile, {{kGpuLabel}}}, "degrees Celsius",
             "Temperature of the chip."),
    GaugeRow("tactus_gpu_power_watts", {kAgent, kWhile, {{kGpuLabel}}}, "watts",
             "Power that the board draws."),
    GaugeRow("tactus_gpu_sm_clock_hertz", {kAgent, kWhile, {{kGpuLabel}}}, "hertz",
             "Clock of the multiprocessors."),
    GaugeRow("tactus_gpu_uncorrected_ecc_errors", {kAgent, kWhile, {{kGpuLabel}}}, "errors",
             "Uncorrected memory errors since the driver was loaded."),
    GaugeRow("tactus_gpu_throttled",
             {kAgent, kProcess, {{kGpuLabel, {"reason", " NVML's reasons"}}}}, "1",
             "1 while the GPU is slowed down for this reason, 0 when it was and is no more."),
    GaugeRow("tactus_gpu_fault", {kAgent, kProcess, {{kGpuLabel}}}, "1",
             "1 while the GPU gets no work, as it is broken."),
};

}  // namespace

std::vector<std::string> ClosedSet(const MetricLabel& label) {
  if (label.values.empty() || label.values.starts_with(' ')) return {};
  return absl::StrSplit(std::string(label.values), '|');
}

std::span<const MetricSpec> MetricCatalogue() { return kMetrics; }

const MetricSpec& Spec(std::string_view name) {
  const auto* const found = std::ranges::find(kMetrics, name, &MetricSpec::name);
  TACTUS_CHECK(found != std::end(kMetrics));
  return *found;
}

}  // namespace tactus::metrics
