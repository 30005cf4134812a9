// What a user asks of `tactus simulate`.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/render/tables.h"
#include "client/yaml/job_file.h"

namespace tactus::client {

struct SimulateCommand {
  // One of three: two files, a job's name, or a random scenario.
  std::string cluster_file{};
  std::string job_file{};
  std::string from{};
  bool random = false;
  // Changes to the cluster that is fitted to `from`, as client/ask/what_if.h has them.
  std::vector<std::string> add{};
  std::vector<std::string> remove{};
  std::string rate{};
  std::string cluster_output{};         // file for that cluster; empty: none
  std::vector<Override> overrides{};    // of the job file
  std::string loss{};                   // YAML for the cluster file's `loss`; empty: not given
  std::optional<double> target_loss{};  // whose time is reported; else the job's stop.train_loss
  // The loss on validation samples is reported so much training apart; nothing: at the end alone.
  std::optional<Duration> validate_every{};
  std::uint64_t seed = 1;   // of the first simulation
  std::uint32_t count = 1;  // simulations, one a seed
  OutputFormat output = OutputFormat::kTable;
  // Files to write, of one seed; empty: none.
  std::string curve_file{};
  std::string trace_file{};
  std::string tape_file{};
};

// What is simulated comes from one source, and no file is read or written for two things.
std::string CheckSimulate(const SimulateCommand& command);

}  // namespace tactus::client
