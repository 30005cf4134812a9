// How `tactus` ends, for scripts.

#pragma once

#include <string>

#include "absl/status/status.h"

namespace tactus::client {

enum class ExitCode {
  kOk = 0,
  kGeneric = 1,  // also: a replay differs
  kUsage = 2,    // the command line, or a file that is read here, is wrong or not there
  kNotFound = 3,
  kConflict = 4,  // it exists already, or its state does not allow that
  kDenied = 5,
  kUnavailable = 6,  // no coordinator answers
  kTimedOut = 7,
  kJobFailed = 8,      // the job that was waited for, or simulated, failed or was cancelled
  kPromiseBroken = 9,  // a checker of a simulation found a promise broken
  kFile = 10,          // a file, or standard output, could not be written here
  kInterrupted = 130,
};

ExitCode ExitCodeOf(const absl::Status& status);

// An error of a file that could not be written on this machine, marked as that: its code is kFile
// and not that of a call that says the same of something at the coordinator. Ok stays ok.
absl::Status OfLocalFile(absl::Status status);
bool IsOfLocalFile(const absl::Status& status);

// The codes and their meaning, for --help.
std::string ExitCodesHelp();

}  // namespace tactus::client
