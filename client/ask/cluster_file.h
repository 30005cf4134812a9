// A cluster file: the cluster that is simulated, and what stands for a job's model and data.
// proto/tactus/sim/v1/cluster.proto is its schema, examples/cluster.yaml an example.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/ask/simulated_work.h"
#include "simulator/cluster_model.h"

namespace tactus::client {

// Devices of a cluster, so that a count in a short file cannot take all memory.
inline constexpr std::size_t kSimulatedDevicesMax = 1u << 16;

struct ClusterFile {
  simulator::ClusterModel cluster{};
  SimulatedWork work{};
  // One line a mistake, without the file's name: "hosts[1].count: found 0, allowed is 1 to 65536
  // (line 7)". What does not fit together is only said when all numbers are in their ranges. Not
  // empty: the rest is not to be used.
  std::vector<std::string> errors{};
};

// Reads the text of a cluster file. Paths are made relative to `folder`. `loss`, when not empty,
// stands in for the file's key of that name; YAML.
ClusterFile ParseClusterFile(std::string_view text, const std::string& loss,
                             const std::string& folder);

// The same for a file of at most 1 MiB; "-" is the standard input, relative to the working folder.
ClusterFile ReadClusterFile(const std::string& path, const std::string& loss);

}  // namespace tactus::client
