#include "coordinator/job/waiting_line.h"

#include <algorithm>
#include <queue>

namespace tactus::job {

void WaitingLine::Put(JobId job, const JobSettings& settings) {
  Remove(job);
  const Ticket ticket{-std::int64_t{settings.priority}, job};
  const auto alike = alike_
                         .try_emplace(Need{.device = settings.device,
                                           .selector = settings.selector,
                                           .tolerations = settings.tolerations,
                                           .workers_min = settings.workers_min})
                         .first;
  order_.insert(ticket);
  alike->second.insert(ticket);
  places_[job] = {ticket, alike};
}

void WaitingLine::Remove(JobId job) {
  const auto found = places_.find(job);
  if (found == places_.end()) return;
  const auto& [ticket, alike] = found->second;
  order_.erase(ticket);
  alike->second.erase(ticket);
  if (alike->second.empty()) alike_.erase(alike);
  places_.erase(found);
}

std::optional<JobId> WaitingLine::First() const {
  return order_.empty() ? std::nullopt : std::optional(order_.begin()->second);
}

std::vector<JobId> WaitingLine::Front(std::size_t most) const {
  std::vector<JobId> jobs;
  for (const auto& [priority, job] : order_) {
    if (jobs.size() == most) break;
    jobs.push_back(job);
  }
  return jobs;
}

std::vector<JobId> WaitingLine::Front(std::size_t most,
                                      const std::function<bool(JobId)>& keep) const {
  // The needs' jobs are sorted each for itself: a merge of them, of which a need that is not kept
  // leaves at its first job. It costs the needs and the jobs returned, not the line's length.
  using Range = std::pair<std::set<Ticket>::const_iterator, std::set<Ticket>::const_iterator>;
  const auto later = [](const Range& a, const Range& b) { return *b.first < *a.first; };
  std::priority_queue<Range, std::vector<Range>, decltype(later)> next(later);
  for (const auto& [need, tickets] : alike_) next.emplace(tickets.begin(), tickets.end());
  std::vector<JobId> jobs;
  while (jobs.size() < most && !next.empty()) {
    Range range = next.top();
    next.pop();
    const JobId job = range.first->second;
    if (FirstAlike(job) == job && !keep(job)) continue;
    jobs.push_back(job);
    if (++range.first != range.second) next.push(range);
  }
  return jobs;
}

JobId WaitingLine::FirstAlike(JobId job) const {
  return places_.at(job).alike->second.begin()->second;
}

}  // namespace tactus::job
