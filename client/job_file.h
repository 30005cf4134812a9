// A job file on this machine as the JobSpec that is submitted.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tactus/v1/spec.pb.h"

namespace tactus::client {

// `--set adapt.batch.policy=fixed`: replaces one value of the file.
struct Override {
  std::string path{};
  std::string value{};  // YAML
};

// Splits "path=value". False when there is no "=" or no path.
bool ParseOverride(const std::string& text, Override* parsed);

// A job file that was read, or what is wrong with it.
struct JobFile {
  v1::JobSpec spec{};
  // One line a mistake, without the file's name: "stop.epochs: 'many' is not a whole number (line
  // 9)". Not empty: `spec` is not to be used.
  std::vector<std::string> errors{};
};

// Reads the text of a job file. Paths of models and data are made absolute: relative ones are
// relative to `folder`, an absolute path. Ranges, missing and contradictory fields are the server's
// to judge.
JobFile ParseJobFile(std::string_view text, const std::vector<Override>& overrides,
                     const std::string& folder);

// The same for a file, of at most 1 MiB, relative to its own folder; "-" is the standard input,
// relative to the working folder.
JobFile ReadJobFile(const std::string& path, const std::vector<Override>& overrides);

}  // namespace tactus::client
