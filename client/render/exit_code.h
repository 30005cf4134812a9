// How `tactus` ends, for scripts.

#pragma once

#include <string>

#include "absl/status/status.h"

namespace tactus::client {

enum class ExitCode {
  kOk = 0,
  kGeneric = 1,  // also: a replay differs
  kUsage = 2,    // the command line, the job file or the tape is wrong
  kNotFound = 3,
  kConflict = 4,  // it exists already, or its state does not allow that
  kDenied = 5,
  kUnavailable = 6,  // no coordinator answers
  kTimedOut = 7,
  kJobFailed = 8,      // the job that was waited for, or simulated, failed or was cancelled
  kPromiseBroken = 9,  // a checker of a simulation found a promise broken
  kInterrupted = 130,
};

ExitCode ExitCodeOf(const absl::Status& status);

// The codes and their meaning, for --help.
std::string ExitCodesHelp();

}  // namespace tactus::client
