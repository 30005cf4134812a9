// "How would that job run with other devices or links?": models fitted to a job's history, changed.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/ask/simulated_work.h"
#include "simulator/cluster_model.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// Changes to a fitted cluster, as the command line has them.
struct WhatIfChanges {
  // "2xspeed=0.5": two devices, each half as fast as the job's fastest, on hosts of their own.
  std::vector<std::string> add{};
  // "NODE/DEVICE", "NODE", "worker-7" (its id) or "rank-3"; the first of these that there is.
  std::vector<std::string> remove{};
  std::string rate{};  // of every link, those within a host too: "1gbit"; empty: as fitted
};

// What was fitted, and how well.
struct FittedJob {
  simulator::ClusterModel cluster{};
  SimulatedWork work{};           // its loss is the recorded curve
  std::uint64_t rounds = 0;       // on record
  double samples_per_second = 0;  // of the rounds on record
  double transfer_seconds = 0;    // of a round, on average
  std::string error{};            // not empty: why nothing was fitted
};

// Fits the job's history. Requires: a valid specification in the job.
FittedJob FitJob(const v1::Job& job, const v1::ListRoundsResponse& history);

// Changes the cluster: adds, then removes, then sets the rate. `job` says who worker-N and rank-N
// are. Returns what is wrong, or nothing; then the cluster has a device left. Requires: the cluster
// has a device.
std::string Change(const WhatIfChanges& changes, const v1::Job& job,
                   simulator::ClusterModel* cluster);

}  // namespace tactus::client
