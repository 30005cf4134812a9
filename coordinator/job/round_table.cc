#include "coordinator/job/round_table.h"

namespace tactus::job {

std::optional<std::vector<policies::Report>> RoundTable::Add(const policies::Report& report) {
  auto& reports = rounds_[report.round];
  reports.insert({report.rank, report});
  if (reports.size() < members_) {
    if (rounds_.size() > kRoundsMax) rounds_.erase(rounds_.begin());
    return std::nullopt;
  }
  std::vector<policies::Report> complete;
  for (const auto& [rank, one] : reports) complete.push_back(one);
  rounds_.erase(rounds_.begin(), rounds_.upper_bound(report.round));
  return complete;
}

}  // namespace tactus::job
