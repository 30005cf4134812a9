// A simulation as a trace of client/observe/trace_events.h.

#pragma once

#include <string>

#include "simulator/outcome.h"

namespace tactus::client {

// One JSON object {"traceEvents": [...]}: a process a host, a thread a worker, with
//
//   complete events (X)  load, compute, wait, transfer, pause; args: round, a compute's samples
//
//   instant events (i)   "plan 3": the worker adopts it; args: round, and of the first worker that
//                        does batch and reason
//
//   counter events (C)   the first job's smoothed loss, as a process of its own
//
// Times are microseconds since the simulation's start; events stand in no particular order.
std::string ChromeTrace(const simulator::Outcome& outcome);

}  // namespace tactus::client
