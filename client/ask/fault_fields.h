// The key `faults` of a cluster file: what goes wrong, and when.

#pragma once

#include "coordinator/spec/field_checks.h"
#include "simulator/cluster_model.h"
#include "tactus/sim/v1/cluster.pb.h"

namespace tactus::client {

// How a partition names the coordinator among hosts.
inline constexpr const char* kCoordinatorName = "coordinator";

// Adds the faults of `cluster` to `model`, whose hosts are complete.
void ReadFaults(const sim::v1::Cluster& cluster, simulator::ClusterModel* model,
                spec::FieldChecks& checks);

void WriteFault(const simulator::Fault& model, sim::v1::Fault* fault);

}  // namespace tactus::client
