// The coordinator's core: nodes, queue and jobs. Events in, actions out; no clock, thread, file or
// socket.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/job_controller.h"
#include "coordinator/job/membership.h"
#include "coordinator/job/records.h"
#include "coordinator/job/schedule.h"
#include "coordinator/job/waiting_line.h"

namespace tactus::job {

// Holds every job that is not over and every node; gives devices to jobs by the rules of schedule.h
// and hands each event to the job that it concerns. Jobs that are over are handed out by
// PublishJob and PersistJob and forgotten once their workers are gone: the store has them. One
// thread.
class Cluster {
 public:
  // Of the queue, so many from its head on are looked at for devices that the head leaves; not
  // counting those that all devices together could not serve.
  static constexpr std::size_t kWaitingLookedAt = 100;

  // wall_now_minus_now: offset that turns an Instant into a WallTime, for records only.
  explicit Cluster(WallTime wall_now_minus_now);

  // Takes up a job that the store has and that was not over when the coordinator last ran. All such
  // jobs come before the first Step.
  Actions Restore(JobRecord record, Instant now);

  // What users said of a node before the restart. Before all jobs.
  void RestoreNode(const NodeRecord& node) { membership_.Mark(node); }

  // Deals with one event. Never fails: what does not apply any more does nothing.
  Actions Step(const Event& event, Instant now);

  // A job that is not over, or null.
  const JobRecord* Find(JobId job) const;
  std::vector<const JobRecord*> Jobs() const;  // by id
  const Membership& membership() const { return membership_; }
  // The job that was admitted to nothing yet and stands first; nothing: none waits.
  std::optional<JobId> QueueHead() const;

 private:
  void Handle(const JobSubmitted& event, Turn turn);
  void Handle(const JobCancelled& event, Turn turn);
  void Handle(const NodeJoined& event, Turn turn);
  void Handle(const NodeLost& event, Turn turn);
  void Handle(const WorkerSaid& event, Turn turn);
  void Handle(const WorkerExited& event, Turn turn);
  void Handle(const ArtifactStored& event, Turn turn);
  void Handle(const Ticked& event, Turn turn);
  void Handle(const JobUpdated& event, Turn turn);
  void Handle(const JobPaused& event, Turn turn);
  void Handle(const JobResumed& event, Turn turn);
  void Handle(const NodeMarked& event, Turn turn);
  void Handle(const DeviceFaultsChanged& event, Turn turn);

  JobController* JobOf(WorkerId worker);
  JobController& Add(JobRecord record);
  bool RejectUnknownPolicy(JobController& job, Turn turn);
  void ReleaseGone(const JobController& job, const std::string& node);
  void HoldReturned(const JobController& job, const NodeJoined& event);
  void SetStrays(const NodeJoined& event, Turn turn);
  void File(JobController& job);
  void FileActive();
  void Admit(Turn turn);
  void Drain(Turn turn);
  ScheduleView View(Instant now);
  GroupedJob Grouped(const JobController& job, Instant now) const;
  void Start(const Schedule::Grant& grant, Turn turn);
  void PlanReschedule(const Schedule& schedule, Instant now);
  void ExplainWaits(const Schedule& schedule, Turn turn);
  std::vector<WorkerId> NewWorkers(const JobRecord& record, std::size_t count) const;
  std::string WaitReason(const JobSettings& settings) const;
  void Retire();
  void PlanWake(Turn turn);

  const WallTime wall_offset_;
  Membership membership_;
  std::map<JobId, std::unique_ptr<JobController>> jobs_;
  // Of jobs_: those in the queue, and those that are neither there nor paused.
  WaitingLine waiting_;
  std::map<JobId, JobController*> active_;
  Instant joined_{};                   // the last node did
  std::set<JobId> aside_;              // as last scheduled, the first of each need that all devices
                                       // that are there would not do for
  JobId head_{};                       // the first that could not start, as last scheduled; 0: none
  Instant head_since_{};               // it is
  std::optional<Instant> reschedule_;  // what depends on time alone is to be looked at again then
  std::map<WorkerId, JobId> routes_;   // workers of jobs_, until their job is dropped
  std::optional<Instant> wake_;        // asked for and not come yet
};

}  // namespace tactus::job
