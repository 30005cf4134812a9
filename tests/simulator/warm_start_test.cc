// Two jobs of a kind, one after the other: what the first found, the second begins with, whatever
// becomes of the coordinator between them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policies/axes.h"
#include "tests/simulator/two_hosts.h"

namespace tactus::simulator {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr double kSecondSeconds = 600;  // when the first is over
constexpr const char* kByLinks = ": an exchange should take ";

SimulatedJob Adapting(const std::string& kind, double submit_seconds) {
  SimulatedJob job = std::move(TwoHosts().jobs[0]);
  job.learner = std::make_unique<NoisyQuadratic>(
      NoisyQuadraticOptions{.gradient_noise = 30, .loss_noise = 0.5});
  job.settings.adapt.synchronization.policy = "auto";
  job.settings.kind = kind;
  job.parameters = 1'000'000;  // 0.4 s on its way
  job.submit_seconds = submit_seconds;
  job.engine.stop.rounds = 60;
  return job;
}

Scenario OneAfterTheOther(const std::string& kind, const std::string& other,
                          double bytes_per_second = 10e6) {
  Scenario scenario = TwoHosts();
  for (HostModel& host : scenario.cluster.hosts) {
    host.link.bytes_per_second = bytes_per_second;
    host.devices[0].sample_seconds = 1e-3;
  }
  scenario.jobs.clear();
  scenario.jobs.push_back(Adapting(kind, 0));
  scenario.jobs.push_back(Adapting(other, kSecondSeconds));
  return scenario;
}

policies::Decision FirstOf(const JobOutcome& job) {
  const auto first =
      std::ranges::find(job.records, policies::Axis::kSynchronization, &policies::Decision::axis);
  return first == job.records.end() ? policies::Decision{} : *first;
}

TEST(WarmStartTest, TheSecondJobOfAKindBeginsWithAPeriod) {
  const Outcome outcome = Simulate(OneAfterTheOther("kind", "kind"));

  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(FirstOf(outcome.jobs[0]).to, "every_step");
  EXPECT_THAT(FirstOf(outcome.jobs[1]).to, StartsWith("periodic "));
  EXPECT_THAT(FirstOf(outcome.jobs[1]).reason,
              EndsWith(": as a former job of this kind found; tried out"));
}

TEST(WarmStartTest, OneOfAnotherKindBeginsAsEver) {
  const Outcome outcome = Simulate(OneAfterTheOther("kind", "another"));

  EXPECT_EQ(FirstOf(outcome.jobs[1]).to, "every_step");
}

// Of 0.7 MB/s: an exchange takes 5.7 s.
constexpr double kSlow = 0.7e6;

TEST(WarmStartTest, OnSlowLinksTheFirstJobBeginsByThem) {
  const Outcome outcome = Simulate(OneAfterTheOther("kind", "kind", kSlow));

  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_THAT(FirstOf(outcome.jobs[0]).to, StartsWith("periodic "));
  EXPECT_THAT(FirstOf(outcome.jobs[0]).reason, HasSubstr(kByLinks));
}

TEST(WarmStartTest, OneThatBeginsWithNothingOfOthersBeginsWithEveryStep) {
  const Outcome outcome = Simulate(OneAfterTheOther("", "", kSlow));

  EXPECT_EQ(FirstOf(outcome.jobs[0]).to, "every_step");
}

// A measurement takes a second, and workers take less.
TEST(WarmStartTest, LinksThatAreKnownTooLateAreOfUseToTheNext) {
  Scenario scenario = OneAfterTheOther("kind", "another", kSlow);
  scenario.jobs[0].load_seconds = 0.1;

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_EQ(FirstOf(outcome.jobs[0]).to, "every_step");
  EXPECT_THAT(FirstOf(outcome.jobs[1]).reason, HasSubstr(kByLinks));
}

TEST(WarmStartTest, ACoordinatorThatIsKilledBetweenThemForgetsNothing) {
  const Outcome calm = Simulate(OneAfterTheOther("kind", "kind"));
  ASSERT_LT(calm.jobs[0].queued_seconds + calm.jobs[0].train_seconds, kSecondSeconds - 20);
  Scenario scenario = OneAfterTheOther("kind", "kind");
  scenario.cluster.faults = {{.kind = Fault::Kind::kCoordinatorCrash,
                              .at_seconds = kSecondSeconds - 10,
                              .for_seconds = 2}};

  const Outcome outcome = Simulate(std::move(scenario));

  EXPECT_THAT(outcome.violations, IsEmpty());
  EXPECT_EQ(FirstOf(outcome.jobs[1]).to, FirstOf(calm.jobs[1]).to);
  EXPECT_THAT(FirstOf(outcome.jobs[1]).to, StartsWith("periodic "));
}

}  // namespace
}  // namespace tactus::simulator
