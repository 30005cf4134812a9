// The tape of a simulated coordinator, as a real one keeps it.

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/tape/tape_writer.h"
#include "simulator/simulation.h"

namespace tactus::client {

// Writes what a scenario's coordinator does to files that `tactus replay` takes: the first life of
// the process to `path`, later ones to "PATH.2", "PATH.3" ... One simulation.
class SimulatedTape {
 public:
  explicit SimulatedTape(const std::string& path) : path_(path) {}
  SimulatedTape(const SimulatedTape&) = delete;  // a scenario may hold its address
  SimulatedTape& operator=(const SimulatedTape&) = delete;

  // Records what `scenario` does, which is to run while this object lives.
  void Attach(simulator::Scenario* scenario);

  // Ends the files. Returns the first error there was, beginning with the path.
  absl::Status Close();

 private:
  void Begin(tape::Start start);
  void Keep(const absl::Status& status);

  const std::string path_;
  std::vector<tape::TapeWriter> lives_;  // all but the last are closed
  absl::Status status_;                  // the first error
};

}  // namespace tactus::client
