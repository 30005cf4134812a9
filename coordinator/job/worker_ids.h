// Which ids a job's workers have.
//
// They are the job's own numbers, because a restarted coordinator knows only unfinished jobs, while
// the last workers of a finished one may still run on a node that is not back. Ids for people
// first: job 3 has 2001 to 3000, and wide ones beyond; 2^24 workers a job and 2^30 jobs are room
// enough.

#pragma once

#include <cstdint>

#include "base/id.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// The job's worker number `ordinal`, from 0 on; of two jobs never the same.
WorkerId WorkerOf(JobId job, std::uint64_t ordinal);

// The first ordinal above those of the workers that are on the job's record.
std::uint64_t NextOrdinal(const JobRecord& record);

}  // namespace tactus::job
