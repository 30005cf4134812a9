// From the words of a command line to the verb that they give.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/local/settings.h"
#include "client/verbs/verb.h"

namespace tactus::client {

// A command line that was understood, or what to print instead.
struct ParsedCommandLine {
  std::unique_ptr<Verb> verb{};  // checked; null: the words give none
  GivenSettings flags{};         // --server and so on
  std::string help{};            // for standard output, exit code 0
  std::string error{};           // for standard error, exit code 2
  std::string job{};             // the one that the words are about; empty: none, or several
};

// `words` without the program's name. Pure.
ParsedCommandLine ParseCommandLine(const std::vector<std::string>& words);

}  // namespace tactus::client
