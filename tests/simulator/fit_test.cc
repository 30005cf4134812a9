#include "simulator/fit.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "simulator/noisy_quadratic.h"
#include "simulator/simulation.h"

namespace tactus::simulator {
namespace {

struct Recorded {
  JobHistory history{};
  Outcome outcome{};
};

// A job of 300 rounds on that cluster, as a coordinator would have it on record.
Recorded Record(const ClusterModel& cluster, const char* policy) {
  Scenario scenario{.cluster = cluster};
  SimulatedJob job{.learner = std::make_unique<NoisyQuadratic>(NoisyQuadraticOptions{}),
                   .parameters = 100'000};
  std::uint32_t devices = 0;
  for (const HostModel& host : cluster.hosts) {
    devices += static_cast<std::uint32_t>(host.devices.size());
  }
  job.settings.workers_min = devices;
  job.settings.adapt.batch_policy = policy;
  job.tries_out = false;  // so that batch sizes vary, without which a fixed time is not found
  job.engine.stop.rounds = 300;
  scenario.jobs.push_back(std::move(job));
  Recorded recorded;
  scenario.on_step = [&](const job::Event&, Instant, const job::Actions& actions) {
    for (const job::Action& action : actions) {
      if (const auto* round = std::get_if<job::PersistRound>(&action)) {
        recorded.history.rounds.push_back(round->round);
      } else if (const auto* persist = std::get_if<job::PersistJob>(&action)) {
        recorded.history.members = persist->record.members;
      }
    }
  };
  recorded.outcome = Simulate(std::move(scenario));
  return recorded;
}

ClusterModel Unequal(double sigma) {
  ClusterModel cluster;
  const double seconds[] = {1e-3, 1e-3, 2e-3, 4e-3};
  for (int i = 0; i < 4; ++i) {
    cluster.hosts.push_back(
        {.name = "h" + std::to_string(i),
         .link = {.latency_seconds = 100e-6, .bytes_per_second = 12.5e6},
         .devices = {{.name = "cpu:0", .batch_seconds = 5e-3, .sample_seconds = seconds[i]}}});
    cluster.hosts.back().devices[0].noise.log_sigma = sigma;
  }
  return cluster;
}

TEST(FitTest, DevicesAndLinksAreFoundAgainWithoutNoise) {
  const Recorded recorded = Record(Unequal(0), "proportional");

  const FittedCluster fitted = FitCluster(recorded.history);

  ASSERT_EQ(fitted.error, "");
  ASSERT_EQ(fitted.cluster.hosts.size(), 4u);
  const double seconds[] = {1e-3, 1e-3, 2e-3, 4e-3};
  for (std::size_t i = 0; i < 4; ++i) {
    const DeviceModel& device = fitted.cluster.hosts[i].devices.at(0);
    // Times are in whole nanoseconds.
    EXPECT_NEAR(device.sample_seconds, seconds[i], 1e-6) << i;
    EXPECT_NEAR(device.batch_seconds, 5e-3, 2e-5) << i;
    EXPECT_LT(device.noise.log_sigma, 1e-3) << i;
  }
  EXPECT_NEAR(fitted.cluster.hosts[0].link.bytes_per_second, 12.5e6, 0.01 * 12.5e6);
  EXPECT_NEAR(static_cast<double>(fitted.parameters), 1e5, 1);
}

TEST(FitTest, EqualSizesGiveAProportionalDevice) {
  const FittedCluster fitted = FitCluster(Record(Unequal(0), "fixed").history);

  const DeviceModel& device = fitted.cluster.hosts.at(3).devices.at(0);
  EXPECT_EQ(device.batch_seconds, 0);
  EXPECT_NEAR(device.sample_seconds, 4e-3 + 5e-3 / 32, 1e-6);
}

// The whole circle: what was fitted to a noisy run runs as fast as it did. 300 rounds with noise of
// 20 % are good to 0.2 / sqrt(300) = 1.2 % in each device's speed; 3 % covers the longest of four.
TEST(FitTest, AFittedClusterRunsAsFastAsTheRecordedOne) {
  for (const char* policy : {"fixed", "proportional"}) {
    const Recorded recorded = Record(Unequal(0.2), policy);
    const FittedCluster fitted = FitCluster(recorded.history);
    ASSERT_EQ(fitted.error, "") << policy;

    const Recorded again = Record(fitted.cluster, policy);

    const double before = recorded.outcome.jobs[0].samples_per_second;
    EXPECT_NEAR(again.outcome.jobs[0].samples_per_second, before, 0.03 * before) << policy;
  }
}

TEST(FitTest, NoiseThatAllHaveInCommonIsNotTakenForTheirOwn) {
  Recorded recorded = Record(Unequal(0), "fixed");
  for (std::size_t i = 0; i < recorded.history.rounds.size(); ++i) {
    for (double& seconds : recorded.history.rounds[i].worker_compute_seconds) {
      seconds *= i % 2 == 0 ? 0.7 : 1.3;
    }
  }

  const FittedCluster fitted = FitCluster(recorded.history);

  EXPECT_LT(fitted.cluster.hosts.at(0).devices.at(0).noise.log_sigma, 0.02);
}

TEST(FitTest, AHistoryWithoutTimesIsRefused) {
  Recorded recorded = Record(Unequal(0), "fixed");
  for (job::RoundRecord& round : recorded.history.rounds) round.worker_compute_seconds.clear();

  EXPECT_EQ(FitCluster(recorded.history).error,
            "has 0 rounds in which all workers took part; needed are 10");
}

}  // namespace
}  // namespace tactus::simulator
