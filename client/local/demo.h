// `tactus demo`: a first job on a machine that has nothing but the programs.

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/local/surroundings.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"

namespace tactus::client {

struct DemoCommand {
  std::uint32_t seconds = 15;   // of training, for each of the two
  std::string output_folder{};  // for job file, text and results; empty: they go at the end
};

// What the demo trains on: all sums of two numbers below 100 in words, a line each, some 400 kB.
// Always the same, and written in place of a text that a machine may not have.
std::string DemoText();

// What two runs of the same length came to, side by side, from their summary.json. Errors:
// InvalidArgument, a summary is no JSON or lacks a number.
absl::StatusOr<std::string> CompareSummaries(const std::string& equal, const std::string& by_speed);

// Trains a small model on four workers of unequal emulated speed twice, with equal batches and with
// batches by speed, each by a `tactus run` of its own, which is shown. Blocks until nothing of them
// runs any more. A signal ends the run that goes on, as it ends `tactus run`, and the demo with it.
ExitCode Demo(const DemoCommand& command, const Surroundings& surroundings, const Screen& screen);

}  // namespace tactus::client
