// What stands for a job's model and data in a simulation: costs, and how the loss falls.

#pragma once

#include <string>
#include <vector>

#include "coordinator/spec/field_checks.h"
#include "simulator/power_law.h"
#include "tactus/sim/v1/cluster.pb.h"

namespace tactus::client {

// The keys `model` and `loss` of a cluster file in which nothing is left open: `parameters` alone
// may be absent, which stands for those of the loss model, and a perceptron's data, which stands
// for the job's.
struct SimulatedWork {
  sim::v1::Model model{};
  sim::v1::Loss loss{};
  std::vector<simulator::LossPoint> points{};  // not empty: what a curve has instead of its file
};

// Those keys of a cluster file whose defaults are filled in; `folder` is where its paths begin.
SimulatedWork ReadWork(const sim::v1::Cluster& cluster, const std::string& folder,
                       spec::FieldChecks& checks);

}  // namespace tactus::client
