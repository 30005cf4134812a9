#include "runtime/metrics.h"
#include "runtime/metrics_registry.h"

namespace tactus::runtime {

struct AgentMetrics::Families {
  explicit Families(MetricsRegistry& r)
      : workers(r.GaugeFamily("tactus_agent_workers", "Worker processes running.").Add({})),
        connected(r.GaugeFamily("tactus_agent_connected", "1 while the coordinator's stream is up.")
                      .Add({})),
        relayed(r.CounterFamily("tactus_agent_reports_relayed_total",
                                "Workers' reports handed to the coordinator.")
                    .Add({})),
        dropped(r.CounterFamily("tactus_agent_reports_dropped_total",
                                "Workers' reports lost because the buffer was full.")
                    .Add({})) {}

  prometheus::Gauge& workers;
  prometheus::Gauge& connected;
  prometheus::Counter& relayed;
  prometheus::Counter& dropped;
};

AgentMetrics::AgentMetrics(const std::string& version)
    : registry_(std::make_shared<MetricsRegistry>(version)),
      families_(std::make_unique<Families>(*registry_)) {}

AgentMetrics::~AgentMetrics() = default;

void AgentMetrics::SetWorkers(std::uint64_t count) {
  families_->workers.Set(static_cast<double>(count));
}

void AgentMetrics::CountReportsRelayed(std::uint64_t count) {
  families_->relayed.Increment(static_cast<double>(count));
}

void AgentMetrics::CountReportsDropped(std::uint64_t count) {
  families_->dropped.Increment(static_cast<double>(count));
}

void AgentMetrics::SetConnected(bool connected) { families_->connected.Set(connected ? 1 : 0); }

}  // namespace tactus::runtime
