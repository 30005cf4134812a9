// How the coordinator sets its metrics. What each is called and says stands in
// metrics/catalogue.cc.
//
// Setting is cheap, as a hundred workers report every second: families are looked up once, and
// labels of jobs are written down only for a scrape. All methods may be called from any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "metrics/exposition.h"
#include "metrics/job_series.h"
#include "metrics/node_series.h"

namespace tactus::metrics {

class MetricsRegistry;

// The metrics of tactus-coordinator. Words are of the closed sets of the catalogue.
class CoordinatorMetrics {
 public:
  // Series of what is over go by `clock`, another one in tests.
  explicit CoordinatorMetrics(const std::string& version, const MetricClock& clock = {});
  ~CoordinatorMetrics();

  // Jobs and nodes: gauges that are set. Their headers say how.
  JobSeries& jobs() { return *jobs_; }
  NodeSeries& nodes() { return *nodes_; }

  // tactus_jobs{state}
  void SetJobs(const std::string& state, std::uint64_t count);
  // tactus_queue_oldest_timestamp_seconds; nothing while nobody waits.
  void SetQueueOldest(std::optional<double> wall_seconds);

  // One worker's round, as it reported it. Times that are not finite or below 0 are left out.
  struct Round {
    double compute_seconds = 0;
    double blocked_seconds = 0;
    double transfer_seconds = 0;  // 0: there was no collective
    double total_seconds = 0;
    std::uint32_t steps = 0;
  };
  // tactus_round_seconds, tactus_worker_step_seconds, tactus_collective_seconds
  void ObserveRound(const Round& round);

  // tactus_checkpoint_seconds{phase}
  void ObserveCheckpoint(Duration write, Duration upload);
  // The same, of one that was taken while a job trained. Times that are not finite or below 0 are
  // left out.
  void ObserveCheckpointTaken(double still_seconds, double write_seconds);

  // tactus_decisions_total{kind,outcome}
  void CountDecision(const std::string& kind, const std::string& outcome);
  // tactus_membership_changes_total{reason}
  void CountMembershipChange(const std::string& reason);
  // tactus_events_total, tactus_controller_overhead_seconds_total: an event was `spent` inside the
  // core.
  void CountEvent(Duration spent);
  // tactus_event_backlog_events
  void SetBacklog(std::size_t events);
  // tactus_wal_fsync_seconds, tactus_store_failing, tactus_store_write_failures_total: one durable
  // write of the store.
  void ObserveWrite(Duration spent, bool succeeded);
  // tactus_store_jobs_set_aside_total
  void CountSetAside();
  // tactus_backup_interval_seconds, tactus_backup_last_success_timestamp_seconds: 0, no complete
  // backup is there. Without a call neither has a series.
  void SetBackups(Duration every, double newest_wall_seconds);
  // tactus_backup_failures_total
  void CountBackupFailure();
  // tactus_bucket_requests_total{method,outcome}, tactus_bucket_request_seconds{method}
  void CountBucketRequest(const std::string& method, const std::string& outcome, Duration took);
  // tactus_bucket_waiting_files
  void SetBucketWaiting(std::size_t files);
  // tactus_transfers{direction}
  void SetTransfers(const std::string& direction, std::size_t calls);
  // tactus_refused_total{bound}
  void CountRefusal(const std::string& bound);
  // tactus_rpc_server_handled_total{method,code}: method as "Jobs/GetJob", code as "OK".
  void CountCall(const std::string& method, const std::string& code);
  // tactus_state_free_bytes, tactus_state_size_bytes: of the folder's file system. Once, before the
  // first scrape.
  void WatchFolder(const std::string& folder);
  // tactus_state_floor_bytes
  void SetDiskFloor(std::uint64_t bytes);

  const std::shared_ptr<MetricsRegistry>& registry() const { return registry_; }

 private:
  struct Families;
  const std::shared_ptr<MetricsRegistry> registry_;  // shared with the route that serves it
  const std::shared_ptr<JobSeries> jobs_;            // these two with the registry
  const std::shared_ptr<NodeSeries> nodes_;
  const std::unique_ptr<Families> families_;
};

}  // namespace tactus::metrics
