// The jobs that wait for devices, in the queue's order.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// Ordered as ComesBefore of schedule.h has it. Jobs with the same need are found together, so that
// thousands of jobs that nothing could serve cost no more than one. One thread.
class WaitingLine {
 public:
  // What decides whether devices would do for a job.
  struct Need {
    DeviceKind device = DeviceKind::kStandard;
    std::map<std::string, std::string> selector{};
    std::vector<std::string> tolerations{};
    std::uint32_t workers_min = 1;
    friend auto operator<=>(const Need&, const Need&) = default;
  };

  // Puts the job where its settings say, wherever it stood before.
  void Put(JobId job, const JobSettings& settings);

  // Without effect where the job does not wait.
  void Remove(JobId job);

  bool empty() const { return order_.empty(); }
  std::size_t size() const { return order_.size(); }
  std::optional<JobId> First() const;

  // The first `most` jobs.
  std::vector<JobId> Front(std::size_t most) const;

  // The first `most` jobs of needs for which `keep` holds; it is asked once a need at most, about
  // the first job that has it, and not about those behind the last job that is returned.
  std::vector<JobId> Front(std::size_t most, const std::function<bool(JobId)>& keep) const;

  // The first job with the same need. Requires: `job` waits.
  JobId FirstAlike(JobId job) const;

 private:
  // The priority's opposite, then the id.
  using Ticket = std::pair<std::int64_t, JobId>;
  using Alike = std::map<Need, std::set<Ticket>>;
  struct Place {
    Ticket ticket;
    Alike::iterator alike;
  };

  std::set<Ticket> order_;
  Alike alike_;
  std::map<JobId, Place> places_;
};

}  // namespace tactus::job
