// The fast forms of an exchange and of a ring against their slow twins, message by message.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "base/rng.h"
#include "simulator/exchange.h"
#include "simulator/ring.h"

namespace tactus::simulator {
namespace {

// What a random case may have.
struct Features {
  bool unequal = true;  // rates within a factor of ten, latencies up to a millisecond
  bool bursts = false;
  bool groups = false;        // up to four, with links between them
  bool shared_hosts = false;  // several members on a host, in a row or dealt out in turn
  bool late_starts = true;
};

struct Case {
  ClusterModel cluster{};
  std::vector<std::size_t> hosts{};
  double bytes = 0;  // of a message, 1 kB to 10 MB
  std::vector<Instant> ready{};
};

Case RandomCase(std::size_t members_min, const Features& features, Rng& rng) {
  Case made;
  const std::size_t members = members_min + rng.Below(49 - members_min);
  const std::size_t hosts = features.shared_hosts ? 1 + rng.Below(members) : members;
  const std::size_t groups = features.groups ? 1 + rng.Below(std::min<std::size_t>(hosts, 4)) : 1;
  for (std::size_t i = 0; i < hosts; ++i) {
    LinkModel link;
    if (features.bursts) link.burst_bytes = 1e5 * rng.Uniform();
    if (features.unequal) link.bytes_per_second = 1.25e7 * std::exp(std::log(10) * rng.Uniform());
    if (features.unequal) link.latency_seconds = 1e-3 * rng.Uniform();
    made.cluster.hosts.push_back(
        {.name = std::to_string(i), .group = std::to_string(i * groups / hosts), .link = link});
  }
  for (std::size_t a = 0; a < groups; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      made.cluster.between.push_back(
          {.a = std::to_string(a),
           .b = std::to_string(b),
           .link = {.latency_seconds = 1e-3, .bytes_per_second = features.unequal ? 1e8 : 2e9}});
    }
  }
  const bool in_a_row = rng.Below(2) == 0;
  for (std::size_t rank = 0; rank < members; ++rank) {
    made.hosts.push_back(in_a_row ? rank * hosts / members : rank % hosts);
    const double late = features.late_starts ? 0.5 * rng.Uniform() * rng.Uniform() : 0;
    made.ready.push_back(Instant{} + Seconds(late));
  }
  made.bytes = 1e3 * std::exp(std::log(1e4) * rng.Uniform());
  return made;
}

struct Twins {
  std::vector<Instant> slow{};
  std::vector<Instant> fast{};
  Network slow_network;
  Network fast_network;

  explicit Twins(const Case& made)
      : slow(made.ready),
        fast(made.ready),
        slow_network(made.cluster),
        fast_network(made.cluster) {}

  // By how much the fast form is off, as a share of the time since the first member's start: for
  // the worst member, and for the last one to finish.
  double WorstMember(const Case& made) const {
    double worst = 0;
    for (std::size_t rank = 0; rank < slow.size(); ++rank) {
      worst = std::max(worst, Difference(made, slow[rank], fast[rank]));
    }
    return worst;
  }
  double End(const Case& made) const {
    return Difference(made, *std::max_element(slow.begin(), slow.end()),
                      *std::max_element(fast.begin(), fast.end()));
  }

 private:
  static double Difference(const Case& made, Instant a, Instant b) {
    const Instant start = *std::min_element(made.ready.begin(), made.ready.end());
    return a == b ? 0 : std::abs(ToSeconds(b - a)) / ToSeconds(a - start);
  }
};

// Two steps, as of an all-reduce.
Twins ExchangeTwice(const Case& made) {
  Twins twins(made);
  const Exchange exchange{.hosts = made.hosts, .bytes = made.bytes};
  for (int step = 0; step < 2; ++step) {
    ExchangeByMessages(exchange, twins.slow, twins.slow_network);
    ExchangeByLoads(exchange, twins.fast, twins.fast_network);
  }
  return twins;
}

Twins GoRound(const Case& made) {
  Twins twins(made);
  const RingSteps ring{
      .hosts = made.hosts, .bytes = made.bytes, .steps = 2 * (made.hosts.size() - 1)};
  RingByMessages(ring, twins.slow, twins.slow_network);
  RingByLoads(ring, twins.fast, twins.fast_network);
  return twins;
}

TEST(ExchangeTwinTest, AgreesWithinAMessageAStepWhereEachMemberHasItsHost) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed);
    const Case made = RandomCase(2, {.bursts = seed % 2 == 0, .late_starts = seed % 3 == 0}, rng);

    const Twins twins = ExchangeTwice(made);

    // Each step may be off by one message on the slowest way in, and the second takes over what the
    // first was off; the times of messages are rounded to a nanosecond each.
    double rate_min = 1e18;
    for (const HostModel& host : made.cluster.hosts) {
      rate_min = std::min(rate_min, host.link.bytes_per_second);
    }
    const double bound =
        2 * (made.bytes / rate_min + 1e-9 * static_cast<double>(made.hosts.size()));
    for (std::size_t rank = 0; rank < made.hosts.size(); ++rank) {
      ASSERT_LE(std::abs(ToSeconds(twins.fast[rank] - twins.slow[rank])), bound)
          << "seed " << seed << " rank " << rank;
    }
  }
}

TEST(ExchangeTwinTest, AgreesToTheRoundingOnEqualLinks) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const Case made = RandomCase(2, {.unequal = false, .late_starts = false}, rng);

    const Twins twins = ExchangeTwice(made);

    const Duration rounding(2 * static_cast<Duration::rep>(made.hosts.size()));
    for (std::size_t rank = 0; rank < made.hosts.size(); ++rank) {
      ASSERT_LE(std::chrono::abs(twins.fast[rank] - twins.slow[rank]), rounding) << "seed " << seed;
    }
  }
}

// Measured over 20,000 cases: up to 12.7 % for a member, where a group of one or two hosts has a
// slow link to the others, and 6.3 % for the last to finish.
TEST(ExchangeTwinTest, AgreesWithinAFewPercentWhereHostsAndGroupsAreShared) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed);
    const Case made = RandomCase(12,
                                 {.unequal = seed % 2 == 0,
                                  .bursts = seed % 3 == 0,
                                  .groups = seed % 5 != 0,
                                  .shared_hosts = seed % 7 != 0,
                                  .late_starts = seed % 4 == 0},
                                 rng);

    const Twins twins = ExchangeTwice(made);

    ASSERT_LE(twins.WorstMember(made), 0.15) << "seed " << seed;
    ASSERT_LE(twins.End(made), 0.08) << "seed " << seed;
  }
}

TEST(ExchangeTwinTest, BothFormsSendTheSameBytesAlsoWithASparedRank) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    const Case made = RandomCase(2, {.groups = true, .shared_hosts = true}, rng);
    const Exchange exchange{
        .hosts = made.hosts, .bytes = made.bytes, .spared = rng.Below(made.hosts.size())};
    Twins twins(made);

    ExchangeByMessages(exchange, twins.slow, twins.slow_network);
    ExchangeByLoads(exchange, twins.fast, twins.fast_network);

    ASSERT_NEAR(twins.fast_network.bytes_sent(), twins.slow_network.bytes_sent(),
                1e-9 * twins.slow_network.bytes_sent())
        << "seed " << seed;
    ASSERT_EQ(twins.fast[*exchange.spared], made.ready[*exchange.spared]) << "seed " << seed;
  }
}

TEST(RingTwinTest, EqualsTheMessagesWhereEachMemberHasItsHost) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed);
    const Case made = RandomCase(2, {.unequal = seed % 2 == 0, .late_starts = seed % 3 == 0}, rng);

    const Twins twins = GoRound(made);

    ASSERT_EQ(twins.fast, twins.slow) << "seed " << seed;
    ASSERT_NEAR(twins.fast_network.bytes_sent(), twins.slow_network.bytes_sent(),
                1e-9 * twins.slow_network.bytes_sent());
  }
}

// Measured over 20,000 cases: up to 13.9 %, of a ring that bursts carry the most part of.
TEST(RingTwinTest, AgreesWithinFifteenPercentWithBursts) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed);
    const Case made =
        RandomCase(12, {.bursts = true, .groups = true, .late_starts = seed % 2 == 0}, rng);

    ASSERT_LE(GoRound(made).WorstMember(made), 0.15) << "seed " << seed;
  }
}

// Measured over 20,000 cases: up to 49 % for a member and 24 % for the last to finish, but above 10
// % in only 3.3 % and 0.9 % of them. Worst are hosts whose members start late and are not
// neighbours on the ring, so that one way carries messages of many steps at once.
TEST(RingTwinTest, AgreesRoughlyWhereHostsAreShared) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed);
    const Case made = RandomCase(12,
                                 {.unequal = seed % 2 == 0,
                                  .groups = seed % 3 == 0,
                                  .shared_hosts = true,
                                  .late_starts = seed % 5 == 0},
                                 rng);

    const Twins twins = GoRound(made);

    ASSERT_LE(twins.WorstMember(made), 0.55) << "seed " << seed;
    ASSERT_LE(twins.End(made), 0.26) << "seed " << seed;
  }
}

TEST(RingTwinTest, AFollowingRingFindsTheWaysAsTheMessagesLeaveThem) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const Case made = RandomCase(2, {.late_starts = seed % 2 == 0}, rng);
    Twins twins = GoRound(made);
    const RingSteps ring{.hosts = made.hosts, .bytes = made.bytes, .steps = 3};

    // At the times of the first one's start, so that every queue of its is met.
    twins.slow = twins.fast = made.ready;
    RingByMessages(ring, twins.slow, twins.slow_network);
    RingByMessages(ring, twins.fast, twins.fast_network);

    ASSERT_LE(twins.WorstMember(made), 0.1) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tactus::simulator
