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

std::uint32_t MembersOf(const Plan& plan) {
  return static_cast<std::uint32_t>(plan.batch_sizes.size());
}

std::vector<std::uint32_t> CircleOf(const Plan& plan) {
  if (!plan.circle.empty()) return plan.circle;
  std::vector<std::uint32_t> circle(plan.batch_sizes.size());
  std::iota(circle.begin(), circle.end(), 0u);
  return circle;
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
  const std::uint32_t members = MembersOf(first);
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
  const auto members = static_cast<std::uint32_t>(seconds.size());
  const NearPlaces near(*plan.graph, members);
  const std::vector<std::uint32_t> places = PlacesOf(CircleOf(plan));
  for (MemberPair pair; pair.low < members; ++pair.low) {
    for (pair.high = pair.low + 1; pair.high < members; ++pair.high) {
      const double both = std::min(seconds[pair.low], seconds[pair.high]);
      if (both <= slowest.seconds || !near(places[pair.low], places[pair.high])) continue;
      if (std::ranges::find(settled_, pair) != settled_.end()) continue;
      slowest.pair = pair;
      slowest.seconds = both;
    }
  }
  const bool slow = slowest.seconds > kSlow * slowest.usual &&
                    slowest.seconds > kShareOfRound * MedianOf(rounds_);
  return slow ? std::optional(slowest) : std::nullopt;
}

bool NeighbourSynchronization::MayMove(const MemberPair& pair) const {
  const auto moves_of = [&](std::uint32_t rank) {
    return std::ranges::count_if(
        apart_, [&](const MemberPair& one) { return one.low == rank || one.high == rank; });
  };
  return static_cast<std::size_t>(std::max(moves_of(pair.low), moves_of(pair.high))) < kMoves;
}

// As Observe leaves them: numbers that can be put in order.
bool NeighbourSynchronization::RoundsAreSound() const {
  const auto sound = [](const std::deque<double>& values) {
    return values.size() <= kRounds &&
           std::ranges::all_of(values, [](double value) { return value >= 0; });
  };
  return sound(rounds_) && std::ranges::all_of(exchanges_, sound);
}

std::optional<Proposal> NeighbourSynchronization::Decide(const Situation& situation) {
  const Plan& in_force = situation.in_force;
  if (!in_force.graph) return std::nullopt;
  const std::optional<Link> link = SlowestLink(in_force);
  if (!link) return std::nullopt;
  const auto circle = MayMove(link->pair)
                          ? CircleApart(CircleOf(in_force), apart_, link->pair,
                                        NearPlaces(*in_force.graph, MembersOf(in_force)))
                          : std::nullopt;
  if (!circle) {
    settled_.push_back(link->pair);
    return std::nullopt;
  }
  apart_.push_back(link->pair);
  ForgetRounds();
  Proposal proposal{.plan = in_force};
  proposal.plan.circle = *circle;
  proposal.decision = {
      .inputs = {{"exchange of workers " + std::to_string(link->pair.low) + " and " +
                      std::to_string(link->pair.high),
                  link->seconds, "s"},
                 {"exchange that is usual", link->usual, "s"}},
      .alternatives = {{ValueOf(in_force, Axis::kSynchronization), 0}},
      .reason = "workers " + std::to_string(link->pair.low) + " and " +
                std::to_string(link->pair.high) + " are no neighbours any more: they exchange in " +
                Figure(link->seconds) + " s what others do in " + Figure(link->usual) + " s"};
  return proposal;
}

}  // namespace tactus::policies
