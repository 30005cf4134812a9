#include <prometheus/histogram.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/metrics.h"
#include "runtime/metrics_registry.h"

namespace tactus::runtime {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// From 1 ms to a minute, in steps of about 2.2.
const Histogram::BucketBoundaries kRoundSeconds = {
    0.001, 0.0022, 0.005, 0.01, 0.022, 0.05, 0.1, 0.22, 0.5, 1, 2.2, 5, 10, 22, 60};
// From 50 us, a fast flash disk, to 5 s, a disk in trouble.
const Histogram::BucketBoundaries kWriteSeconds = {
    0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5};

// Gauges told apart by one label.
class Series {
 public:
  Series(Family<Gauge>& family, std::string label) : family_(family), label_(std::move(label)) {}

  void Set(const std::string& which, double value) {
    Gauge*& gauge = gauges_[which];
    if (gauge == nullptr) gauge = &family_.Add({{label_, which}});
    gauge->Set(value);
  }

  void Remove(const std::string& which) {
    const auto found = gauges_.find(which);
    if (found == gauges_.end()) return;
    family_.Remove(found->second);
    gauges_.erase(found);
  }

 private:
  Family<Gauge>& family_;
  const std::string label_;
  std::map<std::string, Gauge*> gauges_;
};

// Gauges of jobs, with another label that says which of the job's it is. What a job costs does not
// grow with the number of others.
class JobSeries {
 public:
  JobSeries(Family<Gauge>& family, std::string label) : family_(family), label_(std::move(label)) {}

  void Set(const std::string& job_id, std::size_t index, double value) {
    std::vector<Gauge*>& gauges = gauges_[job_id];
    while (gauges.size() <= index) {
      gauges.push_back(&family_.Add({{"job_id", job_id}, {label_, std::to_string(gauges.size())}}));
    }
    gauges[index]->Set(value);
  }

  // Only the first `count` of the job's remain.
  void Keep(const std::string& job_id, std::size_t count) {
    const auto found = gauges_.find(job_id);
    if (found == gauges_.end()) return;
    for (; found->second.size() > count; found->second.pop_back()) {
      family_.Remove(found->second.back());
    }
    if (count == 0) gauges_.erase(found);
  }

 private:
  Family<Gauge>& family_;
  const std::string label_;
  std::map<std::string, std::vector<Gauge*>> gauges_;
};

// The mode of a job: 1 for the one in force, and no other.
class ModeSeries {
 public:
  explicit ModeSeries(Family<Gauge>& family) : family_(family) {}

  void Set(const std::string& job_id, const std::string& mode) {
    const auto found = gauges_.find(job_id);
    if (found != gauges_.end() && found->second.first == mode) return;
    Remove(job_id);
    Gauge& gauge = family_.Add({{"job_id", job_id}, {"mode", mode}});
    gauge.Set(1);
    gauges_[job_id] = {mode, &gauge};
  }

  void Remove(const std::string& job_id) {
    const auto found = gauges_.find(job_id);
    if (found == gauges_.end()) return;
    family_.Remove(found->second.second);
    gauges_.erase(found);
  }

 private:
  Family<Gauge>& family_;
  std::map<std::string, std::pair<std::string, Gauge*>> gauges_;
};

}  // namespace

// Series are added and removed under the mutex; the families lock for themselves against a scrape.
struct CoordinatorMetrics::Families {
  explicit Families(MetricsRegistry& metrics) : r(metrics) {}

  MetricsRegistry& r;  // first: the families below register with it
  std::mutex mutex;

  Series jobs{r.GaugeFamily("tactus_jobs", "Jobs by state."), "state"};
  Series job_loss{r.GaugeFamily("tactus_job_loss", "Training loss, mean of the last 20 rounds."),
                  "job_id"};
  Series job_samples{
      r.GaugeFamily("tactus_job_samples_total", "Samples trained on since the start."), "job_id"};
  Series job_goodput{r.GaugeFamily("tactus_job_goodput_samples_per_second",
                                   "Samples of applied rounds a second, over the last seconds."),
                     "job_id"};
  Series job_batch{
      r.GaugeFamily("tactus_job_global_batch_samples", "Samples of a round, all workers."),
      "job_id"};
  Series job_period{r.GaugeFamily("tactus_job_communication_period_steps",
                                  "Optimizer steps between synchronizations."),
                    "job_id"};
  ModeSeries job_aggregation{
      r.GaugeFamily("tactus_job_aggregation_mode",
                    "How workers' results are combined; 1 for the mode in force.")};
  JobSeries worker_batch{
      r.GaugeFamily("tactus_worker_batch_samples", "Samples of a round, this worker."), "rank"};
  JobSeries worker_idle{r.GaugeFamily("tactus_worker_idle_ratio",
                                      "Share of time neither computing nor transferring."),
                        "rank"};
  Series heartbeat_age{
      r.GaugeFamily("tactus_agent_heartbeat_age_seconds", "Time since the agent was last heard."),
      "node"};
  Family<Histogram>& round_seconds = prometheus::BuildHistogram()
                                         .Name("tactus_round_seconds")
                                         .Help("Duration of one worker's round, by phase.")
                                         .Register(r.registry());
  std::map<std::string, Histogram*> rounds{};  // by phase
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
  families_->jobs.Set(state, static_cast<double>(count));
}

void CoordinatorMetrics::SetJob(const std::string& job_id, const Job& job) {
  const std::lock_guard lock(families_->mutex);
  families_->job_loss.Set(job_id, job.loss);
  families_->job_samples.Set(job_id, static_cast<double>(job.samples));
  families_->job_goodput.Set(job_id, job.samples_per_second);
  families_->job_batch.Set(job_id, static_cast<double>(job.global_batch));
  families_->job_period.Set(job_id, static_cast<double>(job.communication_period));
  families_->job_aggregation.Set(job_id, job.aggregation_mode);
  for (std::size_t rank = 0; rank < job.workers.size(); ++rank) {
    families_->worker_batch.Set(job_id, rank, job.workers[rank].batch);
    families_->worker_idle.Set(job_id, rank, job.workers[rank].idle_ratio);
  }
  families_->worker_batch.Keep(job_id, job.workers.size());
  families_->worker_idle.Keep(job_id, job.workers.size());
}

void CoordinatorMetrics::RemoveJob(const std::string& job_id) {
  const std::lock_guard lock(families_->mutex);
  for (Series* series : {&families_->job_loss, &families_->job_samples, &families_->job_goodput,
                         &families_->job_batch, &families_->job_period}) {
    series->Remove(job_id);
  }
  families_->job_aggregation.Remove(job_id);
  families_->worker_batch.Keep(job_id, 0);
  families_->worker_idle.Keep(job_id, 0);
}

void CoordinatorMetrics::ObserveRound(const std::string& phase, double seconds) {
  const std::lock_guard lock(families_->mutex);
  Histogram*& histogram = families_->rounds[phase];
  if (histogram == nullptr) {
    histogram = &families_->round_seconds.Add({{"phase", phase}}, kRoundSeconds);
  }
  histogram->Observe(seconds);
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
  families_->heartbeat_age.Set(node, seconds);
}

void CoordinatorMetrics::RemoveNode(const std::string& node) {
  const std::lock_guard lock(families_->mutex);
  families_->heartbeat_age.Remove(node);
}

void CoordinatorMetrics::CountCall(const std::string& method, const std::string& code) {
  families_->calls.Add({{"method", method}, {"code", code}}).Increment();
}

}  // namespace tactus::runtime
