// What the newest progress of jobs says, and its series: plain values when they are set, labels and
// text only when somebody scrapes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "metrics/source.h"
#include "threads/mutex.h"

namespace tactus::metrics {

// A validation of a job.
struct ValidationFigures {
  double loss = 0;
  double accuracy = -1;  // -1: the loss has no notion of it
  double seconds = 0;
};

// A job as its metrics have it. Words are of static storage and from the closed sets of the
// catalogue.
struct JobFigures {
  std::string_view state{};
  double loss = 0;
  std::uint64_t samples = 0;  // of the job so far; the series counts from the first that was set
  std::uint64_t rounds = 0;   // likewise
  std::uint32_t suspensions = 0;               // likewise
  std::uint32_t attempts_lost = 0;             // likewise
  std::uint32_t regroups = 0;                  // likewise
  std::uint32_t differences = 0;               // likewise
  std::uint32_t resizes = 0;                   // likewise
  std::size_t members = 0;                     // workers that sit on devices
  std::optional<double> samples_per_second{};  // unset: it does not train
  std::uint64_t epoch = 0;
  std::optional<double> epoch_progress_ratio{};
  double elapsed_seconds = 0;
  std::optional<double> eta_seconds{};
  std::uint64_t plan_version = 0;
  std::uint64_t global_batch = 0;
  std::uint32_t communication_period = 1;
  std::string_view synchronization{};
  std::string_view aggregation{};
  std::string_view learning_rate_rule{};
  std::string_view encoding{};
  struct Worker {
    std::uint32_t batch = 0;
    double samples_per_second = 0;
    double idle_ratio = 0;
    double link_bytes_per_second = 0;  // 0: not known, and no series
  };
  std::vector<Worker> workers{};                  // by rank; series of ranks that are no more go
  std::optional<ValidationFigures> validation{};  // the newest
  std::optional<double> best_validation_loss{};
  std::uint64_t validations = 0;  // as samples
};

// Where a worker runs.
struct WorkerPlace {
  std::string node{};
  std::string device{};
};

// The newest round of a job.
struct RoundFigures {
  double seconds = 0;
  double learning_rate = 0;
  double gain_ratio = 1;
  double orthogonality_ratio = 0;  // 0: not measured
  std::optional<double> noise_scale{};
};

// A decision of a job: made, or measured.
struct DecisionFigures {
  std::string_view kind{};
  std::optional<double> predicted_gain_ratio{};  // unset: it promises none
  std::optional<double> measured_gain_ratio{};
};

// All methods may be called from any thread. Jobs without series, because there are too many, are
// passed over.
class JobSeries final : public MetricSource {
 public:
  static constexpr std::size_t kJobsMax = 1000;
  static constexpr std::size_t kRanksMax = 256;      // of a job
  static constexpr std::size_t kWorkersMax = 16384;  // of all jobs
  // How long the last values of a job that is over stay: every scraper has seen them by then.
  static constexpr Duration kKept = std::chrono::minutes(10);

  explicit JobSeries(MetricClock clock) : clock_(std::move(clock)) {}

  // The job has series from now on, if there is room: those that are over give way, the oldest
  // first. Again: nothing.
  void Add(JobId job, const std::string& name);
  void Set(JobId job, JobFigures figures);
  void SetPlaces(JobId job, std::vector<WorkerPlace> places);
  void SetRound(JobId job, const RoundFigures& round);
  void SetDecision(JobId job, const DecisionFigures& decision);
  void SetCheckpoint(JobId job);  // a new one became known
  void CountBytes(JobId job, std::uint64_t bytes);
  void CountSkipped(JobId job);
  // The series go kKept from now.
  void End(JobId job);

  std::uint64_t dropped() const;

  void Collect(MetricPage& page) override;

 private:
  // Counts from its first value on, and goes on when the value falls.
  class Tally {
   public:
    void Set(std::uint64_t value);
    double total() const { return static_cast<double>(total_); }

   private:
    std::optional<std::uint64_t> last_{};
    std::uint64_t total_ = 0;
  };
  struct Decisions {
    double timestamp = 0;
    std::optional<double> predicted{};
    std::optional<double> measured{};
    std::optional<double> error{};
  };
  struct Job {
    std::string name{};
    JobFigures figures{};
    // Shared with the copy that a scrape is written from.
    std::shared_ptr<const std::vector<WorkerPlace>> places{};
    Tally samples{}, rounds{}, suspensions{}, attempts_lost{}, regroups{}, resizes{}, differences{},
        validations{};
    std::uint64_t bytes = 0;
    std::uint64_t skipped = 0;
    std::optional<RoundFigures> round{};
    double round_timestamp = 0;
    std::optional<double> checkpoint_timestamp{};
    std::map<std::string_view, Decisions> decisions{};
    std::size_t ranks = 0;          // that have series
    std::size_t ranks_dropped = 0;  // counted so far
    std::optional<Instant> ended{};
  };
  struct Field;

  static const std::vector<Field>& Fields();
  static void WriteWorkers(MetricPage& page, const std::vector<Job>& jobs);
  static void WriteModes(MetricPage& page, const std::vector<Job>& jobs);
  static void WriteDecisions(MetricPage& page, const std::vector<Job>& jobs);
  Job* Find(JobId job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Allot(Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Job> Copy();

  const MetricClock clock_;
  mutable threads::Mutex mutex_;  // the control thread sets, the scraper's thread reads
  std::map<JobId, Job> jobs_ ABSL_GUARDED_BY(mutex_);
  // Not over, without series, and counted for that.
  std::set<JobId> passed_over_ ABSL_GUARDED_BY(mutex_);
  std::size_t ranks_ ABSL_GUARDED_BY(mutex_) = 0;  // of all jobs_
  std::uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tactus::metrics
