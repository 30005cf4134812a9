// A coordinator that is killed while its planner searches, tries something out or rests: the plans
// that follow are those that would have followed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/job/job_deadlines.h"
#include "policies/axes.h"
#include "policies/period_canary.h"
#include "tests/simulator/two_hosts.h"

namespace tactus::simulator {
namespace {

using testing::IsEmpty;

Scenario Adapting(const std::string& synchronization) {
  Scenario scenario = TwoHosts();
  for (HostModel& host : scenario.cluster.hosts) host.link.bytes_per_second = 200e3;
  SimulatedJob& job = scenario.jobs[0];
  job.learner = std::make_unique<NoisyQuadratic>(
      NoisyQuadraticOptions{.dimension = 4096, .gradient_noise = 30, .loss_noise = 0.5});
  job.settings.adapt.batch_policy = "proportional";
  job.settings.adapt.synchronization.policy = synchronization;
  job.settings.adapt.synchronization.interval_seconds = 20;
  job.engine.stop.rounds = 350;
  return scenario;
}

// A change of the synchronization.
struct Change {
  double at_seconds = 0;       // virtual
  double trained_seconds = 0;  // as the planner counts
  std::string to{};
};

std::vector<Change> ChangesOf(const Outcome& outcome) {
  std::vector<Change> changes;
  for (const policies::Decision& record : outcome.jobs[0].records) {
    if (record.axis != policies::Axis::kSynchronization) continue;
    const auto decided =
        std::ranges::find(outcome.jobs[0].decisions, record.plan_version,
                          [](const Decision& decision) { return decision.plan.version; });
    if (decided == outcome.jobs[0].decisions.end()) continue;
    changes.push_back({decided->seconds, record.seconds, record.to});
  }
  return changes;
}

struct Course {
  std::string synchronization{};
  std::size_t changes = 0;  // that are looked at
  // AdaComm's periods follow the loss of the moment in which an interval ends, and that moment
  // moves by what the planner's clock has forgotten. A share of the period.
  double within = 0;
};

std::uint32_t PeriodOf(const Change& change) {
  const std::size_t space = change.to.find(' ');
  return space == std::string::npos ? 1 : std::stoul(change.to.substr(space + 1));
}

class PlannerRestartTest : public testing::TestWithParam<Course> {};

TEST_P(PlannerRestartTest, WhateverItIsKilledInWhatFollowsIsWhatWouldHaveFollowed) {
  const std::vector<Change> calm = ChangesOf(Simulate(Adapting(GetParam().synchronization)));
  ASSERT_GE(calm.size(), GetParam().changes);

  // Between two changes: in a search, in a trial or a canary, or at rest.
  for (std::size_t k = 0; k + 1 < GetParam().changes; ++k) {
    SCOPED_TRACE("killed under " + calm[k].to + ", before " + calm[k + 1].to);
    Scenario scenario = Adapting(GetParam().synchronization);
    scenario.cluster.faults = {{.kind = Fault::Kind::kCoordinatorCrash,
                                .at_seconds = (calm[k].at_seconds + calm[k + 1].at_seconds) / 2,
                                .for_seconds = 2}};
    const Outcome outcome = Simulate(std::move(scenario));
    const std::vector<Change> changes = ChangesOf(outcome);

    EXPECT_THAT(outcome.violations, IsEmpty());
    ASSERT_GT(changes.size(), k + 1);
    for (std::size_t i = 0; i <= k + 1; ++i) {
      if (GetParam().within == 0) {
        EXPECT_EQ(changes[i].to, calm[i].to) << i;
      } else {
        EXPECT_NEAR(PeriodOf(changes[i]), PeriodOf(calm[i]), GetParam().within * PeriodOf(calm[i]))
            << i;
      }
    }
    // What was not written yet is missing from the planner's clock, and a canary may be prolonged.
    const double forgotten = ToSeconds(job::JobDeadlines{}.memory_persist);
    const double canary = policies::PeriodCanary::kShareMost * calm[k + 1].trained_seconds;
    EXPECT_NEAR(changes[k + 1].trained_seconds, calm[k + 1].trained_seconds, forgotten + canary);
  }
}

// A start, a jump and three canaries; a search, before the rule that goes by the loss of a moment.
INSTANTIATE_TEST_SUITE_P(Policies, PlannerRestartTest,
                         testing::Values(Course{"auto", 8}, Course{"adacomm", 4, 0.25}));

}  // namespace
}  // namespace tactus::simulator
