// From the words of a command line to a command.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/verbs/command_line.h"

namespace tactus::client {

// A command line that was understood, or what to print instead.
struct ParsedCommandLine {
  std::optional<CommandLine> line;
  std::string help{};   // for standard output, exit code 0
  std::string error{};  // for standard error, exit code 2
};

// `words` without the program's name. Pure.
ParsedCommandLine ParseCommandLine(const std::vector<std::string>& words);

}  // namespace tactus::client
