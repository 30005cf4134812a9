#include "client/ask/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "tests/client/sample_history.h"

namespace tactus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Hosts "a" with two devices and "b" with one, which takes twice as long.
simulator::ClusterModel TwoHosts() {
  simulator::ClusterModel cluster;
  cluster.hosts = {{.name = "a",
                    .link = {.latency_seconds = 1e-4, .bytes_per_second = 1e6},
                    .devices = {{.name = "cpu:0", .batch_seconds = 2e-3, .sample_seconds = 1e-3},
                                {.name = "cpu:1", .sample_seconds = 1e-3}}},
                   {.name = "b", .devices = {{.name = "cpu:0", .sample_seconds = 2e-3}}}};
  return cluster;
}

// Who stands where, as "HOST/DEVICE".
std::vector<std::string> Places(const simulator::ClusterModel& cluster) {
  std::vector<std::string> places;
  for (const simulator::HostModel& host : cluster.hosts) {
    for (const simulator::DeviceModel& device : host.devices) {
      places.push_back(host.name + "/" + device.name);
    }
  }
  return places;
}

struct Changed {
  simulator::ClusterModel cluster = TwoHosts();
  std::string error{};
};

Changed After(const WhatIfChanges& changes) {
  Changed changed;
  changed.error = Change(changes, RecordedJob(), &changed.cluster);
  return changed;
}

TEST(WhatIfTest, NoChangeLeavesTheClusterAsItIs) {
  const Changed changed = After({});

  EXPECT_EQ(changed.error, "");
  EXPECT_THAT(Places(changed.cluster), ElementsAre("a/cpu:0", "a/cpu:1", "b/cpu:0"));
}

TEST(WhatIfTest, AddedDevicesAreOfTheFastestsSpeedOnHostsOfTheirOwn) {
  const Changed changed = After({.add = {"2xspeed=0.5"}});

  EXPECT_EQ(changed.error, "");
  EXPECT_THAT(Places(changed.cluster),
              ElementsAre("a/cpu:0", "a/cpu:1", "b/cpu:0", "added-1/cpu:0", "added-2/cpu:0"));
  const simulator::HostModel& added = changed.cluster.hosts[3];
  EXPECT_EQ(added.devices[0].sample_seconds, 2e-3);
  EXPECT_EQ(added.devices[0].batch_seconds, 4e-3);
  EXPECT_EQ(added.link, changed.cluster.hosts[0].link);
}

TEST(WhatIfTest, EverySpeedIsOfTheJobsFastestDevice) {
  const Changed changed = After({.add = {"speed=2", "3xspeed=0.5"}});

  ASSERT_THAT(changed.cluster.hosts, SizeIs(6));
  EXPECT_EQ(changed.cluster.hosts[2].devices[0].sample_seconds, 0.5e-3);
  EXPECT_EQ(changed.cluster.hosts[5].name, "added-4");
  EXPECT_EQ(changed.cluster.hosts[5].devices[0].sample_seconds, 2e-3);
}

TEST(WhatIfTest, AddedDevicesAreOfTheJobsKind) {
  simulator::ClusterModel cluster = TwoHosts();
  cluster.hosts = {{.name = "added-1", .devices = {{.name = "cuda:3"}}}};

  EXPECT_EQ(Change({.add = {"speed=1"}}, RecordedJob(), &cluster), "");

  EXPECT_THAT(Places(cluster), ElementsAre("added-1/cuda:3", "added-2/cuda:0"));
}

TEST(WhatIfTest, AThousandDevicesAreAddedAtOnce) {
  EXPECT_THAT(After({.add = {"1000xspeed=1"}}).cluster.hosts, SizeIs(1002));
}

TEST(WhatIfTest, DevicesAreRemovedByWorkerRankPlaceOrNode) {
  EXPECT_THAT(Places(After({.remove = {"worker-7"}}).cluster), ElementsAre("a/cpu:1", "b/cpu:0"));
  EXPECT_THAT(Places(After({.remove = {"rank-1"}}).cluster), ElementsAre("a/cpu:0", "a/cpu:1"));
  EXPECT_THAT(Places(After({.remove = {"a/cpu:1"}}).cluster), ElementsAre("a/cpu:0", "b/cpu:0"));
  EXPECT_THAT(Places(After({.remove = {"a"}}).cluster), ElementsAre("b/cpu:0"));
  EXPECT_THAT(Places(After({.remove = {"rank-0", "b"}}).cluster), ElementsAre("a/cpu:1"));
}

TEST(WhatIfTest, ANodesNameComesBeforeAWorkersNumber) {
  Changed changed;
  changed.cluster.hosts[1].name = "worker-7";

  changed.error = Change({.remove = {"worker-7"}}, RecordedJob(), &changed.cluster);

  EXPECT_EQ(changed.error, "");
  EXPECT_THAT(Places(changed.cluster), ElementsAre("a/cpu:0", "a/cpu:1"));
}

TEST(WhatIfTest, WhatIsAddedCanTakeThePlaceOfAllOthers) {
  const Changed changed = After({.add = {"speed=1"}, .remove = {"a", "b"}});

  EXPECT_EQ(changed.error, "");
  EXPECT_THAT(Places(changed.cluster), ElementsAre("added-1/cpu:0"));
}

TEST(WhatIfTest, ARateIsOfEveryLink) {
  const Changed changed = After({.add = {"speed=1"}, .rate = "100mbit"});

  EXPECT_EQ(changed.error, "");
  for (const simulator::HostModel& host : changed.cluster.hosts) {
    EXPECT_EQ(host.link.bytes_per_second, 12.5e6) << host.name;
  }
  EXPECT_EQ(changed.cluster.hosts[0].link.latency_seconds, 1e-4);
  EXPECT_EQ(changed.cluster.local.bytes_per_second, 12.5e6);
}

// ---- One mistake each.

struct Mistake {
  std::string name;
  WhatIfChanges changes;
  std::string error;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class WhatIfMistakeTest : public testing::TestWithParam<Mistake> {};

TEST_P(WhatIfMistakeTest, IsOneLineWithWhatIsAllowed) {
  EXPECT_EQ(After(GetParam().changes).error, GetParam().error);
}

std::string WrongAddition(const std::string& text) {
  return "--add: found \"" + text +
         "\", allowed is [N x]speed=F, such as 2xspeed=0.5: two devices half as fast";
}

std::string WrongRemoval(const std::string& text) {
  return "--remove: found \"" + text +
         "\", allowed is worker-N, rank-N, NODE/DEVICE or NODE of the job";
}

std::string WrongRate(const std::string& text) {
  return "--rate: found \"" + text + "\", allowed is a rate of 1kbit or more, such as 1gbit";
}

const std::vector<Mistake> kMistakes = {
    {"AddNothing", {.add = {""}}, WrongAddition("")},
    {"AddCountAlone", {.add = {"2"}}, WrongAddition("2")},
    {"AddNoCount", {.add = {"xspeed=1"}}, WrongAddition("xspeed=1")},
    {"AddCountZero", {.add = {"0xspeed=1"}}, WrongAddition("0xspeed=1")},
    {"AddHalfADevice", {.add = {"1.5xspeed=1"}}, WrongAddition("1.5xspeed=1")},
    {"AddTooMany", {.add = {"65537xspeed=1"}}, WrongAddition("65537xspeed=1")},
    {"AddSpeedZero", {.add = {"speed=0"}}, WrongAddition("speed=0")},
    {"AddSpeedOutOfRange", {.add = {"speed=1001"}}, WrongAddition("speed=1001")},
    {"AddSpeedNotANumber", {.add = {"speed=nan"}}, WrongAddition("speed=nan")},
    {"AddWithMore", {.add = {"speed=1 "}}, WrongAddition("speed=1 ")},
    {"AddUpToTooMany",
     {.add = {"65533xspeed=1", "speed=1"}},
     "--add: leaves more than 65536 devices"},
    {"RemoveNothing", {.remove = {""}}, WrongRemoval("")},
    {"RemoveUnknownWorker", {.remove = {"worker-8"}}, WrongRemoval("worker-8")},
    {"RemoveUnknownRank", {.remove = {"rank-2"}}, WrongRemoval("rank-2")},
    {"RemoveUnknownNode", {.remove = {"c"}}, WrongRemoval("c")},
    {"RemoveUnknownDevice", {.remove = {"a/cpu:2"}}, WrongRemoval("a/cpu:2")},
    {"RemoveTwice", {.remove = {"rank-0", "rank-0"}}, WrongRemoval("rank-0")},
    {"RemoveAll", {.remove = {"a", "b"}}, "--remove: leaves no device"},
    {"RateWithoutUnit", {.rate = "100"}, WrongRate("100")},
    {"RateBelowZero", {.rate = "-1gbit"}, WrongRate("-1gbit")},
    {"RateTooSmall", {.rate = "999bit"}, WrongRate("999bit")},
};

INSTANTIATE_TEST_SUITE_P(All, WhatIfMistakeTest, testing::ValuesIn(kMistakes),
                         [](const auto& tested) { return tested.param.name; });

// ---- Fitted to rounds.

TEST(FitJobTest, DevicesAreAsFastAsTheirRoundsSay) {
  const FittedJob fitted = FitJob(RecordedJob(), RecordedRounds());

  ASSERT_EQ(fitted.error, "");
  EXPECT_THAT(Places(fitted.cluster), ElementsAre("a/cpu:0", "b/cpu:0"));
  EXPECT_NEAR(fitted.cluster.hosts[0].devices[0].sample_seconds, 1e-3, 1e-9);
  EXPECT_NEAR(fitted.cluster.hosts[1].devices[0].sample_seconds, 4e-3, 1e-9);
  EXPECT_NEAR(fitted.transfer_seconds, 0.004, 1e-9);
}

TEST(FitJobTest, WorkAndLossAreTheJobs) {
  const FittedJob fitted = FitJob(RecordedJob(), RecordedRounds());

  EXPECT_EQ(fitted.work.model.train_samples(), kRecordedEpochSamples);
  EXPECT_EQ(fitted.rounds, 30u);
  EXPECT_NEAR(fitted.samples_per_second, 40 / kRecordedRoundSeconds, 1e-6);
  // The lanes take some fifteen elements.
  EXPECT_NEAR(static_cast<double>(fitted.work.model.parameters()), kRecordedParameters,
              0.02 * kRecordedParameters);
  ASSERT_THAT(fitted.work.points, SizeIs(30));
  EXPECT_EQ(fitted.work.points[1].samples, 80);
  EXPECT_EQ(fitted.work.points[1].loss, 1.5);
  EXPECT_TRUE(fitted.work.loss.curve().noise());
}

TEST(FitJobTest, ParametersThatTravelledInHalfTheBytesAreTwiceAsMany) {
  v1::Job job = RecordedJob();
  const std::uint64_t dense = FitJob(job, RecordedRounds()).work.model.parameters();
  job.mutable_progress()->mutable_plan()->set_encoding("float16");

  EXPECT_NEAR(static_cast<double>(FitJob(job, RecordedRounds()).work.model.parameters()),
              2.0 * static_cast<double>(dense), 1);
}

TEST(FitJobTest, RoundsWithoutAFiniteLossAreNotOfTheCurve) {
  v1::ListRoundsResponse history = RecordedRounds();
  history.mutable_rounds(0)->set_loss(NAN);

  const FittedJob fitted = FitJob(RecordedJob(), history);

  ASSERT_EQ(fitted.error, "");
  ASSERT_THAT(fitted.work.points, SizeIs(29));
  EXPECT_EQ(fitted.work.points[0].samples, 80);

  for (v1::Round& round : *history.mutable_rounds()) round.set_loss(INFINITY);
  EXPECT_EQ(FitJob(RecordedJob(), history).error, "has no round with a finite loss");
}

TEST(FitJobTest, TooFewRoundsAreSaid) {
  EXPECT_THAT(FitJob(RecordedJob(), RecordedRounds(5)).error, HasSubstr("needed are 10"));
  EXPECT_THAT(FitJob(v1::Job(), RecordedRounds()).error, HasSubstr("needed are 10"));
}

}  // namespace
}  // namespace tactus::client
