// Every metric of the daemons, declared in this one place, and the endpoint that serves them.
//
// Names follow Prometheus: base units, `_total` for counters, labels from closed sets; series of a
// job go when the job does. All methods may be called from any thread.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/time.h"

namespace tactus::runtime {

// The series of a process and the means to write them down; made by CoordinatorMetrics and
// AgentMetrics.
class MetricsRegistry;

// Serves /metrics over HTTP until destruction.
class MetricsEndpoint {
 public:
  // `address` is host:port; port 0 takes a free one.
  // Errors: InvalidArgument, not host:port; Unavailable, the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<MetricsEndpoint>> Open(
      const std::string& address, const std::shared_ptr<MetricsRegistry>& registry);

  virtual ~MetricsEndpoint() = default;

  // host:port with the port in use.
  virtual const std::string& address() const = 0;
};

// The metrics of tactus-coordinator.
class CoordinatorMetrics {
 public:
  explicit CoordinatorMetrics(const std::string& version);
  ~CoordinatorMetrics();

  // tactus_jobs{state}: state is one of queued, starting, running, stopping, succeeded, failed,
  // cancelled.
  void SetJobs(const std::string& state, std::uint64_t count);

  // What the newest progress of a job says.
  struct Job {
    double loss = 0;                           // tactus_job_loss
    std::uint64_t samples = 0;                 // tactus_job_samples_total
    double samples_per_second = 0;             // tactus_job_goodput_samples_per_second
    std::uint64_t global_batch = 0;            // tactus_job_global_batch_samples
    std::uint64_t communication_period = 1;    // tactus_job_communication_period_steps
    std::string aggregation_mode = "average";  // tactus_job_aggregation_mode{mode}: 1
    struct Worker {
      std::uint32_t batch = 0;  // tactus_worker_batch_samples{rank}
      double idle_ratio = 0;    // tactus_worker_idle_ratio{rank}
    };
    std::vector<Worker> workers = {};  // by rank; series of ranks that are no more go
  };
  void SetJob(const std::string& job_id, const Job& job);
  void RemoveJob(const std::string& job_id);

  // tactus_round_seconds{phase}: compute, blocked or total, of one worker's round.
  void ObserveRound(const std::string& phase, double seconds);
  // tactus_decisions_total{kind,outcome}: kind batch, synchronization, aggregation or
  // learning_rate; outcome adopted, superseded or decided.
  void CountDecision(const std::string& kind, const std::string& outcome);
  // tactus_membership_changes_total{reason}: joined, lost or worker_exited.
  void CountMembershipChange(const std::string& reason);
  // tactus_controller_overhead_seconds_total: time inside the core.
  void AddControllerOverhead(Duration spent);
  // tactus_wal_fsync_seconds: one durable write of the store.
  void ObserveWrite(Duration spent);
  // tactus_agent_heartbeat_age_seconds{node}
  void SetHeartbeatAge(const std::string& node, double seconds);
  void RemoveNode(const std::string& node);
  // tactus_rpc_server_handled_total{method,code}: method as "Jobs/GetJob", code as "OK".
  void CountCall(const std::string& method, const std::string& code);

  const std::shared_ptr<MetricsRegistry>& registry() const { return registry_; }

 private:
  struct Families;
  const std::shared_ptr<MetricsRegistry> registry_;  // shared with the endpoint that serves it
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
  const std::shared_ptr<MetricsRegistry> registry_;  // shared with the endpoint that serves it
  const std::unique_ptr<Families> families_;
};

// What a scrape would return now, in the text format 0.0.4.
std::string WriteText(const MetricsRegistry& registry);

}  // namespace tactus::runtime
