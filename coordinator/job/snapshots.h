// The snapshots of a job that are at the coordinator, of all of its groups.

#pragma once

#include <string>
#include <vector>

#include "coordinator/job/records.h"

namespace tactus::job {

inline bool IsSnapshot(const ArtifactRecord& artifact) {
  return artifact.path.starts_with(protocol::kSnapshotFolder);
}

// In the order in which they came, those last, by their seconds, that came while their group was
// there: of a name the newest, and of more than protocol::kSnapshotsMax the last.
std::vector<ArtifactRecord> SnapshotsOf(const JobRecord& record);

// One that came when its group was gone, or left; for the newest group's see EndingRecord.
void KeepSnapshot(JobRecord& record, const ArtifactRecord& snapshot);

// Whether a file is of use: of the present group's workers each, of a former group's a snapshot,
// for as long as the record knows the group. worker: 0 where its agent did not say.
bool MayBring(const JobRecord& record, WorkerId worker, const ArtifactRecord& artifact);

// Where the worker runs, or ran, that made a file of the job's: rank 0 of the present group, of a
// snapshot also that of a former one. Worker 0, of an agent that does not say whose file it is,
// stands for the present rank 0. Empty: nobody is or was that.
std::string MakerNode(const JobRecord& record, WorkerId worker, const ArtifactRecord& artifact);

}  // namespace tactus::job
