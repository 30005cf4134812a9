// The tape of a simulated coordinator, as a real one keeps it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "coordinator/tape/tape_writer.h"
#include "simulator/simulation.h"

namespace tactus::client {

// Writes what a scenario's coordinator does to files that `tactus replay` takes: the first life of
// the process to `path`, later ones to "PATH.2", "PATH.3" ..., each of bytes_max at most. One
// simulation.
class SimulatedTape {
 public:
  explicit SimulatedTape(const std::string& path,
                         std::uint64_t bytes_max = tape::TapeWriter::kBytesDefault)
      : path_(path), bytes_max_(bytes_max) {}
  SimulatedTape(const SimulatedTape&) = delete;  // a scenario may hold its address
  SimulatedTape& operator=(const SimulatedTape&) = delete;

  // Records what `scenario` does, which is to run while this object lives.
  void Attach(simulator::Scenario* scenario);

  // Ends the files, and removes the tapes that more lives of an earlier simulation left beside
  // them. Returns the first error there was, beginning with the path.
  absl::Status Close();

  // A life did more than its file holds. Known after Close.
  bool full() const { return full_; }

 private:
  void Begin(tape::Start start);
  void EndLife();
  // "PATH" of the first life, "PATH.2" of the second.
  std::string PathOf(std::size_t life) const;
  void Keep(const absl::Status& status);

  const std::string path_;
  const std::uint64_t bytes_max_;
  std::vector<tape::TapeWriter> lives_;  // all but the last are closed
  absl::Status status_;                  // the first error
  bool full_ = false;
};

}  // namespace tactus::client
