// A job's rounds on record as a trace of client/observe/trace_events.h. Pure.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

struct JobTrace {
  std::string text{};
  std::vector<std::string> remarks{};  // what is not in it, for a person
};

// A process a node, a thread a worker, beside them the job itself:
//
//   spans      "round 7" of each worker, and within it
//                optimizer  applying the update that was due: that of the round before, or when
//                           delayed of the one before that
//                compute    forward and backward; with what was between the batches
//                wait       for the members that were later, or blocked in a delayed round
//                transfer   what even the last member waited; a delayed round's transfer lies on a
//                           track of its own below the next round
//   instants   decisions, with from, to, the gains and the reason; "plan 3" from its first round
//              on; rounds that are not on record, with how many decisions fell into them: those
//              lie where the rounds would
//   counters   loss; samples of a step; samples of each worker in the round
//
// beside which distributedInfo says size and backend of the newest group.
//
// One axis for all nodes: training time since the begin of the first round shown. A round that
// waits for its collective ends for all members at the same moment, so each worker's spans are laid
// backwards from there by durations that its own clock measured. No clock of one node is ever
// compared with another's, and none has to be corrected.
//
// A delayed round ends for each member with a step of its own, once all are ready for the next:
// what is drawn as one end lies apart there by up to a step. Where a worker's durations are longer
// than the round, which is the mean of what the members measured, all are shortened alike, and
// measured_seconds says how long each was. Between two groups no time passes on this axis.
//
// Rounds: oldest first, each once, at most kTraceRoundsMax, and with at most kTraceWorkerRoundsMax
// workers' parts in all of them together, which are some 700 MB of text. A hole between two is as
// wide as if the missing rounds had had their mean length.
inline constexpr int kTraceRoundsMax = 10'000;
inline constexpr std::uint64_t kTraceWorkerRoundsMax = 1'000'000;
JobTrace TraceJob(const v1::Job& job, const v1::ListRoundsResponse& rounds,
                  const v1::ListDecisionsResponse& decisions);

}  // namespace tactus::client
