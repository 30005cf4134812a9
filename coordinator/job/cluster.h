// The coordinator's core: nodes, queue and jobs. Events in, actions out; no clock, thread, file or socket.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/job_controller.h"
#include "coordinator/job/membership.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// Holds every job that is not over and every node; admits jobs to free devices in the order of submission
// and hands each event to the job that it concerns. Jobs that are over are handed out by PublishJob and
// PersistJob and forgotten: the store has them. One thread.
class Cluster {
 public:
  // wall_now_minus_now: offset that turns an Instant into a WallTime, for records only.
  explicit Cluster(WallTime wall_now_minus_now);

  // Takes up a job that the store has and that was not over when the coordinator last ran.
  Actions Restore(JobRecord record, Instant now);

  // Deals with one event. Never fails: what does not apply any more does nothing.
  Actions Step(const Event& event, Instant now);

  // A job that is not over, or null.
  const JobRecord* Find(JobId job) const;
  std::vector<const JobRecord*> Jobs() const;  // by id
  const Membership& membership() const { return membership_; }

 private:
  void Admit(Instant now, Actions& actions);
  void Route(WorkerId worker, const Event& event, Instant now, Actions& actions);
  void Retire(Actions& actions);

  const WallTime wall_offset_;
  Membership membership_;
  std::map<JobId, std::unique_ptr<JobController>> jobs_;
  std::uint64_t last_worker_ = 0;
};

}  // namespace tactus::job
