// What options a daemon runs with, and where each of them came from.

#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tactus::runtime {

// One option in force.
struct ConfigEntry {
  std::string name = {};    // "state-dir"
  std::string value = {};   // as in a configuration file
  std::string source = {};  // "flag", "environment", "file FILE" or "default"
  friend bool operator==(const ConfigEntry&, const ConfigEntry&) = default;
};

// The options of `app` that take part in its configuration, in the order of their declaration,
// after it parsed the command line `arguments` (without the program's name). Options without a long
// name, help, version and the configuration file's own are left out.
std::vector<ConfigEntry> ConfigInForce(const CLI::App& app,
                                       const std::vector<std::string>& arguments);

// `name = value  # source`, a line each, with the columns aligned: a configuration file that says
// the same. An option without a value is a comment in it, since no value stands for none.
std::string FormatConfig(const std::vector<ConfigEntry>& entries);

}  // namespace tactus::runtime
