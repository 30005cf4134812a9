#include "simulator/network.h"

#include <gtest/gtest.h>

namespace tactus::simulator {
namespace {

constexpr double kRate = 1e6;  // bytes/s: a byte takes a microsecond
constexpr LinkModel kLink = {.latency_seconds = 1e-3, .bytes_per_second = kRate};

Instant At(double seconds) {
  return Instant(Duration(static_cast<Duration::rep>(seconds * 1e9 + 0.5)));
}

// Four hosts with kLink: 0 and 1 in group "a", 2 and 3 in group "b".
ClusterModel FourHosts() {
  ClusterModel cluster;
  for (const char* name : {"0", "1", "2", "3"}) {
    cluster.hosts.push_back({.name = name, .group = name[0] < '2' ? "a" : "b", .link = kLink});
  }
  return cluster;
}

TEST(NetworkTest, AMessageArrivesWhenItsLastByteHasPassed) {
  Network network(FourHosts());

  EXPECT_EQ(network.Send(0, 1, 5000, At(2)), At(2.007));  // 5 ms and two latencies
}

TEST(NetworkTest, AnEmptyMessageTakesTheLatencies) {
  Network network(FourHosts());

  EXPECT_EQ(network.Send(0, 1, 0, At(2)), At(2.002));
}

TEST(NetworkTest, TheSlowerOfTheTwoLinksDecides) {
  ClusterModel cluster = FourHosts();
  cluster.hosts[1].link.bytes_per_second = kRate / 4;
  Network network(cluster);

  EXPECT_EQ(network.Send(0, 1, 5000, At(0)), At(0.022));
  EXPECT_EQ(network.Send(1, 0, 5000, At(1)), At(1.022));
}

TEST(NetworkTest, ABusyWayOutMakesTheNextMessageWait) {
  Network network(FourHosts());

  EXPECT_EQ(network.Send(0, 1, 5000, At(0)), At(0.007));
  EXPECT_EQ(network.Send(0, 2, 5000, At(0.001)), At(0.012));
  EXPECT_EQ(network.Send(0, 3, 5000, At(0.5)), At(0.507));  // idle again
}

TEST(NetworkTest, TwoMessagesToOneHostShareItsWayIn) {
  Network network(FourHosts());

  EXPECT_EQ(network.Send(0, 2, 5000, At(0)), At(0.007));
  EXPECT_EQ(network.Send(1, 2, 5000, At(0)), At(0.012));
}

TEST(NetworkTest, ABusyWayInDoesNotHoldUpTheSendersOtherMessages) {
  Network network(FourHosts());
  network.Send(1, 2, 500'000, At(0));

  EXPECT_EQ(network.Send(0, 2, 5000, At(0)), At(0.507));
  EXPECT_EQ(network.Send(0, 3, 5000, At(0)), At(0.012));
}

TEST(NetworkTest, TheTwoDirectionsOfALinkDoNotDisturbEachOther) {
  Network network(FourHosts());
  network.Send(0, 1, 500'000, At(0));

  EXPECT_EQ(network.Send(1, 0, 5000, At(0)), At(0.007));
}

TEST(NetworkTest, AnIdleLinkLetsItsBurstThroughAtOnce) {
  ClusterModel cluster = FourHosts();
  for (HostModel& host : cluster.hosts) host.link.burst_bytes = 4000;
  Network network(cluster);

  EXPECT_EQ(network.Send(0, 1, 3000, At(1)), At(1.002));
  EXPECT_EQ(network.Send(0, 1, 3000, At(1)), At(1.004));      // 1000 saved up, 2000 at the rate
  EXPECT_EQ(network.Send(0, 1, 3000, At(1.004)), At(1.007));  // 2000 saved up in 2 ms
  EXPECT_EQ(network.Send(0, 1, 10'000, At(9)), At(9.008));    // no more than the burst
}

TEST(NetworkTest, WithinAHostMessagesDoNotUseItsLink) {
  ClusterModel cluster = FourHosts();
  cluster.local = {.latency_seconds = 1e-4, .bytes_per_second = 10 * kRate};
  Network network(cluster);
  network.Send(0, 1, 500'000, At(0));

  EXPECT_EQ(network.Send(0, 0, 5000, At(0)), At(0.0006));
  EXPECT_EQ(network.Send(0, 0, 5000, At(0)), At(0.0011));
  EXPECT_DOUBLE_EQ(network.bytes_sent(), 500'000);
}

TEST(NetworkTest, ALinkBetweenGroupsIsSharedByTheirHosts) {
  ClusterModel cluster = FourHosts();
  cluster.between = {
      {.a = "a", .b = "b", .link = {.latency_seconds = 0.01, .bytes_per_second = kRate / 2}}};
  Network network(cluster);

  EXPECT_EQ(network.Send(0, 2, 5000, At(0)), At(0.022));  // 10 ms at its rate, three latencies
  EXPECT_EQ(network.Send(1, 3, 5000, At(0)), At(0.032));  // behind the other
  EXPECT_EQ(network.Send(2, 0, 5000, At(0)), At(0.022));  // the way back is free
  EXPECT_EQ(network.Send(2, 3, 5000, At(1)), At(1.007));  // does not pass it
}

TEST(NetworkTest, GroupsWithoutALinkReachEachOtherOverTheHostsLinks) {
  Network network(FourHosts());

  EXPECT_EQ(network.Send(0, 3, 5000, At(0)), At(0.007));
}

TEST(NetworkTest, ABlockedMessageLeavesWhenTheBlockEnds) {
  Network network(FourHosts());
  network.Block(0, 1, At(3));
  network.Block(0, 1, At(2));  // does not shorten it

  EXPECT_EQ(network.Send(0, 1, 5000, At(1)), At(3.007));
  EXPECT_EQ(network.Send(0, 1, 5000, At(3)), At(3.007));
}

TEST(NetworkTest, ABlockHoldsUpNoOtherPairNorTheOtherDirection) {
  Network network(FourHosts());
  network.Block(0, 1, At(3));
  network.Send(0, 1, 5000, At(1));

  EXPECT_EQ(network.Send(1, 0, 5000, At(1)), At(1.007));
  EXPECT_EQ(network.Send(0, 2, 5000, At(1)), At(1.007));
  EXPECT_EQ(network.BlockedUntil(0, 1), At(3));
  EXPECT_EQ(network.blocked_until(), At(3));
}

TEST(NetworkTest, TheFirstOfTheCutsThatHoldHealsNext) {
  Network network(FourHosts());
  EXPECT_EQ(network.HealsAfter(At(0)), kNever);
  network.Block(0, 1, At(3));
  network.Block(1, 0, At(2));
  network.Block(2, 3, kNever);

  EXPECT_EQ(network.HealsAfter(At(1)), At(2));
  EXPECT_EQ(network.HealsAfter(At(2)), At(3));
  EXPECT_EQ(network.HealsAfter(At(3)), kNever);
}

TEST(NetworkTest, AMessageThatIsHeldBackForEverNeverArrivesAndPassesNothing) {
  Network network(FourHosts());
  network.Block(0, 1, kNever);

  EXPECT_EQ(network.Send(0, 1, 5000, At(1)), kNever);
  EXPECT_EQ(network.Send(0, 2, 5000, At(1)), At(1.007));
  EXPECT_DOUBLE_EQ(network.bytes_sent(), 5000);
}

TEST(NetworkTest, AMessageThatWaitsForOneThatNeverComesNeverArrivesEither) {
  ClusterModel cluster = FourHosts();
  for (HostModel& host : cluster.hosts) host.link.burst_bytes = 4000;
  Network network(cluster);

  for (const std::size_t to : {0, 1}) EXPECT_EQ(network.Send(0, to, 5000, kNever), kNever);
  EXPECT_EQ(network.Send(0, 1, 5000, At(1)), At(1.003));  // with all that was saved up
}

// 1e18 bytes at 1 MB/s would be 30,000 years.
TEST(NetworkTest, AQueueOfMillenniaLastsACentury) {
  Network network(FourHosts());
  network.Block(2, 3, At(1));

  EXPECT_GE(network.Send(2, 3, 1e18, At(0)), Instant{} + Way::kTimeMax);
  for (int i = 0; i < 5; ++i) {
    const Instant arrived = network.Send(0, 1, 1e18, At(i));

    EXPECT_GE(arrived, Instant{} + Way::kTimeMax);
    EXPECT_LE(arrived, Instant{} + Way::kTimeMax + Seconds(0.002));
  }
}

TEST(NetworkTest, BytesSentCountsEachMessageOnce) {
  ClusterModel cluster = FourHosts();
  cluster.between = {{.a = "a", .b = "b", .link = kLink}};
  Network network(cluster);
  network.Block(1, 0, At(1));

  network.Send(0, 1, 100, At(0));
  network.Send(0, 2, 20, At(0));
  network.Send(1, 0, 3, At(0));

  EXPECT_DOUBLE_EQ(network.bytes_sent(), 123);
}

}  // namespace
}  // namespace tactus::simulator
