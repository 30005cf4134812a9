#include "policies/neighbour_synchronization.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "policies/figures.h"
#include "policies/plan_names.h"

namespace tactus::policies {
namespace {

Topology GraphOfSize(std::uint32_t members) {
  return members < NeighbourSynchronization::kExponentialFrom ? Topology::kRing
                                                              : Topology::kExponential;
}

// The value that so large a share of them is below; 0 of none.
double QuantileOf(const auto& values, double share) {
  std::vector<double> sorted(values.begin(), values.end());
  if (sorted.empty()) return 0;
  const double place = share * static_cast<double>(sorted.size());
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(sorted.begin(), at, sorted.end());
  return *at;
}
double MedianOf(const auto& values) { return QuantileOf(values, 0.5); }

std::vector<std::uint32_t> CircleOf(const Plan& plan) {
  if (!plan.circle.empty()) return plan.circle;
  std::vector<std::uint32_t> circle(plan.batch_sizes.size());
  std::iota(circle.begin(), circle.end(), 0u);
  return circle;
}

// Who exchange anything in any step.
std::set<std::pair<std::uint32_t, std::uint32_t>> NeighboursOf(
    Topology graph, const std::vector<std::uint32_t>& circle) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  const auto members = static_cast<std::uint32_t>(circle.size());
  for (std::uint32_t phase = 0; phase < PhasesOf(graph, members); ++phase) {
    const MixingGraph placed = Placed(GraphOf(graph, members, phase), circle);
    for (std::uint32_t rank = 0; rank < members; ++rank) {
      for (const Neighbour& other : placed[rank]) {
        if (other.rank != rank) pairs.insert(std::minmax(rank, other.rank));
      }
    }
  }
  return pairs;
}

}  // namespace

// A clause; empty: the graph will do.
std::string NeighbourSynchronization::WhyNot(Topology graph, std::uint32_t members) const {
  const std::string name(NameOf(graph));
  if (!Takes(graph, members)) {
    return name + " does not take " + std::to_string(members) + " members";
  }
  const double growth = options_.correct_bias ? WorstGrowth(graph, members, momentum_) : 0;
  if (growth < 1) return {};
  return name + " with momentum " + Figure(momentum_) + " would multiply differences between " +
         std::to_string(members) + " members by " + Figure(growth) + " a step";
}

std::string NeighbourSynchronization::Start(Plan& first, const Observations&) {
  const auto members = static_cast<std::uint32_t>(first.batch_sizes.size());
  ForgetRounds();
  apart_.clear();
  settled_.clear();
  if (members == 1) {
    Synchronize(first, Synchronization::kEveryStep, 1);
    return "every_step: one member has nobody to exchange with";
  }
  Synchronize(first, Synchronization::kDecentlam, 1);
  const auto asked = std::ranges::find(kTopologyNames, options_.graph);
  const bool by_size = asked == kTopologyNames.end();
  first.graph =
      by_size ? GraphOfSize(members) : static_cast<Topology>(asked - kTopologyNames.begin());
  const std::string obstacle = WhyNot(*first.graph, members);
  if (!obstacle.empty()) first.graph = GraphOfSize(members);
  first.circle.clear();
  std::string reason = ValueOf(first, Axis::kSynchronization) + ": ";
  if (!obstacle.empty()) {
    reason += obstacle;
  } else if (by_size) {
    reason += "for " + std::to_string(members) + " members";
  } else {
    reason += "as the job asks";
  }
  if (!options_.correct_bias) return reason + "; momentum is not corrected for mixing";
  return reason + "; with momentum " + Figure(momentum_) +
         " a step multiplies differences between members by " +
         Figure(WorstGrowth(*first.graph, members, momentum_)) + " at most";
}

void NeighbourSynchronization::Resume(const Plan&) { ForgetRounds(); }

void NeighbourSynchronization::ForgetRounds() {
  exchanges_.clear();
  rounds_.clear();
}

void NeighbourSynchronization::Observe(const Report& report) {
  if (report.plan_version < version_) return;
  if (report.plan_version > version_) ForgetRounds();
  version_ = report.plan_version;
  if (exchanges_.size() <= report.rank) exchanges_.resize(report.rank + 1);
  const auto add = [](std::deque<double>& values, double value) {
    values.push_back(std::max(0.0, value));
    if (values.size() > kRounds) values.pop_front();
  };
  add(exchanges_[report.rank], report.exchange_seconds);
  add(rounds_, report.round_seconds);
}

// A link is no slower than the exchange of either end.
std::optional<NeighbourSynchronization::Link> NeighbourSynchronization::SlowestLink(
    const Plan& plan) const {
  if (version_ != plan.version || exchanges_.size() != plan.batch_sizes.size()) return std::nullopt;
  std::vector<double> seconds;
  for (const std::deque<double>& exchange : exchanges_) {
    if (exchange.size() < kRounds) return std::nullopt;
    seconds.push_back(MedianOf(exchange));
  }
  Link slowest{.usual = QuantileOf(seconds, kUsual)};
  for (const Pair& pair : NeighboursOf(*plan.graph, CircleOf(plan))) {
    const double both = std::min(seconds[pair.first], seconds[pair.second]);
    if (both <= slowest.seconds || settled_.contains(pair)) continue;
    slowest.pair = pair;
    slowest.seconds = both;
  }
  const bool slow = slowest.seconds > kSlow * slowest.usual &&
                    slowest.seconds > kShareOfRound * MedianOf(rounds_);
  return slow ? std::optional(slowest) : std::nullopt;
}

bool NeighbourSynchronization::MayMove(const Pair& pair) const {
  const auto moves_of = [&](std::uint32_t rank) {
    return std::ranges::count_if(
        apart_, [&](const Pair& one) { return one.first == rank || one.second == rank; });
  };
  return static_cast<std::size_t>(std::max(moves_of(pair.first), moves_of(pair.second))) < kMoves;
}

// By one change of places, the nearest first. Nothing: there is none.
std::optional<std::vector<std::uint32_t>> NeighbourSynchronization::CircleWithout(
    const Plan& plan, const Pair& pair) const {
  std::set<Pair> apart = apart_;
  apart.insert(pair);
  const std::vector<std::uint32_t> circle = CircleOf(plan);
  for (std::size_t distance = 1; distance < circle.size(); ++distance) {
    for (const std::uint32_t moved : {pair.second, pair.first}) {
      std::vector<std::uint32_t> other = circle;
      const auto place = static_cast<std::size_t>(std::ranges::find(other, moved) - other.begin());
      std::swap(other[place], other[(place + distance) % other.size()]);
      const std::set<Pair> neighbours = NeighboursOf(*plan.graph, other);
      if (std::ranges::none_of(apart, [&](const Pair& one) { return neighbours.contains(one); })) {
        return other;
      }
    }
  }
  return std::nullopt;
}

std::optional<Proposal> NeighbourSynchronization::Decide(const Situation& situation) {
  const Plan& in_force = situation.in_force;
  if (!in_force.graph) return std::nullopt;
  const std::optional<Link> link = SlowestLink(in_force);
  if (!link) return std::nullopt;
  const auto circle = MayMove(link->pair) ? CircleWithout(in_force, link->pair) : std::nullopt;
  if (!circle) {
    settled_.insert(link->pair);
    return std::nullopt;
  }
  apart_.insert(link->pair);
  ForgetRounds();
  Proposal proposal{.plan = in_force};
  proposal.plan.circle = *circle;
  proposal.decision = {.inputs = {{"exchange of workers " + std::to_string(link->pair.first) +
                                       " and " + std::to_string(link->pair.second),
                                   link->seconds, "s"},
                                  {"exchange that is usual", link->usual, "s"}},
                       .alternatives = {{ValueOf(in_force, Axis::kSynchronization), 0}},
                       .reason = "workers " + std::to_string(link->pair.first) + " and " +
                                 std::to_string(link->pair.second) +
                                 " are no neighbours any more: they exchange in " +
                                 Figure(link->seconds) + " s what others do in " +
                                 Figure(link->usual) + " s"};
  return proposal;
}

}  // namespace tactus::policies
