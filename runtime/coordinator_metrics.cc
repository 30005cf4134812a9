#include <prometheus/histogram.h>

#include <mutex>
#include <utility>

#include "runtime/metrics.h"
#include "runtime/metrics_registry.h"

namespace tactus::runtime {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Labels = std::map<std::string, std::string>;

// From 1 ms to a minute, in steps of about 2.2.
const Histogram::BucketBoundaries kRoundSeconds = {
    0.001, 0.0022, 0.005, 0.01, 0.022, 0.05, 0.1, 0.22, 0.5, 1, 2.2, 5, 10, 22, 60};
// From 50 us, a fast flash disk, to 5 s, a disk in trouble.
const Histogram::BucketBoundaries kWriteSeconds = {
    0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5};

// Gauges by their labels that can be removed again by a prefix of interest.
class Series {
 public:
  explicit Series(Family<Gauge>& family) : family_(family) {}

  void Set(const Labels& labels, double value) {
    Gauge*& gauge = gauges_[labels];
    if (gauge == nullptr) gauge = &family_.Add(labels);
    gauge->Set(value);
  }

  // Removes the series whose label `name` is `value` and, for `from_rank` > 0, whose rank is that
  // or above.
  void Remove(const std::string& name, const std::string& value, std::size_t from_rank = 0) {
    std::erase_if(gauges_, [&](const auto& entry) {
      const auto label = entry.first.find(name);
      if (label == entry.first.end() || label->second != value) return false;
      const auto rank = entry.first.find("rank");
      if (from_rank > 0 && (rank == entry.first.end() || std::stoul(rank->second) < from_rank)) {
        return false;
      }
      family_.Remove(entry.second);
      return true;
    });
  }

 private:
  Family<Gauge>& family_;
  std::map<Labels, Gauge*> gauges_;
};

}  // namespace

// Series are added and removed under the mutex; the families lock for themselves against a scrape.
struct CoordinatorMetrics::Families {
  explicit Families(MetricsRegistry& metrics) : r(metrics) {}

  MetricsRegistry& r;  // first: the families below register with it
  std::mutex mutex;

  Series jobs{r.GaugeFamily("tactus_jobs", "Jobs by state.")};
  Series job_loss{r.GaugeFamily("tactus_job_loss", "Training loss, mean of the last 20 rounds.")};
  Series job_samples{
      r.GaugeFamily("tactus_job_samples_total", "Samples trained on since the start.")};
  Series job_goodput{r.GaugeFamily("tactus_job_goodput_samples_per_second",
                                   "Samples of applied rounds a second, over the last seconds.")};
  Series job_batch{
      r.GaugeFamily("tactus_job_global_batch_samples", "Samples of a round, all workers.")};
  Series job_period{r.GaugeFamily("tactus_job_communication_period_steps",
                                  "Optimizer steps between synchronizations.")};
  Series job_aggregation{
      r.GaugeFamily("tactus_job_aggregation_mode",
                    "How workers' results are combined; 1 for the mode in force.")};
  Series worker_batch{
      r.GaugeFamily("tactus_worker_batch_samples", "Samples of a round, this worker.")};
  Series worker_idle{r.GaugeFamily("tactus_worker_idle_ratio",
                                   "Share of time neither computing nor transferring.")};
  Series heartbeat_age{
      r.GaugeFamily("tactus_agent_heartbeat_age_seconds", "Time since the agent was last heard.")};
  Family<Histogram>& round_seconds = prometheus::BuildHistogram()
                                         .Name("tactus_round_seconds")
                                         .Help("Duration of one worker's round, by phase.")
                                         .Register(r.registry());
  Histogram& write_seconds = prometheus::BuildHistogram()
                                 .Name("tactus_wal_fsync_seconds")
                                 .Help("Duration of one durable write of the store.")
                                 .Register(r.registry())
                                 .Add({}, kWriteSeconds);
  Family<Counter>& decisions =
      r.CounterFamily("tactus_decisions_total", "Decisions by kind and outcome.");
  Family<Counter>& membership = r.CounterFamily("tactus_membership_changes_total",
                                                "Nodes and workers that came or went, by reason.");
  Family<Counter>& calls =
      r.CounterFamily("tactus_rpc_server_handled_total", "Calls answered, by method and code.");
  Counter& overhead = r.CounterFamily("tactus_controller_overhead_seconds_total",
                                      "Time spent inside the coordinator's core.")
                          .Add({});
};

CoordinatorMetrics::CoordinatorMetrics(const std::string& version)
    : registry_(std::make_shared<MetricsRegistry>(version)),
      families_(std::make_unique<Families>(*registry_)) {}

CoordinatorMetrics::~CoordinatorMetrics() = default;

void CoordinatorMetrics::SetJobs(const std::string& state, std::uint64_t count) {
  const std::lock_guard lock(families_->mutex);
  families_->jobs.Set({{"state", state}}, static_cast<double>(count));
}

void CoordinatorMetrics::SetJob(const std::string& job_id, const Job& job) {
  const std::lock_guard lock(families_->mutex);
  const Labels labels = {{"job_id", job_id}};
  families_->job_loss.Set(labels, job.loss);
  families_->job_samples.Set(labels, static_cast<double>(job.samples));
  families_->job_goodput.Set(labels, job.samples_per_second);
  families_->job_batch.Set(labels, static_cast<double>(job.global_batch));
  families_->job_period.Set(labels, static_cast<double>(job.communication_period));
  families_->job_aggregation.Set({{"job_id", job_id}, {"mode", job.aggregation_mode}}, 1);
  for (std::size_t rank = 0; rank < job.workers.size(); ++rank) {
    const Labels worker = {{"job_id", job_id}, {"rank", std::to_string(rank)}};
    families_->worker_batch.Set(worker, job.workers[rank].batch);
    families_->worker_idle.Set(worker, job.workers[rank].idle_ratio);
  }
  if (job.workers.empty()) return;
  families_->worker_batch.Remove("job_id", job_id, job.workers.size());
  families_->worker_idle.Remove("job_id", job_id, job.workers.size());
}

void CoordinatorMetrics::RemoveJob(const std::string& job_id) {
  const std::lock_guard lock(families_->mutex);
  for (Series* series : {&families_->job_loss, &families_->job_samples, &families_->job_goodput,
                         &families_->job_batch, &families_->job_period, &families_->job_aggregation,
                         &families_->worker_batch, &families_->worker_idle}) {
    series->Remove("job_id", job_id);
  }
}

void CoordinatorMetrics::ObserveRound(const std::string& phase, double seconds) {
  families_->round_seconds.Add({{"phase", phase}}, kRoundSeconds).Observe(seconds);
}

void CoordinatorMetrics::CountDecision(const std::string& kind, const std::string& outcome) {
  families_->decisions.Add({{"kind", kind}, {"outcome", outcome}}).Increment();
}

void CoordinatorMetrics::CountMembershipChange(const std::string& reason) {
  families_->membership.Add({{"reason", reason}}).Increment();
}

void CoordinatorMetrics::AddControllerOverhead(Duration spent) {
  families_->overhead.Increment(ToSeconds(spent));
}

void CoordinatorMetrics::ObserveWrite(Duration spent) {
  families_->write_seconds.Observe(ToSeconds(spent));
}

void CoordinatorMetrics::SetHeartbeatAge(const std::string& node, double seconds) {
  const std::lock_guard lock(families_->mutex);
  families_->heartbeat_age.Set({{"node", node}}, seconds);
}

void CoordinatorMetrics::RemoveNode(const std::string& node) {
  const std::lock_guard lock(families_->mutex);
  families_->heartbeat_age.Remove("node", node);
}

void CoordinatorMetrics::CountCall(const std::string& method, const std::string& code) {
  families_->calls.Add({{"method", method}, {"code", code}}).Increment();
}

}  // namespace tactus::runtime
