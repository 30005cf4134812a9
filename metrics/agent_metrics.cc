#include "metrics/agent_metrics.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "metrics/registry.h"
#include "threads/mutex.h"

namespace tactus::metrics {
namespace {

using Gauge = prometheus::Gauge;
using Labels = std::map<std::string, std::string>;

// Gauges by their labels.
class GpuSeries {
 public:
  explicit GpuSeries(prometheus::Family<Gauge>& family) : family_(family) {}

  // Nothing: the series goes.
  void Set(const Labels& labels, std::optional<double> value) {
    Gauge*& gauge = gauges_[labels];
    if (gauge == nullptr && value) gauge = &family_.Add(labels);
    if (value) return gauge->Set(*value);
    if (gauge != nullptr) family_.Remove(gauge);
    gauges_.erase(labels);
  }

  // Of those of the GPU, 1 for these reasons and 0 for the others.
  void SetReasons(const std::string& gpu, const std::vector<std::string>& reasons) {
    for (const auto& [labels, gauge] : gauges_) {
      if (labels.at("gpu") == gpu) gauge->Set(0);
    }
    for (const std::string& reason : reasons) Set({{"gpu", gpu}, {"reason", reason}}, 1);
  }

 private:
  prometheus::Family<Gauge>& family_;
  std::map<Labels, Gauge*> gauges_;
};

struct Gpus {
  MetricsRegistry& r;  // first: the families below register with it
  GpuSeries info{r.GaugeFamily("tactus_gpu_info")};
  GpuSeries utilization{r.GaugeFamily("tactus_gpu_utilization_ratio")};
  GpuSeries memory_used{r.GaugeFamily("tactus_gpu_memory_used_bytes")};
  GpuSeries temperature{r.GaugeFamily("tactus_gpu_temperature_celsius")};
  GpuSeries power{r.GaugeFamily("tactus_gpu_power_watts")};
  GpuSeries clock{r.GaugeFamily("tactus_gpu_sm_clock_hertz")};
  GpuSeries ecc_errors{r.GaugeFamily("tactus_gpu_uncorrected_ecc_errors")};
  GpuSeries throttled{r.GaugeFamily("tactus_gpu_throttled")};
  GpuSeries fault{r.GaugeFamily("tactus_gpu_fault")};
};

}  // namespace

struct AgentMetrics::Families {
  explicit Families(MetricsRegistry& r)
      : workers(r.GaugeFamily("tactus_agent_workers").Add({})),
        connected(r.GaugeFamily("tactus_agent_connected").Add({})),
        relayed(r.CounterFamily("tactus_agent_reports_relayed_total").Add({})),
        dropped(r.CounterFamily("tactus_agent_reports_dropped_total").Add({})),
        out_of_memory(r.CounterFamily("tactus_agent_out_of_memory_total").Add({})),
        gpus{.r = r} {}

  prometheus::Gauge& workers;
  prometheus::Gauge& connected;
  prometheus::Counter& relayed;
  prometheus::Counter& dropped;
  prometheus::Counter& out_of_memory;

  threads::Mutex mutex;  // the families lock for themselves against a scrape
  Gpus gpus ABSL_GUARDED_BY(mutex);
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

void AgentMetrics::CountOutOfMemory(std::uint64_t passes) {
  families_->out_of_memory.Increment(static_cast<double>(passes));
}

void AgentMetrics::SetConnected(bool connected) { families_->connected.Set(connected ? 1 : 0); }

void AgentMetrics::SetGpu(const Gpu& gpu) {
  const auto number = [](std::optional<std::uint64_t> value) -> std::optional<double> {
    if (!value) return std::nullopt;
    return static_cast<double>(*value);
  };
  const std::string index = std::to_string(gpu.index);
  const Labels labels = {{"gpu", index}};
  const threads::MutexLock lock(families_->mutex);
  Gpus& gpus = families_->gpus;
  gpus.info.Set({{"gpu", index}, {"uuid", gpu.uuid}, {"model", gpu.model}}, 1);
  gpus.utilization.Set(labels, gpu.utilization_ratio);
  gpus.memory_used.Set(labels, number(gpu.memory_used_bytes));
  gpus.temperature.Set(labels, gpu.temperature_celsius);
  gpus.power.Set(labels, gpu.power_watts);
  gpus.clock.Set(labels, gpu.sm_clock_hertz);
  gpus.ecc_errors.Set(labels, number(gpu.uncorrected_ecc_errors));
  gpus.throttled.SetReasons(index, gpu.throttle_reasons);
  gpus.fault.Set(labels, gpu.fault ? 1 : 0);
}

}  // namespace tactus::metrics
