// The coordinator's core: nodes, queue and jobs. Events in, actions out; no clock, thread, file or
// socket.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/admission.h"
#include "coordinator/job/job_controller.h"
#include "coordinator/job/membership.h"
#include "coordinator/job/priors.h"
#include "coordinator/job/records.h"
#include "coordinator/job/schedule.h"

namespace tactus::job {

// Holds every job that is not over and every node; gives devices to jobs by the rules of schedule.h
// and hands each event to the job that it concerns. Jobs that are over are handed out by
// PublishJob and PersistJob and forgotten once their workers are gone: the store has them. One
// thread.
class Cluster {
 public:
  // wall_now_minus_now: offset that turns an Instant into a WallTime, for records only.
  explicit Cluster(WallTime wall_now_minus_now);

  // Takes up a job that the store has and that was not over when the coordinator last ran. All such
  // jobs come before the first Step.
  Actions Restore(JobRecord record, Instant now);

  // What users said of a node before the restart. Before all jobs.
  void RestoreNode(const NodeRecord& node) { membership_.Mark(node); }

  // What a job's planner had learned before the restart. Before all jobs.
  void RestoreMemory(MemoryRecord memory) { memories_[memory.job] = std::move(memory.memory); }

  // What a former coordinator kept for the next jobs. Before all jobs.
  void RestorePrior(PriorRecord prior) { priors_.Restore(std::move(prior)); }

  // Deals with one event. Never fails: what does not apply any more does nothing.
  Actions Step(const Event& event, Instant now);

  // A job that is not over, or null.
  const JobRecord* Find(JobId job) const;
  std::vector<const JobRecord*> Jobs() const;  // by id
  const Membership& membership() const { return membership_; }
  // A job with workers on the node that are not known to be gone, by resource id; empty: none.
  std::string JobOn(const std::string& node) const;
  // Whether another node than this was given the worker, or is known to have it. One that nobody
  // knows is nowhere else.
  bool RunsElsewhere(WorkerId worker, const std::string& node) const;
  // Of which job the worker is, by resource id; empty: of none that is not over.
  std::string JobNameOf(WorkerId worker) const;
  // As JobController has them. Requires: Find(job).
  std::string WhyNotReverted(JobId job, const policies::Decision& decision) const;
  std::optional<policies::MeasuredGroup> Measured(JobId job) const;
  // The job that was admitted to nothing yet and stands first; nothing: none waits.
  std::optional<JobId> QueueHead() const { return admission_.First(); }

 private:
  void Handle(const JobSubmitted& event, Turn turn);
  void Handle(const NodeJoined& event, Turn turn);
  void Handle(const NodeUnreachable& event, Turn turn);
  void Handle(const NodeLost& event, Turn turn);
  void Handle(const NodeLeaving& event, Turn turn);
  void Handle(const WorkerSaid& event, Turn turn);
  void Strike(JobController& job, const WorkerSaid& event, Turn turn);
  void Handle(const WorkerExited& event, Turn turn);
  void Handle(const ArtifactComing& event, Turn turn);
  void Handle(const ArtifactStored& event, Turn turn);
  void Handle(const Ticked& event, Turn turn);
  void Handle(const JobUpdated& event, Turn turn);
  void Handle(const NodeMarked& event, Turn turn);
  void Handle(const NodeDeleted& event, Turn turn);
  void Handle(const DeviceFaultsChanged& event, Turn turn);
  void Handle(const LinkProbed& event, Turn turn);
  // Any other: what a user asks of one job.
  template <typename Change>
  void Handle(const Change& event, Turn turn);

  // Null: over and dropped, or never there.
  JobController* JobOf(JobId job);
  JobController* JobOf(WorkerId worker);
  JobController& Add(JobRecord record);
  bool RejectUnknownPolicy(JobController& job, Turn turn);
  void ReleaseGone(const JobController& job, const std::string& node);
  void HoldReturned(const JobController& job, const NodeJoined& event);
  void SetStrays(const NodeJoined& event, Turn turn);
  void FileWaiting(JobController& job);
  void FileActive();
  void Forget(JobId job);
  void Admit(Turn turn);
  void Board(Turn turn);
  void Drain(Turn turn);
  void Start(const Schedule::Grant& grant, Turn turn);
  void ProbeLinks(const JobRecord& record, Turn turn);
  // Of each link, while the workers load: these leave agents little of a processor, which delays an
  // answer until the other has given up, or makes a link look slower than it is.
  static constexpr int kProbes = 3;
  bool HasOthers(const std::string& node, JobId job) const;
  std::vector<MemberRecord> Employ(const Schedule::Grant& grant);
  std::vector<WorkerId> NewWorkers(const JobRecord& record, std::size_t count) const;
  void Retire();
  void PlanWake(Turn turn);

  const WallTime wall_offset_;
  Membership membership_;
  Priors priors_;
  std::map<JobId, std::unique_ptr<JobController>> jobs_;
  Admission admission_;  // of jobs_
  // Of workers of jobs_, until their job is dropped.
  struct Route {
    JobId job{};
    std::string node{};
  };
  std::map<WorkerId, Route> routes_;
  struct Probing {
    JobId job{};
    int times = 1;  // this is
  };
  std::map<std::string, Probing> probed_;  // by node whose link is being measured
  std::optional<Instant> wake_;            // asked for and not come yet
  std::map<JobId, std::string> memories_;  // of jobs that are to be restored
};

}  // namespace tactus::job
