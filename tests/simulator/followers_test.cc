// Members that follow leaders, one of them eight times as slow as the others.

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

constexpr double kSeconds = 100;

std::unique_ptr<Learner> MakeLearner() {
  SyntheticOptions options{.samples = 20000, .features = 32, .classes = 10, .separation = 2};
  auto training = std::make_shared<const Examples>(MakeSyntheticExamples(options));
  options.first = options.samples;
  options.samples = 2000;
  return std::make_unique<Perceptron>(
      PerceptronOptions{.hidden = {32}}, std::move(training),
      std::make_shared<const Examples>(MakeSyntheticExamples(options)));
}

// 32 samples take 32 ms, on the last host 256 ms; an exchange takes about as long as 10 ms.
Scenario Slow(const std::string& policy, std::uint32_t period, bool elastic = false) {
  Scenario scenario;
  for (int i = 0; i < 4; ++i) {
    scenario.cluster.hosts.push_back(
        {.name = "h" + std::to_string(i),
         .link = {.bytes_per_second = 1.25e7},
         .devices = {{.name = "cpu:0", .sample_seconds = i == 3 ? 8e-3 : 1e-3}}});
  }
  SimulatedJob job{.learner = MakeLearner()};
  job.settings.name = policy;
  job.settings.workers_min = job.settings.workers_max = 4;
  job.settings.adapt.batch_policy = "fixed";
  job.settings.adapt.batch.per_worker = 32;
  job.settings.adapt.synchronization.policy = policy;
  job.settings.adapt.synchronization.period = period;
  job.engine.elastic = elastic;
  job.engine.optimizer = engine::SgdOptions{.learning_rate = 0.05};
  job.engine.validation = {.policy = engine::ValidationPolicy::kAuto, .every = Seconds(1)};
  job.engine.stop.time = Seconds(kSeconds);
  job.validate_every = Seconds(1);
  job.conclude_seconds = 1e-3;
  scenario.jobs.push_back(std::move(job));
  return scenario;
}

JobOutcome Finished(Scenario scenario) {
  Outcome outcome = Simulate(std::move(scenario));
  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(outcome.jobs[0].state, job::JobState::kSucceeded);
  return std::move(outcome.jobs[0]);
}

// Of the parameters that all have, or of their mean. Never: a long time.
double SecondsTo(const JobOutcome& job, double loss) {
  const auto at = std::ranges::find_if(
      job.validation, [&](const ValidationPoint& point) { return point.loss <= loss; });
  return at == job.validation.end() ? 10 * kSeconds : at->seconds;
}

TEST(FollowersTest, AMemberThatIsEightTimesAsSlowHoldsNobodyUp) {
  const JobOutcome every_step = Finished(Slow("every_step", 1));
  const JobOutcome periodic = Finished(Slow("periodic", 16));
  const JobOutcome elastic = Finished(Slow("periodic", 16, true));
  const JobOutcome led = Finished(Slow("lsgd", 16));

  ASSERT_FALSE(every_step.validation.empty() || led.validation.empty());
  const double loss = every_step.validation.back().loss;
  for (const JobOutcome* const job : {&every_step, &periodic, &elastic, &led}) {
    std::printf("%8.0f samples/s, loss %.4f at the end, %6.1f s to %.4f, %llu rounds\n",
                job->samples_per_second, job->validation.back().loss, SecondsTo(*job, loss), loss,
                static_cast<unsigned long long>(job->rounds));
  }
  // Three of 1,000 samples a second, and one of 125.
  EXPECT_GT(led.samples_per_second, 0.85 * 3125);
  EXPECT_GT(led.samples_per_second, 2 * elastic.samples_per_second);
  EXPECT_GT(led.samples_per_second, 4 * periodic.samples_per_second);
  EXPECT_LT(SecondsTo(led, loss), 0.5 * SecondsTo(every_step, loss));
  EXPECT_LT(led.validation.back().loss, led.validation.front().loss);
}

// It becomes slow while it trains: no window waits for more than a step of it.
TEST(FollowersTest, AMemberThatBecomesSlowHoldsNobodyUpEither) {
  Scenario scenario = Slow("lsgd", 16);
  for (HostModel& host : scenario.cluster.hosts) host.devices[0].sample_seconds = 1e-3;
  scenario.cluster.faults.push_back({.kind = Fault::Kind::kSlowDown,
                                     .at_seconds = 30,
                                     .for_seconds = 1000,
                                     .host = "h3",
                                     .device = "cpu:0",
                                     .factor = 8});

  const JobOutcome led = Finished(std::move(scenario));

  EXPECT_GT(led.samples_per_second, 0.8 * (0.3 * 4000 + 0.7 * 3125));
}

}  // namespace
}  // namespace tactus::simulator
