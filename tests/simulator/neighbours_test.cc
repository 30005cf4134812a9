// Members that mix with their neighbours, two of which have a slow link between them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "simulator/perceptron.h"
#include "simulator/simulation.h"

namespace tactus::simulator {
namespace {

using testing::IsEmpty;

constexpr double kSeconds = 150;
constexpr int kMembers = 16;

std::unique_ptr<Learner> MakeLearner() {
  SyntheticOptions options{.samples = 20000, .features = 32, .classes = 10, .separation = 2};
  auto training = std::make_shared<const Examples>(MakeSyntheticExamples(options));
  options.first = options.samples;
  options.samples = 2000;
  return std::make_unique<Perceptron>(
      PerceptronOptions{.hidden = {32}}, std::move(training),
      std::make_shared<const Examples>(MakeSyntheticExamples(options)));
}

// A step of 32 samples takes 32 ms, a vector over a link 80 ms, and over that between the hosts 3
// and 4 ten times as long.
Scenario Links(const std::string& policy, const std::string& graph, bool slow) {
  Scenario scenario;
  scenario.cluster.algorithm = Algorithm::kRing;
  for (int i = 0; i < kMembers; ++i) {
    scenario.cluster.hosts.push_back({.name = "h" + std::to_string(i),
                                      .group = i == 3 || i == 4 ? "g" + std::to_string(i) : "",
                                      .link = {.bytes_per_second = 1.25e7},
                                      .devices = {{.name = "cpu:0", .sample_seconds = 1e-3}}});
  }
  if (slow) {
    scenario.cluster.between.push_back(
        {.a = "g3", .b = "g4", .link = {.bytes_per_second = 1.25e6}});
  }
  SimulatedJob job{.learner = MakeLearner()};
  job.settings.name = policy;
  job.settings.workers_min = job.settings.workers_max = kMembers;
  job.settings.adapt.batch_policy = "fixed";
  job.settings.adapt.batch.per_worker = 32;
  job.settings.adapt.synchronization.policy = policy;
  job.settings.adapt.synchronization.graph = graph;
  job.settings.adapt.momentum = 0.9;
  job.engine.optimizer = engine::SgdOptions{.learning_rate = 0.02, .momentum = 0.9};
  job.engine.validation = {.policy = engine::ValidationPolicy::kAuto, .every = Seconds(5)};
  job.engine.stop.time = Seconds(kSeconds);
  job.validate_every = Seconds(5);
  job.parameters = 250'000;
  job.conclude_seconds = 1e-3;
  scenario.jobs.push_back(std::move(job));
  return scenario;
}

JobOutcome Finished(Scenario scenario) {
  Outcome outcome = Simulate(std::move(scenario));
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  JobOutcome& job = outcome.jobs[0];
  std::printf("%8.0f samples/s, loss %.4f at the end, %llu rounds\n", job.samples_per_second,
              job.validation.back().loss, static_cast<unsigned long long>(job.rounds));
  return std::move(job);
}

TEST(NeighboursTest, ASlowLinkIsLeftOutOfTheGraph) {
  const JobOutcome good = Finished(Links("decentlam", "ring", false));
  const JobOutcome slow = Finished(Links("decentlam", "ring", true));
  const JobOutcome reduced = Finished(Links("every_step", "auto", true));

  // With the rounds before it is left out.
  EXPECT_GT(slow.samples_per_second, 0.6 * good.samples_per_second);
  EXPECT_GT(slow.samples_per_second, 3 * reduced.samples_per_second)
      << "a ring of all members goes over each link";
  const bool told = std::ranges::any_of(slow.decisions, [](const Decision& decision) {
    // Hosts stand in the order of their names: h10 to h15 before h2.
    return decision.plan.reason.starts_with("workers 9 and 10 are no neighbours any more");
  });
  EXPECT_TRUE(told);
  EXPECT_LT(slow.validation.back().loss, 0.8 * slow.validation.front().loss);
}

}  // namespace
}  // namespace tactus::simulator
