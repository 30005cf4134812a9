#include "coordinator/job/snapshots.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

namespace tactus::job {
namespace {

// By the seconds in their names: a longer one has more digits before the point.
bool Earlier(const ArtifactRecord& a, const ArtifactRecord& b) {
  return std::pair(a.path.size(), std::string_view(a.path)) <
         std::pair(b.path.size(), std::string_view(b.path));
}

void Cut(std::vector<ArtifactRecord>& snapshots) {
  if (snapshots.size() <= protocol::kSnapshotsMax) return;
  snapshots.erase(snapshots.begin(), snapshots.end() - protocol::kSnapshotsMax);
}

bool IsAmong(const std::vector<MemberRecord>& members, WorkerId worker) {
  return std::ranges::find(members, worker, &MemberRecord::worker) != members.end();
}

}  // namespace

std::vector<ArtifactRecord> SnapshotsOf(const JobRecord& record) {
  std::vector<ArtifactRecord> newest;
  std::ranges::copy_if(record.ending.artifacts, std::back_inserter(newest), IsSnapshot);
  std::ranges::sort(newest, Earlier);
  std::set<std::string_view> named;
  for (const ArtifactRecord& snapshot : newest) named.insert(snapshot.path);
  std::vector<ArtifactRecord> all;
  std::ranges::copy_if(record.snapshots, std::back_inserter(all),
                       [&](const ArtifactRecord& one) { return !named.contains(one.path); });
  all.insert(all.end(), newest.begin(), newest.end());
  Cut(all);
  return all;
}

void KeepSnapshot(JobRecord& record, const ArtifactRecord& snapshot) {
  std::erase_if(record.snapshots,
                [&](const ArtifactRecord& former) { return former.path == snapshot.path; });
  record.snapshots.push_back(snapshot);
  Cut(record.snapshots);
}

bool MayBring(const JobRecord& record, WorkerId worker, const ArtifactRecord& artifact) {
  if (worker == WorkerId{} || IsAmong(record.members, worker)) return true;
  return IsSnapshot(artifact) &&
         std::ranges::any_of(record.groups, [worker](const GroupRecord& group) {
           return IsAmong(group.members, worker);
         });
}

std::string MakerNode(const JobRecord& record, WorkerId worker, const ArtifactRecord& artifact) {
  if (!record.members.empty()) {
    const MemberRecord& leader = record.members.front();
    if (worker == WorkerId{} || worker == leader.worker) return leader.node;
  }
  if (worker == WorkerId{} || !IsSnapshot(artifact)) return "";
  for (const GroupRecord& group : record.groups) {
    if (!group.members.empty() && group.members.front().worker == worker) {
      return group.members.front().node;
    }
  }
  return "";
}

}  // namespace tactus::job
