// How an agent sets its metrics. What each is called and says stands in metrics/catalogue.cc. All
// methods may be called from any thread.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics/exposition.h"

namespace tactus::metrics {

class MetricsRegistry;

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

}  // namespace tactus::metrics
