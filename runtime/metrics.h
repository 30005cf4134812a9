// How the daemons set their metrics, and how they are served. What each metric is called
// and says stands in runtime/metrics_catalogue.cc.
//
// Setting is cheap, as a hundred workers report every second: families are looked up once, and
// labels of jobs are written down only for a scrape. All methods may be called from any thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "runtime/job_series.h"
#include "runtime/metric_source.h"
#include "runtime/node_series.h"

namespace tactus::runtime {

// The series of a process and the means to write them down; made by CoordinatorMetrics and
// AgentMetrics.
class MetricsRegistry;
class HttpServer;

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
  // tactus_transfers{direction}
  void SetTransfers(const std::string& direction, std::size_t calls);
  // tactus_rpc_server_handled_total{method,code}: method as "Jobs/GetJob", code as "OK".
  void CountCall(const std::string& method, const std::string& code);
  // tactus_state_free_bytes, tactus_state_size_bytes: of the folder's file system. Once, before the
  // first scrape.
  void WatchFolder(const std::string& folder);

  const std::shared_ptr<MetricsRegistry>& registry() const { return registry_; }

 private:
  struct Families;
  const std::shared_ptr<MetricsRegistry> registry_;  // shared with the route that serves it
  const std::shared_ptr<JobSeries> jobs_;            // these two with the registry
  const std::shared_ptr<NodeSeries> nodes_;
  const std::unique_ptr<Families> families_;
};

// The metrics of tactus-agent.
class AgentMetrics {
 public:
  explicit AgentMetrics(const std::string& version);
  ~AgentMetrics();

  void SetWorkers(std::uint64_t count);           // tactus_agent_workers
  void CountReportsRelayed(std::uint64_t count);  // tactus_agent_reports_relayed_total
  void CountReportsDropped(std::uint64_t count);  // tactus_agent_reports_dropped_total
  // tactus_agent_out_of_memory_total: passes of workers that were repeated in smaller pieces.
  void CountOutOfMemory(std::uint64_t passes);
  void SetConnected(bool connected);  // tactus_agent_connected

  // What a GPU of the host does; the label gpu of each is the index. What it does not say has no
  // series.
  struct Gpu {
    unsigned index = 0;                                     // NVML's
    std::string uuid = {};                                  // tactus_gpu_info{uuid,model}: 1
    std::string model = {};                                 // likewise
    std::optional<double> utilization_ratio = {};           // tactus_gpu_utilization_ratio
    std::optional<std::uint64_t> memory_used_bytes = {};    // tactus_gpu_memory_used_bytes
    std::optional<double> temperature_celsius = {};         // tactus_gpu_temperature_celsius
    std::optional<double> power_watts = {};                 // tactus_gpu_power_watts
    std::optional<double> sm_clock_hertz = {};              // tactus_gpu_sm_clock_hertz
    std::optional<std::uint64_t> uncorrected_ecc_errors{};  // tactus_gpu_uncorrected_ecc_errors
    // tactus_gpu_throttled{reason}: 1; 0 for one that was and is no more.
    std::vector<std::string> throttle_reasons = {};
    bool fault = false;  // tactus_gpu_fault: 1 while it gets no work
  };
  void SetGpu(const Gpu& gpu);

  const std::shared_ptr<MetricsRegistry>& registry() const { return registry_; }

 private:
  struct Families;
  const std::shared_ptr<MetricsRegistry> registry_;  // shared with the route that serves it
  const std::unique_ptr<Families> families_;
};

// What a scrape would return now, in the text format 0.0.4.
std::string WriteText(const MetricsRegistry& registry);

// Has `server` answer /metrics with that. Before its Start.
void RouteMetrics(HttpServer& server, const std::shared_ptr<const MetricsRegistry>& registry);

}  // namespace tactus::runtime
