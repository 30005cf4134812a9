// Manual pages from the words of the command line.

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/command_tree.h"

namespace tactus::client {

struct ManPage {
  std::string file{};  // "tactus-get.1"
  std::string text{};  // for groff's man macros
};

// tactus.1 and one page for each verb, with its nouns. Pure: equal words give equal pages.
std::vector<ManPage> ManPages(const VerbWords& program);

// Writes them below `folder`, which is made. Returns the paths. Errors: of the file system.
absl::StatusOr<std::vector<std::string>> WriteManPages(const VerbWords& program,
                                                       const std::string& folder);

}  // namespace tactus::client
