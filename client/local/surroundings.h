// What main found around the process, so that nothing below it asks.

#pragma once

#include <string>

#include "client/local/settings.h"
#include "runtime/options.h"

namespace tactus::client {

struct Surroundings {
  GivenSettings settings{};    // TACTUS_SERVER and so on; empty: not set
  bool no_color = false;       // NO_COLOR is set and not empty
  bool dumb_terminal = false;  // TERM says so
  runtime::UserFolders folders{};
  std::string binary_folder{};  // where this program is
};

}  // namespace tactus::client
