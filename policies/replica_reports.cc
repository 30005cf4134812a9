#include "policies/replica_reports.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tactus::policies {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<Report> Pooled(std::vector<Report> reports) {
  const std::uint64_t members = reports.size();
  std::uint64_t samples = 0;
  double seconds = 0;
  for (const Report& report : reports) {
    samples += report.samples;
    // One that is no time, as of a clock that went wrong, leaves none to the replica.
    const bool told = std::isfinite(report.compute_seconds);
    seconds = std::max(seconds, told ? report.compute_seconds : kInfinity);
  }
  for (std::uint64_t i = 0; i < members; ++i) {
    reports[i].samples = samples / members + (i < samples % members ? 1 : 0);
    reports[i].compute_seconds = seconds;
  }
  return reports;
}

}  // namespace

std::vector<Report> ReplicaReports::Observe(const Report& report) {
  if (members_ <= 1) return {report};
  std::map<std::uint64_t, Held>& rounds = open_[report.rank / members_];
  Held& held = rounds.try_emplace(report.round, Held(members_)).first->second;
  held[report.rank % members_] = report;
  const auto there = [](const std::optional<Report>& one) { return one.has_value(); };
  if (std::ranges::all_of(held, there)) {
    std::vector<Report> reports;
    for (const std::optional<Report>& one : held) reports.push_back(*one);
    rounds.erase(report.round);
    return Pooled(std::move(reports));
  }
  // Maybe the one that was just opened.
  if (rounds.size() > kOpenRoundsMax) rounds.erase(rounds.begin());
  return {};
}

}  // namespace tactus::policies
