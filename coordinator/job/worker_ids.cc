#include "coordinator/job/worker_ids.h"

#include <algorithm>
#include <vector>

namespace tactus::job {
namespace {

constexpr std::uint64_t kShortIds = 1000;
constexpr std::uint64_t kWideIds = std::uint64_t{1} << 40;
constexpr int kWideShift = 24;

// The inverse of WorkerOf.
std::uint64_t OrdinalOf(JobId job, WorkerId worker) {
  if (worker.value < kWideIds) return worker.value - (job.value - 1) * kShortIds - 1;
  return worker.value - kWideIds - (job.value << kWideShift);
}

}  // namespace

WorkerId WorkerOf(JobId job, std::uint64_t ordinal) {
  if (ordinal < kShortIds) return {(job.value - 1) * kShortIds + ordinal + 1};
  return {kWideIds + (job.value << kWideShift) + ordinal};
}

std::uint64_t NextOrdinal(const JobRecord& record) {
  std::uint64_t next = record.worker_ordinals;
  for (const std::vector<MemberRecord>* list : {&record.members, &record.joiners}) {
    for (const MemberRecord& member : *list) {
      next = std::max(next, OrdinalOf(record.id, member.worker) + 1);
    }
  }
  return next;
}

}  // namespace tactus::job
