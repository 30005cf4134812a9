// Writes down what happens in a simulation, for its outcome.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "policies/loss_window.h"
#include "policies/plan.h"
#include "simulator/outcome.h"

namespace tactus::simulator {

// A round as one worker lived it; blocked_seconds of the report, taken apart.
struct LivedRound {
  std::uint64_t round = 0;
  std::uint64_t plan_version = 0;
  std::uint64_t samples_global = 0;  // of all members
  policies::RoundLosses losses{};    // over them
  std::uint64_t samples = 0;         // its own
  double compute_seconds = 0;
  double wait_seconds = 0;      // for the last member to be ready
  double transfer_seconds = 0;  // from then on
};

// Folds events into JobOutcomes and the trace. One thread.
class Recorder {
 public:
  explicit Recorder(bool trace) : trace_wanted_(trace) {}

  void OnSubmitted(JobId job, Instant now);
  void OnActions(const job::Actions& actions, Instant now);

  // Of the job so far, as JobOutcome::records.
  const std::vector<policies::Decision>& DecisionsOf(JobId job) {
    return jobs_[job].outcome.records;
  }

  // ---- What workers say of themselves, each by the number that OnWorker gives it.

  std::uint32_t OnWorker(JobId job, const job::MemberRecord& where);
  void OnRank(std::uint32_t worker, std::uint32_t rank);
  void OnLived(std::uint32_t worker, const LivedRound& round, Instant now);
  // The loss on validation samples after so many rounds; follows OnLived of the last one.
  void OnValidated(std::uint32_t worker, std::uint64_t rounds, double loss);
  void OnAdopted(std::uint32_t worker, std::uint64_t plan_version, std::uint64_t first_round,
                 Instant now);
  void OnSpan(std::uint32_t worker, TraceSpan::Kind kind, Instant start, Instant end);
  // A group of the job sent so many over hosts' links.
  void OnBytes(JobId job, double bytes);

  // Jobs in the order of submission; completes what only the records know.
  std::vector<JobOutcome> TakeJobs();
  Trace TakeTrace() { return std::move(trace_); }

 private:
  struct Job {
    JobOutcome outcome{};
    Instant submitted{};
    policies::LossWindow recent{};   // of rounds with a finite loss
    std::optional<Instant> begun{};  // the first round
    double curve_seconds = 0;
    std::uint64_t curve_samples = 0;
    std::uint64_t curve_stride = 1;
  };
  struct Worker {
    JobId job{};
    std::uint32_t rank = 0;
    // Of its rounds.
    double samples = 0;
    double compute_seconds = 0;
    double seconds = 0;  // computing, waiting, moving bytes
  };

  void AddPoint(const LivedRound& round, Instant now, Job& job);
  void On(const job::JobRecord& record, Instant now);
  void On(const job::PublishDecision& decision, Instant now);
  void On(const job::PersistDecision& persist);
  void On(const job::ForgetRounds& forget);
  void Add(const TraceSpan& span);

  const bool trace_wanted_;
  std::map<JobId, Job> jobs_;
  std::vector<Worker> workers_;  // as Trace::workers
  Trace trace_;
};

}  // namespace tactus::simulator
