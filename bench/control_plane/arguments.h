// The load generator's command line and its lines of output, for bench/control-plane.

#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tactus::bench {

// `--name value` pairs behind the mode.
class Arguments {
 public:
  // Ends the process with a usage line when a word is not a flag or lacks its value.
  Arguments(int argc, char** argv);

  std::string Text(const std::string& name, const std::string& standard = "") const;
  std::uint64_t Number(const std::string& name, std::uint64_t standard) const;

 private:
  std::map<std::string, std::string> values_;
};

// Prints one line, {"phase": name, values...}, at once: the script measures the coordinator then.
void Say(const std::string& phase, const std::map<std::string, double>& values = {});

// [s] of the monotonic clock.
double Now();

}  // namespace tactus::bench
