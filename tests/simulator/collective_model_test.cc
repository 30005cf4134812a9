#include "simulator/collective_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace tactus::simulator {
namespace {

constexpr double kRate = 1e8;  // bytes/s: a byte takes 10 ns
constexpr double kLatency = 2e-5;
constexpr double kHop = 2 * kLatency;  // from host to host

constexpr Algorithm kAlgorithms[] = {Algorithm::kMesh, Algorithm::kRing,
                                     Algorithm::kRecursiveHalving, Algorithm::kTree};

Instant At(double seconds) { return Instant(Duration(std::llround(seconds * 1e9))); }

ClusterModel EqualHosts(std::size_t count) {
  ClusterModel cluster;
  for (std::size_t i = 0; i < count; ++i) {
    cluster.hosts.push_back({.name = std::to_string(i),
                             .link = {.latency_seconds = kLatency, .bytes_per_second = kRate}});
  }
  return cluster;
}

Places OneOnEachHost(std::size_t members) {
  Places places;
  for (std::size_t rank = 0; rank < members; ++rank) places.hosts.push_back(rank);
  return places;
}

std::vector<Instant> AllAt(std::size_t members, double seconds) {
  return std::vector<Instant>(members, At(seconds));
}

// When each member is done with an all-reduce, each on a host of its own.
std::vector<Instant> Reduce(Algorithm algorithm, const ClusterModel& cluster, double bytes,
                            const std::vector<Instant>& ready) {
  Network network(cluster);
  std::vector<Instant> finished(ready.size());
  RunAllReduce(algorithm, OneOnEachHost(ready.size()),
               {.bytes = bytes, .ready = ready, .finished = finished}, network);
  return finished;
}

Instant Last(const std::vector<Instant>& times) {
  return *std::max_element(times.begin(), times.end());
}

double BytesSent(Algorithm algorithm, std::size_t members, double bytes) {
  Network network(EqualHosts(members));
  std::vector<Instant> times = AllAt(members, 0);
  RunAllReduce(algorithm, OneOnEachHost(members),
               {.bytes = bytes, .ready = times, .finished = times}, network);
  return network.bytes_sent();
}

TEST(CollectiveModelTest, OneMemberAloneIsDoneAtOnce) {
  for (const Algorithm algorithm : kAlgorithms) {
    EXPECT_EQ(Reduce(algorithm, EqualHosts(1), 1e6, AllAt(1, 3)), AllAt(1, 3));
    EXPECT_EQ(BytesSent(algorithm, 1, 1e6), 0);
  }
}

TEST(CollectiveModelTest, ARingOnEqualLinksSendsTwiceAllButOneShare) {
  for (const std::size_t members : {2, 4, 5, 8, 100}) {
    const double bytes = 1e6 * static_cast<double>(members);
    const double steps = 2 * static_cast<double>(members - 1);

    EXPECT_EQ(Reduce(Algorithm::kRing, EqualHosts(members), bytes, AllAt(members, 1)),
              AllAt(members, 1 + steps * (1e6 / kRate + kHop)));
  }
}

TEST(CollectiveModelTest, HalvingAPowerOfTwoSendsTwiceAllButOneShare) {
  for (const std::size_t members : {2, 4, 8, 16}) {
    const double bytes = 1e6 * static_cast<double>(members);
    const double seconds = 2 * (bytes - 1e6) / kRate + 2 * std::log2(members) * kHop;

    EXPECT_EQ(Reduce(Algorithm::kRecursiveHalving, EqualHosts(members), bytes, AllAt(members, 1)),
              AllAt(members, 1 + seconds));
  }
}

TEST(CollectiveModelTest, HalvingBeyondAPowerOfTwoAddsAWholeBufferBeforeAndAfter) {
  const double bytes = 4e6;
  const double whole = bytes / kRate + kHop;
  const double core = 2 * (bytes * 3 / 4) / kRate + 4 * kHop;

  const std::vector<Instant> finished =
      Reduce(Algorithm::kRecursiveHalving, EqualHosts(6), bytes, AllAt(6, 0));

  // What 2 and 3 send had arrived long before 0 and 1 had theirs from 4 and 5, which therefore sent
  // two messages in a row and so saved 2 and 3 the latency of one.
  const Instant core_done = At(whole + core);
  const Instant saved = At(whole + core - kHop);
  const Instant all_done = At(whole + core + whole);
  EXPECT_EQ(finished,
            (std::vector<Instant>{core_done, core_done, saved, saved, all_done, all_done}));
}

TEST(CollectiveModelTest, ATreeIsAsDeepAsTheLogarithmOfItsMembers) {
  const double bytes = 1e6;
  for (const std::size_t members : {2, 3, 4, 5, 8, 9, 16}) {
    const double depth = std::ceil(std::log2(members));

    const std::vector<Instant> finished =
        Reduce(Algorithm::kTree, EqualHosts(members), bytes, AllAt(members, 0));

    const double level = bytes / kRate + kHop;
    // Members without children send early, so the root may be spared a latency for each level.
    EXPECT_LE(finished[0], At(depth * level)) << members;
    EXPECT_GE(finished[0], At(depth * (level - kHop) + kHop)) << members;
    if (!std::has_single_bit(members)) continue;
    // A parent's messages leave one behind the other; the longest chain waits for none.
    EXPECT_EQ(Last(finished), At(2 * depth * level)) << members;
  }
}

TEST(CollectiveModelTest, AMeshSendsShortBuffersWholeInOneStep) {
  const double bytes = 4 * 4096 / 1.5;  // extra: (n - 1)(n - 2) / n = 1.5 lengths at n = 4
  const double longer = bytes + 4;

  EXPECT_EQ(Reduce(Algorithm::kMesh, EqualHosts(4), 8000, AllAt(4, 0)),
            AllAt(4, 3 * 8000 / kRate + kHop));
  EXPECT_DOUBLE_EQ(BytesSent(Algorithm::kMesh, 4, bytes), 12 * bytes);
  EXPECT_DOUBLE_EQ(BytesSent(Algorithm::kMesh, 4, longer), 6 * longer);
}

TEST(CollectiveModelTest, AMeshOfTwoIsOneExchangeOfAPiece) {
  EXPECT_EQ(Reduce(Algorithm::kMesh, EqualHosts(2), 4e6, AllAt(2, 0)),
            AllAt(2, 4e6 / kRate + kHop));
}

TEST(CollectiveModelTest, AMeshSendsLongBuffersInTwoStepsAPiece) {
  const double piece = 4 * (1 << 20);
  for (const std::size_t members : {4, 100}) {
    const double share = static_cast<double>(members - 1) / static_cast<double>(members);
    const auto seconds = [&](double bytes) { return 2 * bytes * share / kRate + 2 * kHop; };

    const Instant one =
        Last(Reduce(Algorithm::kMesh, EqualHosts(members), piece, AllAt(members, 0)));
    const Instant three =
        Last(Reduce(Algorithm::kMesh, EqualHosts(members), 2.5 * piece, AllAt(members, 0)));

    // Each message's time is rounded to a nanosecond.
    EXPECT_NEAR(ToSeconds(one - At(0)), seconds(piece), 4e-7);
    EXPECT_NEAR(ToSeconds(three - At(0)), 2 * seconds(piece) + seconds(piece / 2), 2e-6);
  }
}

TEST(CollectiveModelTest, InAMeshTheLengthOfAPieceDecidesHowItGoes) {
  const double piece = 4 * (1 << 20);
  const double rest = 400;

  EXPECT_DOUBLE_EQ(BytesSent(Algorithm::kMesh, 4, piece + rest), 6 * piece + 12 * rest);
}

TEST(CollectiveModelTest, InAMeshOneSlowLinkHoldsUpBothSteps) {
  ClusterModel cluster = EqualHosts(4);
  cluster.hosts[3].link.bytes_per_second = kRate / 10;

  const std::vector<Instant> finished = Reduce(Algorithm::kMesh, cluster, 4e6, AllAt(4, 0));

  EXPECT_NEAR(ToSeconds(Last(finished) - At(0)), 2 * 3e6 / (kRate / 10), 1e-3);
}

TEST(CollectiveModelTest, TheSlowestLinkDecides) {
  for (const Algorithm algorithm : kAlgorithms) {
    ClusterModel cluster = EqualHosts(8);
    const Instant equal = Last(Reduce(algorithm, cluster, 8e6, AllAt(8, 0)));
    for (HostModel& host : cluster.hosts) host.link.bytes_per_second = 100 * kRate;
    cluster.hosts[3].link.bytes_per_second = kRate;

    const double seconds = ToSeconds(Last(Reduce(algorithm, cluster, 8e6, AllAt(8, 0))) - At(0));

    // What passes the slow host's link takes as long as before; the others' part hardly counts.
    EXPECT_GE(seconds, 2 * 7e6 / kRate);
    EXPECT_LE(seconds, ToSeconds(equal - At(0)));
  }
}

// A megabyte at a nanobyte a second is 30 million years, which no Instant holds.
TEST(CollectiveModelTest, LinksThatTakeMillenniaAreNotFree) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (const std::size_t members : {2, 6, 70}) {
      ClusterModel cluster = EqualHosts(members);
      for (HostModel& host : cluster.hosts) host.link.bytes_per_second = 1e-9;

      const std::vector<Instant> finished = Reduce(algorithm, cluster, 1e6, AllAt(members, 0));

      EXPECT_GE(*std::min_element(finished.begin(), finished.end()), At(86400)) << members;
    }
  }
}

TEST(CollectiveModelTest, ALateMemberDelaysAllInAnAllReduce) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (std::size_t late = 0; late < 6; ++late) {
      std::vector<Instant> ready = AllAt(6, 0);
      ready[late] = At(5);

      const std::vector<Instant> finished = Reduce(algorithm, EqualHosts(6), 1e6, ready);

      // Nobody but the root of a tree, when it is the late one, is done at once.
      const auto is_root = algorithm == Algorithm::kTree && late == 0;
      EXPECT_EQ(std::count(finished.begin(), finished.end(), At(5)), is_root ? 1 : 0);
      EXPECT_GE(*std::min_element(finished.begin(), finished.end()), At(5));
    }
  }
}

TEST(CollectiveModelTest, ALateMemberOfAMeshFindsTheOthersMessagesDelivered) {
  std::vector<Instant> ready = AllAt(4, 0);
  ready[2] = At(5);

  const std::vector<Instant> finished = Reduce(Algorithm::kMesh, EqualHosts(4), 4e6, ready);

  // From 5 s on, it sends three chunks, and its own sum at once behind them; the others send their
  // sums when they have its chunks. Nothing waits for what arrived before.
  const double step = 3e6 / kRate;
  EXPECT_EQ(Last(finished), At(5 + 2 * step + kHop + kHop));
}

TEST(CollectiveModelTest, MembersOfOneHostShareItsLink) {
  const Places places = {.hosts = {0, 0, 1, 1}};
  // Each way: of a mesh four quarters a step, of halving two quarters in two of its four steps.
  const std::pair<Algorithm, double> each_way[] = {{Algorithm::kMesh, 8e6},
                                                   {Algorithm::kRecursiveHalving, 4e6}};
  for (const auto& [algorithm, bytes] : each_way) {
    ClusterModel cluster = EqualHosts(2);
    cluster.local = {.latency_seconds = 0, .bytes_per_second = 1e15};
    Network network(cluster);
    std::vector<Instant> times = AllAt(4, 0);

    RunAllReduce(algorithm, places, {.bytes = 4e6, .ready = times, .finished = times}, network);

    EXPECT_DOUBLE_EQ(network.bytes_sent(), 2 * bytes);
    // Messages of two members that follow each other save a latency.
    EXPECT_NEAR(ToSeconds(Last(times) - At(0)), bytes / kRate + 2 * kHop, kHop);
  }
}

TEST(CollectiveModelTest, BytesSentFollowTheAlgorithm) {
  for (const std::size_t members : {2, 3, 4, 5, 6, 8, 13, 70}) {
    const auto others = static_cast<double>(members - 1);
    for (const Algorithm algorithm : kAlgorithms) {
      EXPECT_NEAR(BytesSent(algorithm, members, 1e6), 2 * others * 1e6, 1) << members;
    }
  }
}

TEST(CollectiveModelTest, ABroadcastSendsTheBufferOnceToEachOther) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (const std::size_t members : {1, 2, 3, 5, 8, 70}) {
      Network network(EqualHosts(members));
      std::vector<Instant> times = AllAt(members, 1);
      const int root = static_cast<int>(members / 2);

      RunBroadcast(algorithm, OneOnEachHost(members), root,
                   {.bytes = 1e6, .ready = times, .finished = times}, network);

      EXPECT_NEAR(network.bytes_sent(), static_cast<double>(members - 1) * 1e6, 1);
      EXPECT_EQ(std::count(times.begin(), times.end(), At(1)), 1);
      EXPECT_EQ(times[members / 2], At(1));
    }
  }
}

TEST(CollectiveModelTest, ABroadcastOverATreeTakesALevelEachDoubling) {
  Network network(EqualHosts(8));
  std::vector<Instant> times = AllAt(8, 0);

  RunBroadcast(Algorithm::kTree, OneOnEachHost(8), 5,
               {.bytes = 1e6, .ready = times, .finished = times}, network);

  EXPECT_EQ(times[(5 + 4) % 8], At(1e6 / kRate + kHop));
  EXPECT_EQ(Last(times), At(3 * (1e6 / kRate + kHop)));
}

TEST(CollectiveModelTest, AnEarlyRootOfABroadcastWaitsForNobodyAndNobodyElseForTheLate) {
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kMesh}) {
    Network network(EqualHosts(4));
    std::vector<Instant> times = AllAt(4, 0);
    times[3] = At(9);

    RunBroadcast(algorithm, OneOnEachHost(4), 0, {.bytes = 1000, .ready = times, .finished = times},
                 network);

    EXPECT_EQ(times[0], At(0));
    EXPECT_LT(times[1], At(0.1));
    EXPECT_EQ(times[3], At(9));
  }
}

TEST(CollectiveModelTest, NeighboursOnARingOfFiveExchangeTwoBuffersEach) {
  Network network(EqualHosts(5));
  std::vector<Instant> times = AllAt(5, 0);
  const std::vector<std::vector<std::size_t>> ring = {{1, 4}, {2, 0}, {3, 1}, {4, 2}, {0, 3}};

  RunNeighbourExchange(OneOnEachHost(5), ring, {.bytes = 1e6, .ready = times, .finished = times},
                       network);

  EXPECT_EQ(times, AllAt(5, 2e6 / kRate + kHop));
  EXPECT_DOUBLE_EQ(network.bytes_sent(), 10e6);
}

TEST(CollectiveModelTest, MessagesOfSomeGoLikeThoseOfNeighbours) {
  Network network(EqualHosts(5));
  std::vector<Instant> times = AllAt(5, 0);
  Messages ring(5, std::vector<double>(5));
  for (std::size_t i = 0; i < 5; ++i) ring[i][(i + 1) % 5] = ring[i][(i + 4) % 5] = 1e6;

  RunMessages(OneOnEachHost(5), ring, {.ready = times, .finished = times}, network);

  EXPECT_EQ(times, AllAt(5, 2e6 / kRate + kHop));
  EXPECT_DOUBLE_EQ(network.bytes_sent(), 10e6);
}

TEST(CollectiveModelTest, MessagesMayDifferAndWhoIsSentNothingWaitsForNobody) {
  Network network(EqualHosts(4));
  std::vector<Instant> times = AllAt(4, 0);
  times[3] = At(5);
  Messages messages(4, std::vector<double>(4));
  messages[0][1] = 3e6;
  messages[0][2] = 1e6;
  messages[3][2] = 1e6;

  RunMessages(OneOnEachHost(4), messages, {.ready = times, .finished = times}, network);

  EXPECT_EQ(times[0], At(0));
  EXPECT_EQ(times[1], At(4e6 / kRate + kHop)) << "behind the shorter one, on the same way out";
  EXPECT_EQ(times[2], At(5 + 1e6 / kRate + kHop));
  EXPECT_EQ(times[3], At(5));
  EXPECT_DOUBLE_EQ(network.bytes_sent(), 5e6);
}

TEST(CollectiveModelTest, OnlyTheNeighboursOfALateMemberWaitForIt) {
  Network network(EqualHosts(5));
  std::vector<Instant> times = AllAt(5, 0);
  times[0] = At(5);
  const std::vector<std::vector<std::size_t>> ring = {{1, 4}, {2, 0}, {3, 1}, {4, 2}, {0, 3}};

  RunNeighbourExchange(OneOnEachHost(5), ring, {.bytes = 1e6, .ready = times, .finished = times},
                       network);

  const Instant late = At(5 + 2e6 / kRate + kHop);
  const Instant early = At(2e6 / kRate + kHop);
  EXPECT_EQ(times, (std::vector<Instant>{At(5), late, early, early, late}));
}

TEST(CollectiveModelTest, ABlockBetweenTwoMembersDelaysAnAllReduceOfManyAndFew) {
  for (const std::size_t members : {std::size_t{4}, kMessagesMembersMax + 1}) {
    for (const Algorithm algorithm : {Algorithm::kMesh, Algorithm::kRing}) {
      Network network(EqualHosts(members));
      network.Block(1, 2, At(7));
      std::vector<Instant> times = AllAt(members, 0);

      RunAllReduce(algorithm, OneOnEachHost(members),
                   {.bytes = 1e6, .ready = times, .finished = times}, network);

      EXPECT_GT(times[2], At(7));
    }
  }
}

// A random cluster with a member on each host, and an all-reduce on it.
struct Case {
  ClusterModel cluster{};
  Algorithm algorithm = Algorithm::kMesh;
  double bytes = 0;
  std::vector<Instant> ready{};
};

Case RandomCase(Rng& rng) {
  Case made;
  const std::size_t members = 1 + rng.Below(80);
  made.cluster = EqualHosts(members);
  for (HostModel& host : made.cluster.hosts) {
    host.link.bytes_per_second = kRate * std::exp(2 * rng.Uniform());
    host.link.latency_seconds = 1e-3 * rng.Uniform();
    made.ready.push_back(At(0.1 * rng.Uniform()));
  }
  made.algorithm = kAlgorithms[rng.Below(4)];
  // Long enough for kMesh to cut it: a buffer that is just too short for that takes longer.
  made.bytes = 1e5 * std::exp(4 * rng.Uniform());
  return made;
}

TEST(CollectiveModelPropertyTest, MoreBytesALowerRateOrALaterStartNeverFinishEarlier) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    Case made = RandomCase(rng);
    const std::vector<Instant> before =
        Reduce(made.algorithm, made.cluster, made.bytes, made.ready);
    const std::size_t changed = rng.Below(made.ready.size());
    const auto change = rng.Below(3);

    if (change == 0) made.bytes *= 1 + rng.Uniform();
    if (change == 1) made.cluster.hosts[changed].link.bytes_per_second *= 1 - 0.9 * rng.Uniform();
    if (change == 2) made.ready[changed] += Seconds(0.1 * rng.Uniform());
    const std::vector<Instant> after = Reduce(made.algorithm, made.cluster, made.bytes, made.ready);

    for (std::size_t rank = 0; rank < before.size(); ++rank) {
      ASSERT_GE(before[rank], made.ready[rank] - Seconds(0.1)) << "seed " << seed;
      ASSERT_GE(after[rank], before[rank]) << "seed " << seed << " rank " << rank;
    }
  }
}

}  // namespace
}  // namespace tactus::simulator
