#include "metrics/coordinator_metrics.h"

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "metrics/catalogue.h"
#include "metrics/process_source.h"
#include "metrics/registry.h"
#include "threads/mutex.h"

namespace tactus::metrics {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

Histogram::BucketBoundaries Bounds(std::span<const double> bounds) {
  return {bounds.begin(), bounds.end()};
}

// A time that a worker said: outside input, and one that is not finite would spoil the sum for
// ever.
void Observe(Histogram& histogram, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0) histogram.Observe(seconds);
}

// Children of a family that are told apart by one or two words, found again without building their
// labels anew. Those of closed sets are there from the start: a counter that is born with its first
// event has no increase that anybody could see.
template <typename Metric>
class Children {
 public:
  Children(Family<Metric>& family, const MetricSpec& spec)
      : family_(family), first_(spec.labels[0].name), second_(spec.labels[1].name) {
    for (const std::string& first : ClosedSet(spec.labels[0])) {
      if (second_.empty()) At(first);
      for (const std::string& second : ClosedSet(spec.labels[1])) At(first, second);
    }
  }

  Metric& At(const std::string& first, const std::string& second = {}) {
    const threads::MutexLock lock(mutex_);
    Metric*& child = children_[{first, second}];
    if (child == nullptr) child = &Add(first, second);
    return *child;
  }

 private:
  Metric& Add(const std::string& first, const std::string& second) {
    prometheus::Labels labels = {{first_, first}};
    if (!second_.empty()) labels.emplace(second_, second);
    if constexpr (std::is_same_v<Metric, Histogram>) {
      return family_.Add(labels, Bounds(kRoundSecondsBounds));
    } else {
      return family_.Add(labels);
    }
  }

  Family<Metric>& family_;
  const std::string first_, second_;
  threads::Mutex mutex_;  // calls are counted on gRPC's threads as well
  std::map<std::pair<std::string, std::string>, Metric*> children_ ABSL_GUARDED_BY(mutex_);
};

// A value that need not be there.
class OptionalGauge final : public MetricSource {
 public:
  explicit OptionalGauge(std::string_view metric) : metric_(metric) {}

  void Set(std::optional<double> value) {
    const threads::MutexLock lock(mutex_);
    value_ = value;
  }

  void Collect(MetricPage& page) override {
    const threads::MutexLock lock(mutex_);
    if (value_) page.Write(metric_, {}, *value_);
  }

 private:
  const std::string_view metric_;
  threads::Mutex mutex_;  // the control thread sets, the scraper's thread reads
  std::optional<double> value_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct CoordinatorMetrics::Families {
  explicit Families(MetricsRegistry& registry) : r(registry) {
    for (const auto& gauge : {queue_oldest, backup_interval, backup_success}) r.Add(gauge);
  }

  static Histogram& Phase(Family<Histogram>& of, const char* phase) {
    return of.Add({{"phase", phase}}, Bounds(kRoundSecondsBounds));
  }
  Histogram& OneHistogram(std::string_view name, std::span<const double> bounds) {
    return r.HistogramFamily(name).Add({}, Bounds(bounds));
  }
  Counter& OneCounter(std::string_view name) { return r.CounterFamily(name).Add({}); }
  Gauge& OneGauge(std::string_view name) { return r.GaugeFamily(name).Add({}); }
  Children<Counter> Counters(std::string_view name) { return {r.CounterFamily(name), Spec(name)}; }
  Children<Gauge> Gauges(std::string_view name) { return {r.GaugeFamily(name), Spec(name)}; }
  Children<Histogram> Histograms(std::string_view name) {
    return {r.HistogramFamily(name), Spec(name)};
  }

  MetricsRegistry& r;  // first: the families below register with it
  Children<Gauge> jobs = Gauges("tactus_jobs");
  const std::shared_ptr<OptionalGauge> queue_oldest =  // shared with the registry
      std::make_shared<OptionalGauge>("tactus_queue_oldest_timestamp_seconds");
  const std::shared_ptr<OptionalGauge> backup_interval =
      std::make_shared<OptionalGauge>("tactus_backup_interval_seconds");
  const std::shared_ptr<OptionalGauge> backup_success =
      std::make_shared<OptionalGauge>("tactus_backup_last_success_timestamp_seconds");
  Family<Histogram>& rounds = r.HistogramFamily("tactus_round_seconds");
  Histogram& compute = Phase(rounds, "compute");
  Histogram& blocked = Phase(rounds, "blocked");
  Histogram& total = Phase(rounds, "total");
  Family<Histogram>& checkpoints = r.HistogramFamily("tactus_checkpoint_seconds");
  Histogram& still = Phase(checkpoints, "still");
  Histogram& write = Phase(checkpoints, "write");
  Histogram& upload = Phase(checkpoints, "upload");
  Histogram& step = OneHistogram("tactus_worker_step_seconds", kRoundSecondsBounds);
  Histogram& collective = OneHistogram("tactus_collective_seconds", kRoundSecondsBounds);
  Histogram& writes = OneHistogram("tactus_wal_fsync_seconds", kWriteSecondsBounds);
  Counter& write_failures = OneCounter("tactus_store_write_failures_total");
  Counter& set_aside = OneCounter("tactus_store_jobs_set_aside_total");
  Counter& backup_failures = OneCounter("tactus_backup_failures_total");
  Gauge& store_failing = OneGauge("tactus_store_failing");
  Children<Counter> decisions = Counters("tactus_decisions_total");
  Children<Counter> membership = Counters("tactus_membership_changes_total");
  Children<Counter> calls = Counters("tactus_rpc_server_handled_total");
  Children<Counter> refused = Counters("tactus_refused_total");
  Children<Counter> bucket_requests = Counters("tactus_bucket_requests_total");
  Children<Histogram> bucket_seconds = Histograms("tactus_bucket_request_seconds");
  Gauge& bucket_waiting = OneGauge("tactus_bucket_waiting_files");
  Gauge& disk_floor = OneGauge("tactus_state_floor_bytes");
  Children<Gauge> transfers = Gauges("tactus_transfers");
  Counter& events = OneCounter("tactus_events_total");
  Counter& overhead = OneCounter("tactus_controller_overhead_seconds_total");
  Gauge& backlog = OneGauge("tactus_event_backlog_events");
};

CoordinatorMetrics::CoordinatorMetrics(const std::string& version, const MetricClock& clock)
    : registry_(std::make_shared<MetricsRegistry>(version)),
      jobs_(std::make_shared<JobSeries>(clock)),
      nodes_(std::make_shared<NodeSeries>(clock)),
      families_(std::make_unique<Families>(*registry_)) {
  registry_->Add(jobs_);
  registry_->Add(nodes_);
}

CoordinatorMetrics::~CoordinatorMetrics() = default;

void CoordinatorMetrics::SetJobs(const std::string& state, std::uint64_t count) {
  families_->jobs.At(state).Set(static_cast<double>(count));
}

void CoordinatorMetrics::SetQueueOldest(std::optional<double> wall_seconds) {
  families_->queue_oldest->Set(wall_seconds);
}

void CoordinatorMetrics::ObserveRound(const Round& round) {
  Observe(families_->compute, round.compute_seconds);
  Observe(families_->blocked, round.blocked_seconds);
  Observe(families_->total, round.total_seconds);
  if (round.steps > 0) Observe(families_->step, round.compute_seconds / round.steps);
  if (round.transfer_seconds > 0) Observe(families_->collective, round.transfer_seconds);
}

void CoordinatorMetrics::ObserveCheckpoint(Duration write, Duration upload) {
  Observe(families_->write, ToSeconds(write));
  Observe(families_->upload, ToSeconds(upload));
}

void CoordinatorMetrics::ObserveCheckpointTaken(double still_seconds, double write_seconds) {
  Observe(families_->still, still_seconds);
  Observe(families_->write, write_seconds);
}

void CoordinatorMetrics::CountDecision(const std::string& kind, const std::string& outcome) {
  families_->decisions.At(kind, outcome).Increment();
}

void CoordinatorMetrics::CountMembershipChange(const std::string& reason) {
  families_->membership.At(reason).Increment();
}

void CoordinatorMetrics::CountEvent(Duration spent) {
  families_->events.Increment();
  families_->overhead.Increment(ToSeconds(spent));
}

void CoordinatorMetrics::SetBacklog(std::size_t events) {
  families_->backlog.Set(static_cast<double>(events));
}

void CoordinatorMetrics::ObserveWrite(Duration spent, bool succeeded) {
  families_->writes.Observe(ToSeconds(spent));
  families_->store_failing.Set(succeeded ? 0 : 1);
  if (!succeeded) families_->write_failures.Increment();
}

void CoordinatorMetrics::CountSetAside() { families_->set_aside.Increment(); }

void CoordinatorMetrics::SetBackups(Duration every, double newest_wall_seconds) {
  families_->backup_interval->Set(ToSeconds(every));
  families_->backup_success->Set(newest_wall_seconds);
}

void CoordinatorMetrics::CountBackupFailure() { families_->backup_failures.Increment(); }

void CoordinatorMetrics::CountBucketRequest(const std::string& method, const std::string& outcome,
                                            Duration took) {
  families_->bucket_requests.At(method, outcome).Increment();
  families_->bucket_seconds.At(method).Observe(ToSeconds(took));
}

void CoordinatorMetrics::SetBucketWaiting(std::size_t files) {
  families_->bucket_waiting.Set(static_cast<double>(files));
}

void CoordinatorMetrics::SetTransfers(const std::string& direction, std::size_t calls) {
  families_->transfers.At(direction).Set(static_cast<double>(calls));
}

void CoordinatorMetrics::CountCall(const std::string& method, const std::string& code) {
  families_->calls.At(method, code).Increment();
}

void CoordinatorMetrics::CountRefusal(const std::string& bound) {
  families_->refused.At(bound).Increment();
}

void CoordinatorMetrics::SetDiskFloor(std::uint64_t bytes) {
  families_->disk_floor.Set(static_cast<double>(bytes));
}

void CoordinatorMetrics::WatchFolder(const std::string& folder) {
  registry_->Add(std::make_shared<StateFolderSource>(folder));
}

}  // namespace tactus::metrics
