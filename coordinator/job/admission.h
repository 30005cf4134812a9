// Who waits for devices and who has some, and what the scheduler is shown of both.

#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/job_controller.h"
#include "coordinator/job/membership.h"
#include "coordinator/job/schedule.h"
#include "coordinator/job/waiting_line.h"

namespace tactus::job {

// Holds no job: whoever files one drops it before it is gone. Grants are for others to carry out.
// One thread.
class Admission {
 public:
  // Of the queue, so many from its head on are looked at for devices that the head leaves; not
  // counting those that all devices together could not serve.
  static constexpr std::size_t kWaitingLookedAt = 100;

  // Puts the job where its state belongs: among those that wait or rest, the active ones, or,
  // paused, nowhere.
  void File(JobController& job);
  void Drop(JobId job);

  // Files the active jobs that wait or are paused by now, and returns them.
  std::vector<JobController*> FileActive();

  // Those that neither wait nor rest nor are paused, by id.
  const std::map<JobId, JobController*>& active() const { return active_; }

  // The first of those that wait; nothing: none does.
  std::optional<JobId> First() const { return line_.First(); }
  // The job, filed or not, would wait before all others.
  bool ComesFirst(const JobRecord& record) const;

  // A node joined: others may be about to.
  void NodeJoined(Instant now) { joined_ = now; }

  // What is to be done now; nothing when no device could change hands.
  std::optional<Schedule> MakeSchedule(const Membership& membership, Instant now);

  // Who can enter a process of its array that runs, on a device that others hold: in the queue's
  // order up to the first who can neither do that nor have a free device, which comes first.
  std::vector<Schedule::Grant> Boarding(const Membership& membership) const;

  // The schedule is carried out: tells those that still wait why they do, and sets Due.
  void Conclude(const Schedule& schedule, const Membership& membership, Turn turn);

  // When a schedule may differ though nothing happened; nothing: never.
  std::optional<Instant> Due() const;

 private:
  void Wake(Instant now);
  ScheduleView View(const Membership& membership, Instant now);
  // On devices that jobs of the array hold, where agents know arrays and memory is not short.
  std::vector<MemberRecord> SeatsOf(const std::string& array, const Membership& membership) const;
  std::vector<WaitingJob> Servable(const ScheduleView& view, bool settled);
  void ExplainWaits(JobId head, const Membership& membership, Turn turn);
  void PlanNext(bool awaits_steady, Instant now);

  WaitingLine line_;
  std::map<JobId, JobController*> waiting_;  // those in line_
  std::map<JobId, JobController*> active_;
  // Queued, but not in line before this time.
  std::map<std::pair<Instant, JobId>, JobController*> resting_;
  Instant joined_{};       // the last node did
  std::set<JobId> aside_;  // as last scheduled, the first of each need that all devices that are
                           // there would not do for
  JobId head_{};           // the first that could not start, as last scheduled; 0: none
  Instant head_since_{};   // it is
  std::optional<Instant> due_;  // what depends on time alone is to be looked at again then
};

}  // namespace tactus::job
