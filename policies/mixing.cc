#include "policies/mixing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>

#include "base/check.h"

namespace tactus::policies {
namespace {

using Complex = std::complex<double>;

constexpr std::array kGammaH = {1e-3, 1e-2, 0.1, 0.5};

// ceil(log2 n).
std::uint32_t PowersBelow(std::uint32_t members) {
  return members < 2 ? 0 : static_cast<std::uint32_t>(std::bit_width(members - 1));
}

// Of a circle: by how many places before a member those are that it takes in, with their weights.
std::map<std::uint32_t, double> OffsetsOf(Topology topology, std::uint32_t members,
                                          std::uint32_t phase) {
  std::map<std::uint32_t, double> offsets;
  const std::uint32_t powers = PowersBelow(members);
  switch (topology) {
    case Topology::kRing:
      if (members == 1) return {{0, 1.0}};
      if (members == 2) return {{0, 0.5}, {1, 0.5}};
      return {{0, 0.5}, {1, 0.25}, {members - 1, 0.25}};
    case Topology::kExponential:
      offsets[0] = 1;
      for (std::uint32_t t = 0; t < powers; ++t) {
        offsets[(1u << t) % members] = 1;
        offsets[(members - (1u << t)) % members] = 1;
      }
      for (auto& [offset, weight] : offsets) weight = 1 / static_cast<double>(offsets.size());
      return offsets;
    case Topology::kDirectedExponential:
      offsets[0] += 1.0 / (powers + 1);
      for (std::uint32_t t = 0; t < powers; ++t) offsets[1u << t] += 1.0 / (powers + 1);
      return offsets;
    case Topology::kComplete:
      for (std::uint32_t offset = 0; offset < members; ++offset) offsets[offset] = 1.0 / members;
      return offsets;
    case Topology::kOnePeerExponential:
    case Topology::kOnePeerHypercube:
      break;
  }
  if (powers == 0) return {{0, 1.0}};
  return {{0, 0.5}, {1u << phase, 0.5}};
}

// Of the mode of that number in that phase.
Complex EigenvalueOf(Topology topology, std::uint32_t members, std::uint32_t phase,
                     std::uint32_t mode) {
  if (topology == Topology::kOnePeerHypercube) return (mode >> phase & 1u) != 0 ? 0.0 : 1.0;
  Complex sum = 0;
  for (const auto& [offset, weight] : OffsetsOf(topology, members, phase)) {
    const double turn = static_cast<double>((std::uint64_t{mode} * offset) % members) / members;
    sum += weight * std::polar(1.0, -2 * std::numbers::pi * turn);
  }
  return sum;
}

// A member's row, the member itself first.
void SortBehindItself(std::vector<Neighbour>& row) {
  std::sort(row.begin() + 1, row.end(),
            [](const Neighbour& one, const Neighbour& two) { return one.rank < two.rank; });
}

struct Matrix {
  Complex a = 1, b = 0, c = 0, d = 1;  // by rows
};

Matrix operator*(const Matrix& x, const Matrix& y) {
  return {.a = x.a * y.a + x.b * y.c,
          .b = x.a * y.b + x.b * y.d,
          .c = x.c * y.a + x.d * y.c,
          .d = x.c * y.b + x.d * y.d};
}

double SpectralRadius(const Matrix& x) {
  const Complex half = (x.a + x.d) / 2.0;
  const Complex root = std::sqrt(half * half - (x.a * x.d - x.b * x.c));
  return std::max(std::abs(half + root), std::abs(half - root));
}

}  // namespace

bool Takes(Topology topology, std::uint32_t members) {
  return members >= 1 && (topology != Topology::kOnePeerHypercube || std::has_single_bit(members));
}

std::uint32_t PhasesOf(Topology topology, std::uint32_t members) {
  const bool one_peer =
      topology == Topology::kOnePeerExponential || topology == Topology::kOnePeerHypercube;
  return one_peer ? std::max(1u, PowersBelow(members)) : 1;
}

MixingGraph GraphOf(Topology topology, std::uint32_t members, std::uint64_t step) {
  TACTUS_CHECK(Takes(topology, members));
  const auto phase = static_cast<std::uint32_t>(step % PhasesOf(topology, members));
  const std::map<std::uint32_t, double> offsets = OffsetsOf(topology, members, phase);
  MixingGraph graph(members);
  for (std::uint32_t rank = 0; rank < members; ++rank) {
    for (const auto& [offset, weight] : offsets) {
      const std::uint32_t other = topology == Topology::kOnePeerHypercube
                                      ? rank ^ offset
                                      : (rank + members - offset) % members;
      graph[rank].push_back({.rank = other, .weight = weight});
    }
    SortBehindItself(graph[rank]);
  }
  return graph;
}

MixingGraph Placed(const MixingGraph& graph, std::span<const std::uint32_t> circle) {
  if (circle.empty()) return graph;
  TACTUS_CHECK(circle.size() == graph.size());
  MixingGraph placed(graph.size());
  for (std::size_t place = 0; place < graph.size(); ++place) {
    std::vector<Neighbour>& row = placed[circle[place]];
    for (const Neighbour& one : graph[place]) {
      row.push_back({.rank = circle[one.rank], .weight = one.weight});
    }
    SortBehindItself(row);
  }
  return placed;
}

std::vector<std::vector<std::uint32_t>> ReceiversOf(const MixingGraph& graph) {
  std::vector<std::vector<std::uint32_t>> receivers(graph.size());
  for (std::uint32_t rank = 0; rank < graph.size(); ++rank) {
    for (const Neighbour& one : graph[rank]) {
      if (one.rank != rank) receivers[one.rank].push_back(rank);
    }
  }
  return receivers;
}

double GrowthOf(Topology topology, std::uint32_t members, double momentum, double gamma_h) {
  const std::uint32_t phases = PhasesOf(topology, members);
  double growth = 0;
  for (std::uint32_t mode = 1; mode < members; ++mode) {
    Matrix product;
    for (std::uint32_t phase = 0; phase < phases; ++phase) {
      const Complex q = 1.0 - EigenvalueOf(topology, members, phase, mode) * (1 - gamma_h);
      product = Matrix{.a = 1.0 - q, .b = -momentum, .c = q, .d = momentum} * product;
    }
    growth = std::max(growth, std::pow(SpectralRadius(product), 1.0 / phases));
  }
  return growth;
}

double WorstGrowth(Topology topology, std::uint32_t members, double momentum) {
  double worst = 0;
  for (const double gamma_h : kGammaH) {
    worst = std::max(worst, GrowthOf(topology, members, momentum, gamma_h));
  }
  return worst;
}

bool IsStable(Topology topology, std::uint32_t members, double momentum) {
  return WorstGrowth(topology, members, momentum) < 1;
}

double LargestMomentum(Topology topology, std::uint32_t members_min, std::uint32_t members_max) {
  int least = 99;
  for (std::uint32_t members = members_min; members <= members_max; ++members) {
    if (!Takes(topology, members)) continue;
    while (least > 0 && !IsStable(topology, members, least / 100.0)) --least;
  }
  return least / 100.0;
}

}  // namespace tactus::policies
