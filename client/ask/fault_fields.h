// The key `faults` of a cluster file: what goes wrong, and when.

#pragma once

#include <string>

#include "client/yaml/yaml_fields.h"
#include "simulator/cluster_model.h"

namespace tactus::client {

// How a partition names the coordinator among hosts.
inline constexpr const char* kCoordinatorName = "coordinator";

// Reads the faults of `cluster`, whose hosts are complete.
void ReadFaults(YamlFields& file, simulator::ClusterModel* cluster);

// One fault as an item of that list.
std::string WriteFault(const simulator::Fault& fault);

}  // namespace tactus::client
