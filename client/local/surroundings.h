// What main found around the process, so that nothing below it asks.

#pragma once

#include <string>

#include "client/local/settings.h"
#include "coordinator/bucket/bucket_options.h"
#include "runtime/options.h"

namespace tactus::client {

struct Surroundings {
  GivenSettings settings{};    // TACTUS_SERVER and so on; empty: not set
  bucket::Keys bucket_keys{};  // AWS_ACCESS_KEY_ID and so on
  bool no_color = false;       // NO_COLOR is set and not empty
  bool dumb_terminal = false;  // TERM says so
  runtime::UserFolders folders{};
  std::string binary_folder{};  // where this program is
};

}  // namespace tactus::client
