// The options that every daemon has beside its own.

#pragma once

#include <string>

#include "runtime/logging.h"

namespace CLI {
class App;
}

namespace tactus::runtime {

struct DaemonFlags {
  LoggingOptions logging = {};
  bool parent_death_signal = false;  // for EndWithParent
};

// Declares --config, the flags above and the subcommand `config show`. `flags` outlives the
// parsing.
void DeclareDaemonFlags(CLI::App& app, DaemonFlags& flags);

// What is wrong with an option's value, "log-level: found ...", with where the value came from
// where nobody sees that on the command line. `app` has parsed `argv`.
std::string WithSource(const CLI::App& app, int argc, char** argv, const std::string& message);

// Prints what `config show` asks for: the options in force. `app` has parsed `argv`.
void ShowConfig(const CLI::App& app, int argc, char** argv);

}  // namespace tactus::runtime
