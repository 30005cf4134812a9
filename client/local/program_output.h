// What the programs of a run write, as it comes.

#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tactus::client {

// Reads the logs of an agent on this machine. One thread.
class ProgramOutput {
 public:
  // agent_folder: its state folder, which need not be there yet.
  explicit ProgramOutput(std::string agent_folder) : folder_(std::move(agent_folder)) {}

  // Whole lines since the last call, each behind the number of its worker: "worker 3 | epoch 1\n".
  // Of what was written over, as a progress bar does, the last state. `all`: what is no whole line
  // yet, too, as nothing will come any more.
  std::string TakeLines(bool all = false);

 private:
  struct Log {
    std::uint64_t read = 0;  // bytes
    std::string rest{};      // of a line
  };

  const std::string folder_;
  std::map<std::string, Log> logs_;  // by path
};

}  // namespace tactus::client
