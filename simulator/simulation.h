// A simulation: a cluster, its jobs and a seed in; what happened out.
//
// The cores that decide are the shipped ones (engine::RoundEngine, job::Cluster); hosts, links,
// processes and disks around them are models in virtual time. Everything follows from the scenario:
// equal scenarios give equal outcomes, bit for bit.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/engine/round_engine.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/records.h"
#include "simulator/cluster_model.h"
#include "simulator/learner.h"
#include "simulator/outcome.h"

namespace tactus::simulator {

// Of a job's checkpoints while it trains.
struct CheckpointModel {
  std::optional<Duration> every{};  // of training; nothing: as workers choose
  double still_seconds = 0;         // that rank 0 stands still: the copy
  double write_seconds = 0.1;       // until it is read back; of a suspension's, nothing is beside
  double upload_seconds = 0.1;      // to the coordinator
};

// A job and what stands for its model and data.
struct SimulatedJob {
  // Its specification, each fact once: what engines and controller both need of it stands in
  // `engine` (SettingsOf), whose train_samples is the learner's. Its subset is none or drawn, as
  // learners have no gradients of samples to choose by; shards by memory are as devices' speeds.
  engine::EngineOptions engine{};
  job::JobSettings settings{};
  std::string spec{};  // serialized; only carried to the records
  std::unique_ptr<Learner> learner{};
  // That a reduction carries on the real cluster; 0: the learner's own.
  std::uint64_t parameters = 0;
  // Share of a micro-batch's time that is the backward pass, during which segments become ready at
  // an even pace and their reductions start, [0, 1].
  double backward_share = 0;
  double submit_seconds = 0;
  bool tries_out = true;          // workers measure their speed before the first round
  double load_seconds = 1;        // of a worker: from its start to Ready
  double conclude_seconds = 0.5;  // of a worker: from the last round to the result
  CheckpointModel checkpoints{};
  // The loss on validation samples is seen at rounds' edges, so much training apart or a little
  // more, in no virtual time and without any effect; nothing: it is not.
  std::optional<Duration> validate_every{};
  std::optional<double> cancel_seconds{};  // a user cancels it then, if it is not over
  bool discard = false;                    // and wants no result
  std::optional<double> pause_seconds{};   // a user pauses it then, if it is not over,
  double resume_seconds = 0;               // and resumes it then; > pause_seconds
  // A user takes the newest decision back that there is then, or soon after.
  std::optional<double> revert_seconds{};
};

// What the coordinator is told of the job: its settings, with stop conditions, base batch and
// optimizer as the engines have them.
job::JobSettings SettingsOf(const SimulatedJob& job);

// Of an epoch: all of the learner's, or of its engine's subset.
std::uint64_t TrainSamples(const SimulatedJob& job);

// A user drains a host, and takes that back.
struct HostDrain {
  std::string host{};
  double at_seconds = 0;
  double until_seconds = 0;  // > at_seconds
};

// A device breaks as its agent sees it, and is mended; its workers go on.
struct DeviceFault {
  std::string host{};
  std::string device{};
  double at_seconds = 0;
  double until_seconds = 0;  // > at_seconds
};

// What a coordinator process begins with, in this order.
struct TakenUp {
  std::vector<job::NodeRecord> nodes{};
  std::vector<job::MemoryRecord> memories{};
  std::vector<job::PriorRecord> priors{};
  std::vector<job::JobRecord> jobs{};
};

struct Scenario {
  ClusterModel cluster{};
  std::vector<SimulatedJob> jobs{};
  std::vector<HostDrain> drains{};  // not overlapping on one host
  std::vector<DeviceFault> device_faults{};
  std::uint64_t seed = 1;
  double seconds_max = 30 * 86400.0;  // of virtual time; see Outcome::unfinished
  bool trace = false;
  // Called with every event that the coordinator's core gets and with what it answered; may be
  // empty.
  std::function<void(const job::Event& event, Instant now, const job::Actions& actions)> on_step{};
  // Called when a coordinator process begins, with what it takes up; may be empty.
  std::function<void(const TakenUp& taken_up, Instant now, const job::Actions& actions)> on_start{};
};

// Runs until all jobs are over and everything is idle. Requires: a valid cluster, at least one job,
// learners not null.
Outcome Simulate(Scenario scenario);

}  // namespace tactus::simulator
