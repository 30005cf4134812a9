// How `tactus` ends, for scripts.

#pragma once

#include <string>

#include "absl/status/status.h"

namespace tactus::client {

enum class ExitCode {
  kOk = 0,
  kGeneric = 1,
  kUsage = 2,  // the command line or the job file is wrong
  kNotFound = 3,
  kConflict = 4,  // it exists already, or its state does not allow that
  kDenied = 5,
  kUnavailable = 6,  // no coordinator answers
  kTimedOut = 7,
  kJobFailed = 8,  // the job that was waited for failed or was cancelled
  kInterrupted = 130,
};

ExitCode ExitCodeOf(const absl::Status& status);

// The codes and their meaning, for --help.
std::string ExitCodesHelp();

}  // namespace tactus::client
