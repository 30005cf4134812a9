#include "metrics/job_series.h"

#include <algorithm>
#include <utility>

namespace tactus::metrics {
namespace {

constexpr double kNanoseconds = 1e9;  // of a second; divided by, which keeps 7.5 s exact
constexpr std::string_view kTraining = "running";
// Of a worker: info, batch, speed, idle, link.
constexpr std::size_t kSeriesOfWorker = 5;

std::optional<double> Positive(double value) {
  if (!(value > 0)) return std::nullopt;
  return value;
}

// Of the newest validation.
std::optional<double> OfValidation(const JobFigures& figures, double ValidationFigures::*field) {
  if (!figures.validation) return std::nullopt;
  return (*figures.validation).*field;
}

// Where the loss has a notion of it.
std::optional<double> AccuracyOf(const JobFigures& figures) {
  const auto accuracy = OfValidation(figures, &ValidationFigures::accuracy);
  return accuracy && *accuracy >= 0 ? accuracy : std::nullopt;
}

}  // namespace

// A metric with one value a job; nothing: no series.
struct JobSeries::Field {
  std::string_view metric;
  std::optional<double> (*value)(const Job& job);
};

const std::vector<JobSeries::Field>& JobSeries::Fields() {
  using Value = std::optional<double>;
  static const std::vector<Field> fields = {
      {"tactus_job_workers",
       [](const Job& job) -> Value { return static_cast<double>(job.figures.members); }},
      {"tactus_job_loss",
       [](const Job& job) -> Value {
         if (job.figures.rounds == 0) return std::nullopt;
         return job.figures.loss;
       }},
      {"tactus_job_validation_loss",
       [](const Job& job) { return OfValidation(job.figures, &ValidationFigures::loss); }},
      {"tactus_job_best_validation_loss",
       [](const Job& job) { return job.figures.best_validation_loss; }},
      {"tactus_job_validation_accuracy_ratio",
       [](const Job& job) { return AccuracyOf(job.figures); }},
      {"tactus_job_validations_total",
       [](const Job& job) -> Value { return job.validations.total(); }},
      {"tactus_job_validation_seconds",
       [](const Job& job) { return OfValidation(job.figures, &ValidationFigures::seconds); }},
      {"tactus_job_samples_total", [](const Job& job) -> Value { return job.samples.total(); }},
      {"tactus_job_rounds_total", [](const Job& job) -> Value { return job.rounds.total(); }},
      {"tactus_job_skipped_rounds_total",
       [](const Job& job) -> Value { return static_cast<double>(job.skipped); }},
      {"tactus_job_collective_bytes_total",
       [](const Job& job) -> Value { return static_cast<double>(job.bytes); }},
      {"tactus_job_suspensions_total",
       [](const Job& job) -> Value { return job.suspensions.total(); }},
      {"tactus_job_attempts_lost_total",
       [](const Job& job) -> Value { return job.attempts_lost.total(); }},
      {"tactus_job_regroups_total", [](const Job& job) -> Value { return job.regroups.total(); }},
      {"tactus_job_differences_total",
       [](const Job& job) -> Value { return job.differences.total(); }},
      {"tactus_job_resizes_total", [](const Job& job) -> Value { return job.resizes.total(); }},
      {"tactus_job_goodput_samples_per_second",
       [](const Job& job) { return job.figures.samples_per_second; }},
      {"tactus_job_epoch",
       [](const Job& job) -> Value { return static_cast<double>(job.figures.epoch); }},
      {"tactus_job_epoch_progress_ratio",
       [](const Job& job) { return job.figures.epoch_progress_ratio; }},
      {"tactus_job_elapsed_seconds",
       [](const Job& job) -> Value { return job.figures.elapsed_seconds; }},
      {"tactus_job_eta_seconds", [](const Job& job) { return job.figures.eta_seconds; }},
      {"tactus_job_last_round_seconds",
       [](const Job& job) -> Value { return job.round ? Value(job.round->seconds) : Value(); }},
      {"tactus_job_last_round_timestamp_seconds",
       [](const Job& job) { return Positive(job.round_timestamp); }},
      {"tactus_checkpoint_last_success_timestamp_seconds",
       [](const Job& job) { return job.checkpoint_timestamp; }},
      {"tactus_job_plan_version",
       [](const Job& job) -> Value { return static_cast<double>(job.figures.plan_version); }},
      {"tactus_job_global_batch_samples",
       [](const Job& job) -> Value { return static_cast<double>(job.figures.global_batch); }},
      {"tactus_job_communication_period_steps",
       [](const Job& job) -> Value { return job.figures.communication_period; }},
      {"tactus_job_learning_rate",
       [](const Job& job) -> Value {
         return job.round ? Value(job.round->learning_rate) : Value();
       }},
      {"tactus_job_learning_rate_gain_ratio",
       [](const Job& job) -> Value { return job.round ? Value(job.round->gain_ratio) : Value(); }},
      {"tactus_job_gradient_noise_scale",
       [](const Job& job) -> Value { return job.round ? job.round->noise_scale : Value(); }},
      {"tactus_job_orthogonality_ratio",
       [](const Job& job) -> Value {
         return job.round ? Positive(job.round->orthogonality_ratio) : Value();
       }},
  };
  return fields;
}

void JobSeries::Tally::Set(std::uint64_t value) {
  if (last_ && value > *last_) total_ += value - *last_;
  last_ = value;
}

JobSeries::Job* JobSeries::Find(JobId job) {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

// False: there is none, and nobody is over.
bool JobSeries::MakeRoom() {
  if (jobs_.size() < kJobsMax) return true;
  auto oldest = jobs_.end();
  for (auto entry = jobs_.begin(); entry != jobs_.end(); ++entry) {
    const std::optional<Instant>& ended = entry->second.ended;
    if (ended && (oldest == jobs_.end() || *ended < *oldest->second.ended)) oldest = entry;
  }
  if (oldest == jobs_.end()) return false;
  ranks_ -= oldest->second.ranks;
  jobs_.erase(oldest);
  return true;
}

// How many of the job's workers have series: as many as there is room for, the first ones.
void JobSeries::Allot(Job& job) {
  const std::size_t places = job.places == nullptr ? 0 : job.places->size();
  const std::size_t workers = std::max(places, job.figures.workers.size());
  ranks_ -= job.ranks;
  job.ranks = std::min({workers, kRanksMax, kWorkersMax - ranks_});
  ranks_ += job.ranks;
  const std::size_t over = workers - job.ranks;
  if (over > job.ranks_dropped) dropped_ += (over - job.ranks_dropped) * kSeriesOfWorker;
  job.ranks_dropped = std::max(job.ranks_dropped, over);
}

void JobSeries::Add(JobId job, const std::string& name) {
  const threads::MutexLock lock(mutex_);
  if (jobs_.contains(job)) return;
  if (!MakeRoom()) {
    if (passed_over_.insert(job).second) dropped_ += Fields().size();
    return;
  }
  passed_over_.erase(job);
  jobs_[job].name = name;
}

// Where a job begins to train the time since its last round begins anew: what it spent in the
// queue, or what passed before this process, is no round that does not end.
void JobSeries::Set(JobId job, JobFigures figures) {
  const auto wall = static_cast<double>(clock_.wall());
  const threads::MutexLock lock(mutex_);
  Job* const found = Find(job);
  if (found == nullptr) return;
  found->samples.Set(figures.samples);
  found->rounds.Set(figures.rounds);
  found->suspensions.Set(figures.suspensions);
  found->attempts_lost.Set(figures.attempts_lost);
  found->regroups.Set(figures.regroups);
  found->differences.Set(figures.differences);
  found->resizes.Set(figures.resizes);
  found->validations.Set(figures.validations);
  const bool begins = figures.state == kTraining && found->figures.state != kTraining;
  if (begins) found->round_timestamp = wall / kNanoseconds;
  found->figures = std::move(figures);
  Allot(*found);
}

void JobSeries::SetPlaces(JobId job, std::vector<WorkerPlace> places) {
  const threads::MutexLock lock(mutex_);
  Job* const found = Find(job);
  if (found == nullptr) return;
  found->places = std::make_shared<const std::vector<WorkerPlace>>(std::move(places));
  Allot(*found);
}

void JobSeries::SetRound(JobId job, const RoundFigures& round) {
  const auto wall = static_cast<double>(clock_.wall());
  const threads::MutexLock lock(mutex_);
  Job* const found = Find(job);
  if (found == nullptr) return;
  found->round = round;
  found->round_timestamp = wall / kNanoseconds;
}

void JobSeries::SetDecision(JobId job, const DecisionFigures& decision) {
  const auto wall = static_cast<double>(clock_.wall());
  const threads::MutexLock lock(mutex_);
  Job* const found = Find(job);
  if (found == nullptr) return;
  Decisions& of_kind = found->decisions[decision.kind];
  if (decision.measured_gain_ratio) {
    of_kind.measured = decision.measured_gain_ratio;
    if (decision.predicted_gain_ratio) {
      of_kind.error = *decision.predicted_gain_ratio - *decision.measured_gain_ratio;
    }
    return;
  }
  of_kind.timestamp = wall / kNanoseconds;
  of_kind.predicted = decision.predicted_gain_ratio;
}

void JobSeries::SetCheckpoint(JobId job) {
  const auto wall = static_cast<double>(clock_.wall());
  const threads::MutexLock lock(mutex_);
  if (Job* const found = Find(job)) found->checkpoint_timestamp = wall / kNanoseconds;
}

void JobSeries::CountBytes(JobId job, std::uint64_t bytes) {
  const threads::MutexLock lock(mutex_);
  if (Job* const found = Find(job)) found->bytes += bytes;
}

void JobSeries::CountSkipped(JobId job) {
  const threads::MutexLock lock(mutex_);
  if (Job* const found = Find(job)) ++found->skipped;
}

void JobSeries::End(JobId job) {
  const Instant now = clock_.now();
  const threads::MutexLock lock(mutex_);
  passed_over_.erase(job);
  if (Job* const found = Find(job)) found->ended = now;
}

std::uint64_t JobSeries::dropped() const {
  const threads::MutexLock lock(mutex_);
  return dropped_;
}

// Of those that are still to be seen; a scrape is written from the copy, so that nobody who sets
// waits for it.
std::vector<JobSeries::Job> JobSeries::Copy() {
  const Instant now = clock_.now();
  const threads::MutexLock lock(mutex_);
  std::erase_if(jobs_, [now, this](const auto& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool over = entry.second.ended && now - *entry.second.ended >= kKept;
    if (over) ranks_ -= entry.second.ranks;
    return over;
  });
  std::vector<Job> jobs;
  jobs.reserve(jobs_.size());
  for (const auto& [id, job] : jobs_) jobs.push_back(job);
  return jobs;
}

void JobSeries::Collect(MetricPage& page) {
  const std::vector<Job> jobs = Copy();
  page.Write("tactus_metrics_series_dropped_total", {}, static_cast<double>(dropped()));
  for (const Field& field : Fields()) {
    for (const Job& job : jobs) {
      const std::optional<double> value = field.value(job);
      if (value) page.Write(field.metric, {{"job_id", job.name}}, *value);
    }
  }
  WriteModes(page, jobs);
  WriteDecisions(page, jobs);
  WriteWorkers(page, jobs);
}

void JobSeries::WriteModes(MetricPage& page, const std::vector<Job>& jobs) {
  struct Mode {
    std::string_view metric, label;
    std::string_view JobFigures::*word;
  };
  constexpr Mode kModes[] = {
      {"tactus_job_state", "state", &JobFigures::state},
      {"tactus_job_synchronization_mode", "mode", &JobFigures::synchronization},
      {"tactus_job_aggregation_mode", "mode", &JobFigures::aggregation},
      {"tactus_job_learning_rate_rule", "rule", &JobFigures::learning_rate_rule},
      {"tactus_job_encoding_mode", "mode", &JobFigures::encoding}};
  for (const Mode& mode : kModes) {
    for (const Job& job : jobs) {
      const std::string_view word = job.figures.*mode.word;
      if (!word.empty()) page.Write(mode.metric, {{"job_id", job.name}, {mode.label, word}}, 1);
    }
  }
}

void JobSeries::WriteDecisions(MetricPage& page, const std::vector<Job>& jobs) {
  struct Figure {
    std::string_view metric;
    std::optional<double> (*value)(const Decisions& of);
  };
  constexpr Figure kFigures[] = {
      {"tactus_job_decision_timestamp_seconds",
       [](const Decisions& of) { return Positive(of.timestamp); }},
      {"tactus_job_decision_predicted_gain_ratio",
       [](const Decisions& of) { return of.predicted; }},
      {"tactus_job_decision_measured_gain_ratio", [](const Decisions& of) { return of.measured; }},
      {"tactus_decision_predicted_error_ratio", [](const Decisions& of) { return of.error; }}};
  for (const Figure& figure : kFigures) {
    for (const Job& job : jobs) {
      for (const auto& [kind, of] : job.decisions) {
        const std::optional<double> value = figure.value(of);
        if (value) page.Write(figure.metric, {{"job_id", job.name}, {"kind", kind}}, *value);
      }
    }
  }
}

void JobSeries::WriteWorkers(MetricPage& page, const std::vector<Job>& jobs) {
  for (const Job& job : jobs) {
    if (job.places == nullptr) continue;
    for (std::size_t rank = 0; rank < std::min(job.places->size(), job.ranks); ++rank) {
      const WorkerPlace& place = (*job.places)[rank];
      page.Write("tactus_worker_info",
                 {{"job_id", job.name},
                  {"rank", std::to_string(rank)},
                  {"node", place.node},
                  {"device", place.device}},
                 1);
    }
  }
  using Value = std::optional<double>;
  struct Figure {
    std::string_view metric;
    Value (*value)(const JobFigures::Worker& worker);
  };
  constexpr Figure kFigures[] = {
      {"tactus_worker_batch_samples",
       [](const JobFigures::Worker& worker) -> Value { return worker.batch; }},
      {"tactus_worker_samples_per_second",
       [](const JobFigures::Worker& worker) -> Value { return worker.samples_per_second; }},
      {"tactus_worker_idle_ratio",
       [](const JobFigures::Worker& worker) -> Value { return worker.idle_ratio; }},
      {"tactus_worker_link_bytes_per_second",
       [](const JobFigures::Worker& worker) { return Positive(worker.link_bytes_per_second); }}};
  for (const Figure& figure : kFigures) {
    for (const Job& job : jobs) {
      const std::size_t ranks = std::min(job.figures.workers.size(), job.ranks);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const Value value = figure.value(job.figures.workers[rank]);
        if (!value) continue;
        page.Write(figure.metric, {{"job_id", job.name}, {"rank", std::to_string(rank)}}, *value);
      }
    }
  }
}

}  // namespace tactus::metrics
