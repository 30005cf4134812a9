#include "coordinator/job/round_table.h"

#include <utility>

namespace tactus::job {

const std::vector<policies::Report>* RoundTable::Add(const policies::Report& report) {
  Round& round = Open(report.round);
  if (round.reported[report.rank]) return nullptr;
  round.reported[report.rank] = true;
  round.reports[report.rank] = report;
  if (++round.count < members_) {
    if (rounds_.size() > kRoundsMax) rounds_.erase(rounds_.begin());
    return nullptr;
  }
  complete_ = std::move(round);
  rounds_.erase(rounds_.begin(), rounds_.upper_bound(report.round));
  return &complete_.reports;
}

// The last complete round's memory serves the new one: rounds may come by the thousand a second.
RoundTable::Round& RoundTable::Open(std::uint64_t round) {
  const auto [found, fresh] = rounds_.try_emplace(round);
  if (fresh) {
    found->second = std::exchange(complete_, {});
    found->second.reports.resize(members_);
    found->second.reported.assign(members_, false);
    found->second.count = 0;
  }
  return found->second;
}

}  // namespace tactus::job
