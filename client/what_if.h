// "How would that job run with other devices or links?": models fitted to a job's history, changed.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/simulated_work.h"
#include "simulator/cluster_model.h"
#include "simulator/power_law.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// Changes to a fitted cluster, as the command line has them.
struct WhatIfChanges {
  std::vector<std::string> add{};  // "2xspeed=0.5": two devices, each half as fast as the fastest
  std::vector<std::string> remove{};  // "worker-7" (its id), "rank-3", "NODE/DEVICE" or "NODE"
  std::string rate{};                 // of every link: "1gbit"; empty: as fitted
};

// What was fitted, and how well.
struct FittedJob {
  simulator::ClusterModel cluster{};
  SimulatedWork work{};  // its loss is the recorded curve
  std::vector<simulator::LossPoint> curve{};
  std::uint64_t rounds = 0;       // on record
  double samples_per_second = 0;  // of the rounds on record
  double transfer_seconds = 0;    // of a round, on average
  std::string error{};            // not empty: why nothing was fitted
};

// Fits the job's history. Requires: a valid specification in the job.
FittedJob FitJob(const v1::Job& job, const v1::ListRoundsResponse& history);

// Changes the cluster; `job` says who worker-N and rank-N are. Returns what is wrong, or nothing;
// then the cluster has a device left.
std::string Change(const WhatIfChanges& changes, const v1::Job& job,
                   simulator::ClusterModel* cluster);

}  // namespace tactus::client
