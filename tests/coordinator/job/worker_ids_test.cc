#include "coordinator/job/worker_ids.h"

#include <gtest/gtest.h>

namespace tactus::job {
namespace {

TEST(WorkerIdsTest, AThousandIdsOfAJobAreShortAndTheOthersAreWide) {
  EXPECT_EQ(WorkerOf(JobId{3}, 0).value, 2001u);
  EXPECT_EQ(WorkerOf(JobId{3}, 999).value, 3000u);
  EXPECT_GT(WorkerOf(JobId{3}, 1000).value, std::uint64_t{1} << 40);
  EXPECT_LT(WorkerOf(JobId{3}, (1u << 24) - 1).value, WorkerOf(JobId{4}, 1000).value);
}

TEST(WorkerIdsTest, TheNextOrdinalIsAboveAllOnRecord) {
  JobRecord record{.id = JobId{3}};
  EXPECT_EQ(NextOrdinal(record), 0u);

  record.members = {{.worker = WorkerOf(JobId{3}, 7)}, {.worker = WorkerOf(JobId{3}, 2)}};
  EXPECT_EQ(NextOrdinal(record), 8u);

  record.members.push_back({.worker = WorkerOf(JobId{3}, 5000)});
  EXPECT_EQ(NextOrdinal(record), 5001u);
}

}  // namespace
}  // namespace tactus::job
