// What `tactus simulate` is asked: from files, from a job's history, or drawn from a seed.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/api/client.h"
#include "client/ask/simulate_command.h"
#include "client/ask/simulation_report.h"
#include "client/render/exit_code.h"
#include "simulator/simulation.h"

namespace tactus::client {

// All that was said, checked; ready to be simulated under any seed.
struct SimulatedQuestion {
  std::function<simulator::Scenario(std::uint64_t seed)> scenario{};
  std::optional<double> target_loss{};  // whose time is wanted
  std::optional<FitSummary> fit{};      // of a history
};

// A question, or the lines that say why there is none and how the program ends.
struct AskedQuestion {
  std::optional<SimulatedQuestion> question{};
  std::vector<std::string> errors{};
  ExitCode exit_code = ExitCode::kUsage;
};

// From the cluster file and the job file, or, with command.random, from the seed alone.
AskedQuestion AskFiles(const SimulateCommand& command);

// From the history of the job command.from, which `client` asks for. With command.add or
// command.remove the job takes all devices that there are then, unless command.overrides say how
// many. Simulates the job as it was, to say how well its model fits, and writes
// command.cluster_output.
AskedQuestion AskHistory(const SimulateCommand& command, api::Client& client);

}  // namespace tactus::client
