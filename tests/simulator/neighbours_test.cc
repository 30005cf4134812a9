// Members that mix with their neighbours, two of which have a slow link between them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
Scenario Links(const std::string& policy, const std::string& graph, bool slow,
               Algorithm algorithm) {
  Scenario scenario;
  scenario.cluster.algorithm = algorithm;
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

// The usual round of the second half. [s]
double RoundOf(const JobOutcome& job) {
  std::vector<double> seconds;
  for (std::size_t i = job.curve.size() / 2; i < job.curve.size(); ++i) {
    seconds.push_back(job.curve[i].seconds - job.curve[i - 1].seconds);
  }
  std::ranges::nth_element(seconds, seconds.begin() + static_cast<int>(seconds.size() / 2));
  return seconds[seconds.size() / 2];
}

// The rounds before that are some 12 s at a quarter of the pace.
TEST(NeighboursTest, ASlowLinkIsLeftOutOfTheGraph) {
  const JobOutcome good = Finished(Links("decentlam", "ring", false, Algorithm::kMesh));
  const JobOutcome slow = Finished(Links("decentlam", "ring", true, Algorithm::kMesh));

  EXPECT_GT(slow.samples_per_second, 0.9 * good.samples_per_second);
  EXPECT_NEAR(RoundOf(slow), RoundOf(good), 0.01 * RoundOf(good));
  EXPECT_EQ(std::ranges::count_if(slow.decisions,
                                  [](const Decision& decision) {
                                    // Hosts stand in the order of their names: h10 to h15 before
                                    // h2.
                                    return decision.plan.reason.starts_with(
                                        "workers 9 and 10 are no neighbours any more");
                                  }),
            1);
  EXPECT_LT(slow.validation.back().loss, 0.8 * slow.validation.front().loss);
}

// Lanes and what is looked at between rounds are all-reduces, which go over each link of a ring of
// all, whoever mixes with whom.
TEST(NeighboursTest, AllReducesByRingKeepTheSlowLinkAndWhatMixesDoesNot) {
  const JobOutcome good = Finished(Links("decentlam", "ring", false, Algorithm::kRing));
  const JobOutcome slow = Finished(Links("decentlam", "ring", true, Algorithm::kRing));
  const JobOutcome reduced = Finished(Links("every_step", "auto", true, Algorithm::kRing));

  EXPECT_GT(slow.samples_per_second, 0.6 * good.samples_per_second);
  EXPECT_NEAR(RoundOf(slow), RoundOf(good), 0.2 * RoundOf(good));
  EXPECT_GT(slow.samples_per_second, 3 * reduced.samples_per_second);
}

}  // namespace
}  // namespace tactus::simulator
