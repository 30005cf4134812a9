// Sums that are made by slices, as the planner chooses them by links.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "simulator/perceptron.h"
#include "simulator/simulation.h"

namespace tactus::simulator {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kMembers = 8;

std::unique_ptr<Learner> MakeLearner() {
  SyntheticOptions options{.samples = 4000, .features = 16, .classes = 4, .separation = 2};
  auto training = std::make_shared<const Examples>(MakeSyntheticExamples(options));
  options.first = options.samples;
  options.samples = 500;
  return std::make_unique<Perceptron>(
      PerceptronOptions{.hidden = {8}}, std::move(training),
      std::make_shared<const Examples>(MakeSyntheticExamples(options)));
}

// A step takes 32 ms; of a vector of 1 MB a way carries an eighth in 10 ms, that of host 5 in 100.
JobOutcome Trained(const std::string& encoding, bool slow) {
  Scenario scenario;
  for (int i = 0; i < kMembers; ++i) {
    const double rate = slow && i == 5 ? 1.25e6 : 1.25e7;
    scenario.cluster.hosts.push_back({.name = "h" + std::to_string(i),
                                      .link = {.bytes_per_second = rate},
                                      .devices = {{.name = "cpu:0", .sample_seconds = 1e-3}}});
  }
  SimulatedJob job{.learner = MakeLearner()};
  job.settings.name = encoding;
  job.settings.workers_min = job.settings.workers_max = kMembers;
  job.settings.adapt.batch_policy = "fixed";
  job.settings.adapt.batch.per_worker = 32;
  job.settings.adapt.synchronization.policy = "every_step";
  job.settings.adapt.aggregation_policy = "average";
  job.settings.adapt.learning_rate_policy = "constant";
  job.settings.adapt.encoding_policy = encoding;
  job.engine.optimizer = engine::SgdOptions{.learning_rate = 0.02};
  job.engine.stop.time = Seconds(120);
  job.parameters = 250'000;
  job.conclude_seconds = 1e-3;
  scenario.jobs.push_back(std::move(job));
  Outcome outcome = Simulate(std::move(scenario));
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  return std::move(outcome.jobs[0]);
}

const policies::Decision* Sliced(const JobOutcome& job) {
  const auto found = std::ranges::find_if(job.records, [](const policies::Decision& decision) {
    return decision.reason.find("has a slow link") != std::string::npos;
  });
  return found == job.records.end() ? nullptr : &*found;
}

// Of 2 (n - 1) / n vectors over the slow link one is left: 1.75 times as fast where that is all.
TEST(SlicesTest, AJobWithASlowLinkIsFasterByThemThanByFewerBytesAlone) {
  const JobOutcome fewer_bytes = Trained("float16", true);
  const JobOutcome both = Trained("auto", true);

  const policies::Decision* const decision = Sliced(both);
  ASSERT_NE(decision, nullptr);
  EXPECT_THAT(decision->reason, HasSubstr("worker 5 carries"));
  EXPECT_THAT(decision->to, HasSubstr(",0,"));
  EXPECT_GT(both.samples_per_second, 1.3 * fewer_bytes.samples_per_second);
}

TEST(SlicesTest, LinksAlikeAreLeftAlone) { EXPECT_EQ(Sliced(Trained("auto", false)), nullptr); }

}  // namespace
}  // namespace tactus::simulator
