// A job's attempts: what was tried, what came of it, and whether and when it is tried again.
//
// An attempt lasts from the start of the job's workers until something goes wrong with them;
// suspensions lie within it, as they lose nothing. What is lost goes on from the last checkpoint,
// or from the beginning, after a rest. Pure functions over the job's record.

#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// The rest before a retry.
//
//   min(kRestFirst * 2^(fruitless - 1), kRestMost)
//
// fruitless  [1]  attempts that were lost in a row since the checkpoint last moved, >= 1
//
// The first rest is for what passes by itself, a node that restarts or a process that the kernel
// killed; later ones for what takes people. No jitter: jobs that were lost together find devices
// one by one in the queue's order anyway. Source: design.
inline constexpr Duration kRestFirst = std::chrono::seconds(5);
inline constexpr Duration kRestMost = std::chrono::minutes(5);
Duration BackOff(std::uint32_t fruitless);

// The job's workers are started: a new attempt, or, after a suspension, the present one with
// others. Requires: `members` of the record are theirs.
void BeginAttempt(JobRecord& record, WallTime now);

// The present attempt, if there is one, is over.
void EndAttempt(JobRecord& record, const std::string& reason, WallTime now);

// The present attempt is lost. True where another one is due: at most settings.retries in a row
// that begin at the same checkpoint. Only what is durable counts as progress: rounds that are lost
// with their workers were for nothing, however many there were, and a job that always dies before
// its next checkpoint would otherwise be tried for ever. As checkpoints only move on and a job has
// an end, so do its attempts.
bool CountLoss(JobRecord& record);

// How long a group of so many workers lasts on average, by the attempts that are on record:
// policies::MeanBetweenLosses. Pauses and queues are no training, an attempt that never closed a
// round lost none, and the present one's time speaks for the group. [s]
double LossSeconds(const JobRecord& record, std::uint32_t workers);

// What the job has of its progress without its workers: that of its checkpoint, or none. Plan and
// workers stay, for people.
void GoBackToCheckpoint(JobRecord& record);

// Attempts after which the job was, or is to be, tried again.
std::uint32_t LostAttempts(const JobRecord& record);

// "from round 120", "from the beginning".
std::string WhereFrom(const JobRecord& record);

// Why a job rests: "goes on from round 120 in 10 seconds (retry 2 of 3): REASON".
std::string RestWords(const JobRecord& record, const std::string& reason);

// Why it is not tried again: "REASON; given up after 4 attempts from round 120". The reason alone
// where there was but one.
std::string GivenUpWords(const JobRecord& record, const std::string& reason);

}  // namespace tactus::job
