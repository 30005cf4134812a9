// What a simulation shows: numbers for a table, curves, a trace, and what the checkers found.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/job/records.h"
#include "policies/decision.h"
#include "policies/plan.h"

namespace tactus::simulator {

// A round as the first member lived it.
struct CurvePoint {
  std::uint64_t round = 0;
  double seconds = 0;         // virtual time since the job's first round began
  std::uint64_t samples = 0;  // of all rounds up to this one
  // Mean over the round's samples at parameters that all members had.
  double loss = 0;
  double loss_smoothed = 0;        // of a policies::LossWindow, as a stop condition sees it
  bool smoothed_over_all = false;  // whether that window was full
  std::uint64_t plan_version = 0;
};

// The loss on validation samples of the parameters that all members hold between two rounds.
struct ValidationPoint {
  std::uint64_t rounds = 0;   // that went before
  double seconds = 0;         // as a CurvePoint's
  std::uint64_t samples = 0;  // of those rounds
  double loss = 0;
};

struct Decision {
  double seconds = 0;  // virtual time of the decision since the simulation's start
  std::optional<std::uint64_t> adopted_round{};  // first one under it; nothing: none was
  policies::Plan plan{};
};

struct WorkerOutcome {
  std::string node{};
  std::string device{};
  std::uint64_t samples = 0;  // in applied rounds
  // Of the training time: computing; waiting for the last member; moving bytes. [s]
  double compute_seconds = 0;
  double wait_seconds = 0;
  double transfer_seconds = 0;
};

struct JobOutcome {
  std::string name{};
  job::JobState state = job::JobState::kQueued;
  std::string reason{};
  std::uint64_t rounds = 0;
  std::uint64_t samples = 0;
  std::uint64_t epochs = 0;       // whole ones
  double queued_seconds = 0;      // from submission to its workers' start
  double train_seconds = 0;       // from the first round's begin to the last one's end
  double samples_per_second = 0;  // samples / train_seconds
  // Samples over those that the workers would have worked off had they not waited or moved bytes:
  // of each its own speed, its samples over the time that it computed, times the time that it was
  // in a group. [0, 1]
  double utilisation = 0;
  double train_loss = 0;  // mean over the last 20 rounds
  std::optional<double> validation_loss{};
  double bytes = 0;  // sent over hosts' links for this job's collectives
  std::uint64_t decisions_total = 0;
  std::vector<Decision> decisions{};  // the first kDecisionsMax
  // As the coordinator has them on record, by plan version and axis; the first kDecisionsMax.
  std::vector<policies::Decision> records{};
  std::vector<job::AttemptRecord> attempts{};  // as the coordinator has them on record
  std::vector<WorkerOutcome> workers{};        // the last of each rank, over all groups
  // Whole up to kCurvePointsMax rounds; beyond, every second, fourth ... round.
  std::vector<CurvePoint> curve{};
  std::vector<ValidationPoint> validation{};  // SimulatedJob::validate_every apart
};

// A stretch of a worker's time, or a point of it.
struct TraceSpan {
  enum class Kind { kLoad, kCompute, kWait, kTransfer, kPause, kPlan };
  Kind kind = Kind::kCompute;
  std::uint32_t worker = 0;  // index into Trace::workers
  double start_seconds = 0;
  double seconds = 0;        // 0 of a kPlan
  std::uint64_t round = 0;   // kPlan: the first round under the plan
  std::uint64_t detail = 0;  // kCompute: samples; kPlan: version
};
struct Trace {
  std::vector<std::string> workers{};  // "host-1/cpu:0 worker 3"
  std::vector<TraceSpan> spans{};      // in the order in which they ended
  bool cut = false;                    // kTraceSpansMax was reached
};

// A promise that was broken.
struct Violation {
  double seconds = 0;
  std::string what{};
};

struct Outcome {
  std::vector<JobOutcome> jobs{};  // as in the scenario
  double seconds = 0;              // virtual time at the end
  std::uint64_t events = 0;        // of the queue
  std::uint64_t messages = 0;      // between agents and coordinator
  std::uint64_t faults = 0;        // that took effect
  std::string unfinished{};        // not empty: the time limit was reached; what was not over
  Trace trace{};
  std::vector<Violation> violations{};  // the first kViolationsMax
  std::uint64_t violations_total = 0;
};

inline constexpr std::size_t kCurvePointsMax = 20'000;
inline constexpr std::size_t kDecisionsMax = 1'000;
inline constexpr std::size_t kTraceSpansMax = 1'000'000;
inline constexpr std::size_t kViolationsMax = 100;

// Virtual seconds of training until the smoothed loss was first at or below `loss`; nothing when it
// never was.
std::optional<double> SecondsToLoss(const JobOutcome& job, double loss);

}  // namespace tactus::simulator
