// The job specification in its JSON form, as a worker reads it.

#pragma once

#include "agent/worker/job.h"
#include "agent/worker/proto_json.h"

namespace tactus::worker {

// Reads a resolved tactus.v1.JobSpec: workers have no defaults, so what is absent is wrong. That is
// left in the reader's error.
WorkerJob ParseJob(const FieldReader& spec);

}  // namespace tactus::worker
