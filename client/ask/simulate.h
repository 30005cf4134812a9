// `tactus simulate`: how a job would run on a cluster that is described, drawn, or fitted to a job.

#pragma once

#include "client/api/client.h"
#include "client/ask/simulate_command.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"

namespace tactus::client {

// Simulates and prints. Equal files and seeds give equal bytes.
//
// Files that it will write are made before it simulates.
//
// kOk: the job succeeded and no promise was broken. kUsage: a file or option is wrong.
// kPromiseBroken: a checker found a violation, which is said with the command that repeats it.
// kJobFailed: the simulated job failed, unless it was drawn at random. kFile: a file cannot be
// written. Of several seeds: the first of these that fits any.
ExitCode Simulate(const SimulateCommand& command, const Screen& screen);

// The same from a job's history at a coordinator (command.from). Also the codes of its calls.
ExitCode SimulateHistory(const SimulateCommand& command, api::Client& client, const Screen& screen);

}  // namespace tactus::client
