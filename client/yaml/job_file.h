// A job file on this machine as the JobSpec that is submitted.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/yaml/yaml_file.h"
#include "tactus/v1/spec.pb.h"

namespace tactus::client {

// A job file that was read, or what is wrong with it.
struct JobFile {
  v1::JobSpec spec{};
  // One line a mistake, without the file's name: "stop.epochs: 'many' is not a whole number (line
  // 9)". Not empty: `spec` is not to be used.
  std::vector<std::string> errors{};
};

// Reads the text of a job file. Relative paths of models and data are made relative to `folder`,
// so that they are absolute when it is. Ranges, missing and contradictory fields are the server's
// to judge.
JobFile ParseJobFile(std::string_view text, const std::vector<Override>& overrides,
                     const std::string& folder);

// What ParseJobFile is to be given of a file, of at most 1 MiB, or why there is none.
struct JobText {
  std::string text{};
  std::string folder{};  // its own, absolute
  std::string error{};
};

// "-" is the standard input, in the working folder, and is read to its end.
JobText ReadJobText(const std::string& path);

// Both.
JobFile ReadJobFile(const std::string& path, const std::vector<Override>& overrides);

}  // namespace tactus::client
