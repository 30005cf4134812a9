// The words of the whole program: its own options, and all verbs.

#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "client/local/settings.h"
#include "client/verbs/verb.h"

namespace tactus::client {

// For one use: parse once, or read the declarations.
struct Program {
  GivenSettings flags{};  // --server and so on
  std::vector<std::unique_ptr<Verb>> verbs{};
  CLI::App app;  // fills the above

  Program();
};

}  // namespace tactus::client
