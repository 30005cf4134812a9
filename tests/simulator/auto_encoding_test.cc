// The encoding that `auto` takes where every step is asked for, with the workers' own encoders on a
// model that really learns: what leaves a rest or has noise where links are slow, none where they
// are fast.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policies/axes.h"
#include "simulator/perceptron.h"
#include "simulator/simulation.h"

namespace tactus::simulator {
namespace {

using testing::AnyOf;
using testing::IsEmpty;

constexpr double kSeconds = 150;
constexpr double k20Megabits = 20e6 / 8;

std::unique_ptr<Learner> MakeLearner() {
  SyntheticOptions options{.samples = 50'000, .features = 128, .classes = 10, .separation = 2};
  auto training = std::make_shared<const Examples>(MakeSyntheticExamples(options));
  options.first = options.samples;
  options.samples = 1000;
  return std::make_unique<Perceptron>(
      PerceptronOptions{.hidden = {64}}, std::move(training),
      std::make_shared<const Examples>(MakeSyntheticExamples(options)));
}

// Four hosts whose step of 32 samples takes 0.13 s, and an exchange of float32 1.3 s at 20 Mbit/s:
// as cifar_cnn does on the shaped cluster of docs/benchmarks.md.
Scenario EveryStep(double bytes_per_second, const std::string& encoding) {
  Scenario scenario;
  for (int i = 0; i < 4; ++i) {
    scenario.cluster.hosts.push_back(
        {.name = "h" + std::to_string(i),
         .link = {.bytes_per_second = bytes_per_second},
         .devices = {{.name = "cpu:0", .sample_seconds = 4.1e-3, .noise = {.log_sigma = 0.1}}}});
  }
  SimulatedJob job{.learner = MakeLearner()};
  job.settings.name = encoding;
  job.settings.workers_min = job.settings.workers_max = 4;
  job.settings.adapt.batch_policy = "fixed";
  job.settings.adapt.batch.per_worker = 32;
  job.settings.adapt.synchronization.policy = "every_step";
  job.settings.adapt.encoding_policy = encoding;
  job.parameters = 550'000;
  job.engine.optimizer = engine::SgdOptions{.learning_rate = 0.05};
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

std::vector<policies::Decision> EncodingsOf(const JobOutcome& job) {
  std::vector<policies::Decision> records = job.records;
  std::erase_if(records, [](const policies::Decision& record) {
    return record.axis != policies::Axis::kEncoding;
  });
  return records;
}

TEST(EncodingOfEveryStepTest, AtTwentyMegabitsEveryStepTravelsInFewBytesWithinAMinute) {
  const JobOutcome automatic = Finished(EveryStep(k20Megabits, "auto"));
  const JobOutcome halves = Finished(EveryStep(k20Megabits, "float16"));

  const std::vector<policies::Decision> records = EncodingsOf(automatic);
  ASSERT_GE(records.size(), 3u);
  EXPECT_EQ(records[1].to, "float16");
  EXPECT_THAT(records[2].to, AnyOf("adacomp", "dq"));
  EXPECT_LE(records[2].seconds, 60);
  EXPECT_EQ(records.back().to, records[2].to) << records.back().reason;
  ASSERT_FALSE(automatic.validation.empty() || halves.validation.empty());
  EXPECT_LT(automatic.validation.back().loss, halves.validation.back().loss);
  EXPECT_GT(automatic.samples, 1.5 * static_cast<double>(halves.samples));
}

TEST(EncodingOfEveryStepTest, OnAFastLinkEveryStepStaysDense) {
  const JobOutcome automatic = Finished(EveryStep(500 * k20Megabits, "auto"));

  const std::vector<policies::Decision> records = EncodingsOf(automatic);
  ASSERT_EQ(records.size(), 1u) << records.back().reason;
  EXPECT_EQ(records[0].to, "dense");
}

}  // namespace
}  // namespace tactus::simulator
