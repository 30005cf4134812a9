// The coordinator's events in words, one line each.

#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"

namespace tactus::telemetry {

// The name of a job that is not over; "-" of one that is.
using NameOfJob = std::function<std::string(JobId id)>;

// An event with the instant at which the core gets it: nodes that come and jobs that are asked for
// as info, what is lost as warn, messages of workers as debug.
void LogEvent(const job::Event& event, Instant now, const NameOfJob& name_of);

// A job changed its state or the reason for it.
void LogChange(const job::JobRecord& record, const char* state);

// A job's attempt was lost, and it is tried again. Requires: attempts are on record.
void LogLostAttempt(const job::JobRecord& record);

// A job lost members, or a connection between them, and the others form its next group.
void LogRegroup(const job::JobRecord& record);

// Members of a job that held wrong parameters.
void LogDifference(const job::JobRecord& record);
void LogSelection(const job::JobRecord& record);

// Workers joined a job's group, or left it, without a stop.
void LogResize(const job::JobRecord& record);

// A job's planner learns anew.
void LogRelearning(const job::PublishRelearning& relearning, const NameOfJob& name_of);

// The first round of a job without an update; the others are counted.
void LogSkipped(JobId id, const policies::Report& report, const NameOfJob& name_of);

// The first passes of a job that were repeated, and its first rounds that are not on record.
void LogRepeated(const std::string& job, std::uint64_t passes);
void LogUnrecorded(const std::string& job, std::uint64_t rounds);

// A plan was decided.
void LogDecision(const job::PublishDecision& decision, const NameOfJob& name_of);

}  // namespace tactus::telemetry
