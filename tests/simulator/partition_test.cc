// Collectives over a network that holds messages back for ever.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "simulator/collective_model.h"

namespace tactus::simulator {
namespace {

constexpr Algorithm kAlgorithms[] = {Algorithm::kMesh, Algorithm::kRing,
                                     Algorithm::kRecursiveHalving, Algorithm::kTree};

// The second has its messages sent as loads where none is held back.
constexpr std::size_t kSizes[] = {6, kMessagesMembersMax + 6};

Instant At(double seconds) { return Instant{} + Seconds(seconds); }

ClusterModel EqualHosts(std::size_t count) {
  ClusterModel cluster;
  for (std::size_t i = 0; i < count; ++i) {
    cluster.hosts.push_back({.name = std::to_string(i), .link = {.bytes_per_second = 1e8}});
  }
  return cluster;
}

Places OneOnEachHost(std::size_t members) {
  Places places;
  for (std::size_t rank = 0; rank < members; ++rank) places.hosts.push_back(rank);
  return places;
}

// When each member is done with an all-reduce of a megabyte that all start at zero.
std::vector<Instant> Reduce(Algorithm algorithm, std::size_t members, Network& network) {
  std::vector<Instant> times(members, At(0));
  RunAllReduce(algorithm, OneOnEachHost(members), {.bytes = 1e6, .ready = times, .finished = times},
               network);
  return times;
}

TEST(PartitionTest, AnAllReduceIsNeverDoneForWhomMessagesDoNotReach) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (const std::size_t members : kSizes) {
      Network network(EqualHosts(members));
      network.Block(0, 1, kNever);

      const std::vector<Instant> finished = Reduce(algorithm, members, network);

      EXPECT_EQ(finished[1], kNever);
      EXPECT_GT(*std::ranges::min_element(finished), At(0));
    }
  }
}

TEST(PartitionTest, ABroadcastIsNeverDoneForWhomMessagesDoNotReach) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (const std::size_t members : kSizes) {
      Network network(EqualHosts(members));
      network.Block(0, 1, kNever);
      std::vector<Instant> times(members, At(1));

      RunBroadcast(algorithm, OneOnEachHost(members), 0,
                   {.bytes = 1e6, .ready = times, .finished = times}, network);

      EXPECT_EQ(times[0], At(1));
      EXPECT_EQ(times[1], kNever);
      EXPECT_GE(*std::ranges::min_element(times), At(1));
    }
  }
}

TEST(PartitionTest, NobodyIsDoneWhenAllBeginNever) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (const std::size_t members : kSizes) {
      Network network(EqualHosts(members));
      std::vector<Instant> times(members, kNever);

      RunAllReduce(algorithm, OneOnEachHost(members),
                   {.bytes = 1e6, .ready = times, .finished = times}, network);

      EXPECT_EQ(std::ranges::count(times, kNever), static_cast<std::ptrdiff_t>(members));
      EXPECT_EQ(network.bytes_sent(), 0);
    }
  }
}

TEST(PartitionTest, ItHoldsUpNobodyElseLater) {
  for (const Algorithm algorithm : kAlgorithms) {
    Network network(EqualHosts(8));
    network.Block(6, 7, kNever);
    Reduce(algorithm, 8, network);
    std::vector<Instant> times(4, At(1000));

    RunAllReduce(algorithm, OneOnEachHost(4), {.bytes = 1e6, .ready = times, .finished = times},
                 network);

    EXPECT_LT(*std::ranges::max_element(times), At(1000.1));
  }
}

// Who would have to wait for the end of a partition of a year waits for ever, and nobody else
// notices the difference.
TEST(PartitionPropertyTest, ForEverIsLikeAYearThatDoesNotEnd) {
  const Instant year = At(365 * 86400.0);
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Rng rng(seed);
    const std::size_t members = 2 + rng.Below(12);
    const Algorithm algorithm = kAlgorithms[rng.Below(4)];
    Network ever(EqualHosts(members));
    Network once(EqualHosts(members));
    for (std::uint64_t pairs = 1 + rng.Below(3); pairs > 0; --pairs) {
      const std::size_t from = rng.Below(members);
      const std::size_t to = (from + 1 + rng.Below(members - 1)) % members;
      ever.Block(from, to, kNever);
      once.Block(from, to, year);
    }

    const std::vector<Instant> never = Reduce(algorithm, members, ever);
    const std::vector<Instant> late = Reduce(algorithm, members, once);

    for (std::size_t rank = 0; rank < members; ++rank) {
      const Instant expected = late[rank] < year ? late[rank] : kNever;
      ASSERT_EQ(never[rank], expected) << "seed " << seed << " rank " << rank;
    }
  }
}

}  // namespace
}  // namespace tactus::simulator
