#include "simulator/collective_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <optional>

#include "agent/collective/mesh_costs.h"
#include "base/check.h"
#include "simulator/exchange.h"
#include "simulator/ring.h"

namespace tactus::simulator {
namespace {

constexpr double kElementBytes = 4;

constexpr double kExtraLengthMax{collective::kExtraLengthMax};
constexpr double kPieceLength{collective::kPieceLength};

// The members of a call on their network. `times` [members] are, all along, when each can go on.
struct Members {
  std::span<const std::size_t> hosts;
  std::span<Instant> times;
  Network& network;

  std::size_t size() const { return hosts.size(); }

  // `from` sends when it can; `to` goes on when it has received.
  void Send(std::size_t from, std::size_t to, double bytes) const {
    times[to] = std::max(times[to], network.Send(hosts[from], hosts[to], bytes, times[from]));
  }

  // The same in both directions at once.
  void Swap(std::size_t a, std::size_t b, double bytes) const {
    const Instant at_b = network.Send(hosts[a], hosts[b], bytes, times[a]);
    const Instant at_a = network.Send(hosts[b], hosts[a], bytes, times[b]);
    times[a] = std::max(times[a], at_a);
    times[b] = std::max(times[b], at_b);
  }

  bool takes_messages() const {
    if (size() <= kMessagesMembersMax) return true;
    const auto [first, last] = std::ranges::minmax(times);
    return first < network.blocked_until() || last == kNever;
  }
};

// Calls `step` with the lengths of the pieces of a buffer. [elements]
template <typename Step>
void ForEachPiece(double length, const Step& step) {
  for (; length > 0; length -= kPieceLength) step(std::min(length, kPieceLength));
}

void ExchangeAll(const Members& members, double bytes, std::optional<std::size_t> spared) {
  const Exchange exchange{.hosts = members.hosts, .bytes = bytes, .spared = spared};
  const auto run = members.takes_messages() ? ExchangeByMessages : ExchangeByLoads;
  run(exchange, members.times, members.network);
}

void ReduceOverMesh(const Members& members, double bytes) {
  const auto count = static_cast<double>(members.size());
  ForEachPiece(bytes / kElementBytes, [&](double piece) {
    const double extra = piece * (count - 1) * (count - 2) / count;
    const bool whole = std::floor(extra) <= kExtraLengthMax;
    if (whole) return ExchangeAll(members, piece * kElementBytes, std::nullopt);
    const double chunk = piece * kElementBytes / count;
    ExchangeAll(members, chunk, std::nullopt);  // to the owners
    ExchangeAll(members, chunk, std::nullopt);  // and back
  });
}

// The root's own chunk travels in the second step, like everybody's.
void BroadcastOverMesh(const Members& members, std::size_t root, double bytes) {
  const auto count = static_cast<double>(members.size());
  std::vector<std::size_t> all(members.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto scatter = [&](double each) {
    const Fan fan{.sender = root, .receivers = all, .bytes = each, .ready = members.times[root]};
    SendFans(members.hosts, {&fan, 1}, members.times, members.network);
  };
  ForEachPiece(bytes / kElementBytes, [&](double piece) {
    if (piece * (count - 2) <= kExtraLengthMax) return scatter(piece * kElementBytes);
    const double chunk = piece * kElementBytes / count;
    scatter(chunk);
    ExchangeAll(members, chunk, root);
  });
}

void ReduceOverRing(const Members& members, double bytes) {
  const RingSteps ring{.hosts = members.hosts,
                       .bytes = bytes / static_cast<double>(members.size()),
                       .steps = 2 * (members.size() - 1)};
  const auto run = members.takes_messages() ? RingByMessages : RingByLoads;
  run(ring, members.times, members.network);
}

void ReduceByHalving(const Members& members, double bytes) {
  const std::size_t core = std::bit_floor(members.size());
  const auto swap_all = [&](std::size_t distance) {
    const double part = bytes / static_cast<double>(2 * distance);
    for (std::size_t rank = 0; rank < core; ++rank) {
      if ((rank & distance) == 0) members.Swap(rank, rank + distance, part);
    }
  };
  for (std::size_t rank = core; rank < members.size(); ++rank) {
    members.Send(rank, rank - core, bytes);
  }
  for (std::size_t distance = 1; distance < core; distance *= 2) swap_all(distance);
  for (std::size_t distance = core / 2; distance > 0; distance /= 2) swap_all(distance);
  for (std::size_t rank = core; rank < members.size(); ++rank) {
    members.Send(rank - core, rank, bytes);
  }
}

// Ranks are counted from the root of the tree.
void GatherUpTree(const Members& members, double bytes) {
  for (std::size_t distance = 1; distance < members.size(); distance *= 2) {
    for (std::size_t rank = distance; rank < members.size(); rank += 2 * distance) {
      members.Send(rank, rank - distance, bytes);
    }
  }
}

void SendDownTree(const Members& members, std::size_t root, double bytes) {
  const auto member = [&](std::size_t rank) { return (rank + root) % members.size(); };
  for (std::size_t distance = std::bit_ceil(members.size()) / 2; distance > 0; distance /= 2) {
    for (std::size_t rank = distance; rank < members.size(); rank += 2 * distance) {
      members.Send(member(rank - distance), member(rank), bytes);
    }
  }
}

// Returns the members with their times at `ready`.
Members Begin(const Places& places, const CollectiveCall& call, Network& network) {
  TACTUS_CHECK(!places.hosts.empty() && call.bytes >= 0);
  TACTUS_CHECK(call.ready.size() == places.hosts.size());
  TACTUS_CHECK(call.finished.size() == places.hosts.size());
  for (const std::size_t host : places.hosts) TACTUS_CHECK(host < network.hosts());
  if (call.ready.data() != call.finished.data()) {
    std::copy(call.ready.begin(), call.ready.end(), call.finished.begin());
  }
  return {.hosts = places.hosts, .times = call.finished, .network = network};
}

}  // namespace

void RunAllReduce(Algorithm algorithm, const Places& places, const CollectiveCall& call,
                  Network& network) {
  const Members members = Begin(places, call, network);
  if (members.size() == 1) return;
  switch (algorithm) {
    case Algorithm::kMesh:
      return ReduceOverMesh(members, call.bytes);
    case Algorithm::kRing:
      return ReduceOverRing(members, call.bytes);
    case Algorithm::kRecursiveHalving:
      return ReduceByHalving(members, call.bytes);
    case Algorithm::kTree:
      GatherUpTree(members, call.bytes);
      return SendDownTree(members, 0, call.bytes);
  }
}

void RunBroadcast(Algorithm algorithm, const Places& places, int root, const CollectiveCall& call,
                  Network& network) {
  const Members members = Begin(places, call, network);
  const auto root_rank = static_cast<std::size_t>(root);
  TACTUS_CHECK(root_rank < members.size());
  if (members.size() == 1) return;
  if (algorithm == Algorithm::kMesh) return BroadcastOverMesh(members, root_rank, call.bytes);
  SendDownTree(members, root_rank, call.bytes);
}

void RunMessages(const Places& places, const Messages& messages, const CollectiveCall& call,
                 Network& network) {
  const Members members = Begin(places, call, network);
  TACTUS_CHECK(messages.size() == members.size());
  std::deque<std::vector<std::size_t>> receivers;  // which the fans refer to
  std::vector<Fan> fans;
  for (std::size_t sender = 0; sender < members.size(); ++sender) {
    std::map<double, std::vector<std::size_t>> by_size;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      const double bytes = messages[sender][rank];
      if (rank != sender && bytes > 0) by_size[bytes].push_back(rank);
    }
    for (auto& [bytes, ranks] : by_size) {
      receivers.push_back(std::move(ranks));
      fans.push_back({.sender = sender,
                      .receivers = receivers.back(),
                      .bytes = bytes,
                      .ready = members.times[sender]});
    }
  }
  SendFans(members.hosts, fans, members.times, network);
}

void RunNeighbourExchange(const Places& places,
                          const std::vector<std::vector<std::size_t>>& neighbours,
                          const CollectiveCall& call, Network& network) {
  TACTUS_CHECK(neighbours.size() == places.hosts.size());
  const Members members = Begin(places, call, network);
  std::vector<Fan> fans;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    fans.push_back({.sender = rank,
                    .receivers = neighbours[rank],
                    .bytes = call.bytes,
                    .ready = members.times[rank]});
  }
  SendFans(members.hosts, fans, members.times, members.network);
}

void RunAllToAll(const Places& places, const CollectiveCall& call, Network& network) {
  const Members members = Begin(places, call, network);
  if (members.size() > 1) ExchangeAll(members, call.bytes, std::nullopt);
}

void RunPairExchange(PairCall& call, Network& network) {
  const auto [first, second] = call.hosts;
  const Instant at_second = network.Send(first, second, call.bytes[0], call.times[0]);
  const Instant at_first = network.Send(second, first, call.bytes[1], call.times[1]);
  call.times = {std::max(call.times[0], at_first), std::max(call.times[1], at_second)};
}

}  // namespace tactus::simulator
