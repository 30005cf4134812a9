#include "coordinator/job/waiting_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "coordinator/job/schedule.h"

namespace tactus::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

JobSettings Wants(std::uint32_t workers, std::int32_t priority = 0) {
  return {.workers_min = workers, .priority = priority};
}

bool Any(JobId) { return true; }

TEST(WaitingLineTest, StandsByPriorityThenById) {
  WaitingLine line;
  line.Put(JobId{2}, Wants(1));
  line.Put(JobId{3}, Wants(4, 5));
  line.Put(JobId{1}, Wants(2));
  line.Put(JobId{4}, Wants(1, -1));

  EXPECT_EQ(line.First(), JobId{3});
  EXPECT_THAT(line.Front(10), ElementsAre(JobId{3}, JobId{1}, JobId{2}, JobId{4}));
  EXPECT_THAT(line.Front(10, Any), ElementsAre(JobId{3}, JobId{1}, JobId{2}, JobId{4}));
  EXPECT_THAT(line.Front(2), ElementsAre(JobId{3}, JobId{1}));
  EXPECT_THAT(line.Front(2, Any), ElementsAre(JobId{3}, JobId{1}));
}

TEST(WaitingLineTest, AJobThatIsPutAgainMoves) {
  WaitingLine line;
  line.Put(JobId{1}, Wants(1));
  line.Put(JobId{2}, Wants(1));
  line.Put(JobId{1}, Wants(3, -1));

  EXPECT_EQ(line.size(), 2u);
  EXPECT_THAT(line.Front(10), ElementsAre(JobId{2}, JobId{1}));
  EXPECT_EQ(line.FirstAlike(JobId{1}), JobId{1});
}

TEST(WaitingLineTest, NothingIsLeftOfAJobThatIsRemoved) {
  WaitingLine line;
  line.Put(JobId{1}, Wants(1));
  line.Remove(JobId{1});
  line.Remove(JobId{1});

  EXPECT_TRUE(line.empty());
  EXPECT_EQ(line.First(), std::nullopt);
  EXPECT_THAT(line.Front(10, Any), IsEmpty());
}

TEST(WaitingLineTest, ANeedIsAskedAboutOnceHoweverManyHaveIt) {
  WaitingLine line;
  for (std::uint64_t id = 1; id <= 1000; ++id) line.Put(JobId{id}, Wants(id % 2 == 0 ? 8 : 1));
  std::vector<JobId> asked;

  const std::vector<JobId> front = line.Front(3, [&](JobId first) {
    asked.push_back(first);
    return first == JobId{2};
  });

  EXPECT_THAT(front, ElementsAre(JobId{2}, JobId{4}, JobId{6}));
  EXPECT_THAT(asked, ElementsAre(JobId{1}, JobId{2}));
  EXPECT_EQ(line.FirstAlike(JobId{1000}), JobId{2});
}

TEST(WaitingLineTest, NeedsBehindTheLastJobAreNotAskedAbout) {
  WaitingLine line;
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    line.Put(JobId{id}, Wants(static_cast<std::uint32_t>(id)));
  }
  int asked = 0;

  EXPECT_EQ(line.Front(10,
                       [&](JobId) {
                         ++asked;
                         return true;
                       })
                .size(),
            10u);

  EXPECT_EQ(asked, 10);
}

// What a plain sorted list would give.
TEST(WaitingLineTest, IsASortedListFilteredByNeed) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    WaitingLine line;
    std::map<JobId, JobSettings> jobs;
    for (int step = 0; step < 60; ++step) {
      const JobId job{random() % 30 + 1};
      if (random() % 4 == 0) {
        line.Remove(job);
        jobs.erase(job);
      } else {
        jobs[job] = Wants(static_cast<std::uint32_t>(random() % 4 + 1),
                          static_cast<std::int32_t>(random() % 3));
        line.Put(job, jobs[job]);
      }
    }
    const std::uint32_t most_workers = random() % 5;
    std::vector<JobId> expected;
    for (const auto& [job, settings] : jobs) {
      if (settings.workers_min <= most_workers) expected.push_back(job);
    }
    std::ranges::sort(expected,
                      [&](JobId a, JobId b) { return ComesBefore(jobs[a], a, jobs[b], b); });
    expected.resize(std::min<std::size_t>(expected.size(), 7));

    EXPECT_EQ(line.Front(7, [&](JobId job) { return jobs[job].workers_min <= most_workers; }),
              expected)
        << "seed " << seed;
    EXPECT_EQ(line.size(), jobs.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::job
