// A planner that is made anew from what the former one remembered goes on as that one would have.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "policies/planner.h"
#include "tests/policies/mended_memory.h"
#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

struct JobCourse {
  std::string name{};
  PlannerOptions planner{};
  double transfer_seconds = 0.2;
  int rounds = 400;
  // An axis of which there is a decision besides the first, so that something was learned.
  Axis moves = Axis::kSynchronization;
  std::optional<Prior> prior{};
};

PlannerOptions Adapting(const std::string& batch, const SynchronizationOptions& synchronization) {
  PlannerOptions options{.batch_policy = batch, .synchronization = synchronization};
  options.aggregation_policy = "auto";
  options.learning_rate_policy = "auto";
  options.encoding_policy = "auto";
  return options;
}

std::vector<JobCourse> Courses() {
  return {
      {.name = "auto", .planner = Adapting("auto", {.policy = "auto"}), .rounds = 600},
      {.name = "prior",
       .planner = Adapting("auto", {.policy = "auto"}),
       .prior = Prior{.period = 12, .transfer_seconds = 0.2}},
      {.name = "prior_of_another_network",
       .planner = Adapting("auto", {.policy = "auto"}),
       .prior = Prior{.period = 12, .transfer_seconds = 2}},
      {.name = "fast_links",
       .planner = Adapting("auto", {.policy = "auto"}),
       .transfer_seconds = 0.003,
       .moves = Axis::kBatch},
      {.name = "adacomm",
       .planner = Adapting("proportional", {.policy = "adacomm", .interval_seconds = 5})},
      {.name = "adacomm_of_20",
       .planner =
           Adapting("proportional", {.policy = "adacomm", .period = 20, .interval_seconds = 5})},
      {.name = "goodput",
       .planner = Adapting("auto", {.policy = "every_step"}),
       .moves = Axis::kBatch},
      {.name = "proportional",
       .planner = Adapting("proportional", {.policy = "every_step"}),
       .moves = Axis::kBatch},
      {.name = "delayed", .planner = Adapting("abs", {.policy = "delayed"}), .moves = Axis::kBatch},
      {.name = "post_local",
       .planner =
           Adapting("proportional", {.policy = "post_local", .period = 8, .rate_falls_at = 50})}};
}

VirtualJobOptions OptionsOf(const JobCourse& course) {
  VirtualJobOptions options{.workers = {{.speed = 100}, {.speed = 100}, {.speed = 50}},
                            .planner = course.planner,
                            .transfer_seconds = course.transfer_seconds,
                            .noise = 0.05,
                            .slow = {.wander = 0.1, .wander_seconds = 3},
                            .tried_speeds = {100, 100, 50},
                            .prior = course.prior};
  options.loss.sample_noise = 0.3;
  return options;
}

class PlannerMemoryTest : public testing::TestWithParam<JobCourse> {};

TEST_P(PlannerMemoryTest, AsOftenAsItIsRestartedItDecidesWhatOneThatLivesDecides) {
  VirtualJob lives(OptionsOf(GetParam()));
  lives.Run(GetParam().rounds);
  ASSERT_FALSE(lives.DecisionsOf(GetParam().moves).empty());

  for (const int every : {1, 7, 60}) {
    VirtualJob restarted(OptionsOf(GetParam()));
    while (restarted.round() < lives.round()) {
      restarted.Run(std::min(every, GetParam().rounds - static_cast<int>(restarted.round())));
      ASSERT_EQ(restarted.RestartPlanner(), "");
    }

    EXPECT_EQ(restarted.plans(), lives.plans()) << every;
    EXPECT_EQ(restarted.decisions(), lives.decisions()) << every;
    EXPECT_EQ(restarted.measured(), lives.measured()) << every;
    EXPECT_EQ(restarted.planner().Memory(), lives.planner().Memory()) << every;
  }
}

// A job of `auto` on all axes that has run for a while.
VirtualJob Grown() {
  VirtualJob job(OptionsOf(Courses().front()));
  job.Run(50);
  return job;
}

TEST(PlannerRecallTest, APlannerThatRefusesAMemoryLearnsAnew) {
  VirtualJob job = Grown();
  const std::string memory = job.planner().Memory();

  for (std::size_t size = 0; size < memory.size(); size += 1 + size / 50) {
    Planner planner(job.options().planner);
    ASSERT_EQ(planner.Recall(memory.substr(0, size), 3), "it is damaged") << size;
    planner.Resume(job.plan(), {});
    Planner fresh(job.options().planner);
    fresh.Resume(job.plan(), {});
    ASSERT_EQ(planner.Memory(), fresh.Memory()) << size;
  }
}

TEST(PlannerRecallTest, AMemoryOfOtherOptionsIsRefusedButForWhatTheyFreeze) {
  VirtualJob job = Grown();
  const std::string memory = job.planner().Memory();
  PlannerOptions other = job.options().planner;
  other.base_batch += 1;
  PlannerOptions frozen = job.options().planner;
  frozen.frozen = {Axis::kSynchronization};

  EXPECT_EQ(Planner(other).Recall(memory, 3), "it was learned under other options");
  EXPECT_EQ(Planner(frozen).Recall(memory, 3), "");
}

TEST(PlannerRecallTest, AMemoryOfAnotherGroupServesTheJobThatWaitsAlone) {
  VirtualJob job = Grown();
  const std::string memory = job.planner().Memory();

  EXPECT_EQ(Planner(job.options().planner).Recall(memory, 2),
            "it is of a group of 3, and one of 2 goes on");
  EXPECT_EQ(Planner(job.options().planner).Recall(memory, 0), "");
}

// The sum over the names of the fields stands behind whose memory it is.
TEST(PlannerRecallTest, AMemoryOfOtherFieldsIsOfAnotherVersion) {
  VirtualJob job = Grown();
  std::string memory = job.planner().Memory();
  memory[memory.size() - 2 * sizeof(std::uint64_t)] ^= 1;

  EXPECT_EQ(Planner(job.options().planner).Recall(Mended(memory), 3),
            "it is of another version, or its numbers contradict each other");
}

INSTANTIATE_TEST_SUITE_P(Courses, PlannerMemoryTest, testing::ValuesIn(Courses()),
                         [](const auto& course) { return course.param.name; });

}  // namespace
}  // namespace tactus::policies
