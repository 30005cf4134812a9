// A cluster as the text of a cluster file.

#pragma once

#include <string>

#include "client/ask/simulated_work.h"
#include "simulator/cluster_model.h"

namespace tactus::client {

// The text that ParseClusterFile reads back as the same: durations to a nanosecond, the times of
// samples to the last digit but one, all else exactly. Requires: what a cluster file may say.
std::string WriteClusterFile(const simulator::ClusterModel& model, const SimulatedWork& work);

}  // namespace tactus::client
