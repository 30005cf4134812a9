// The workers of a job's present group: who is there, who is gone, and the way to speak to them.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// By rank. A worker that is gone is sent nothing and never comes back.
class Roster {
 public:
  // Nobody.
  Roster() = default;

  // present: false after a restart of the coordinator, until a worker's node says that it runs.
  Roster(std::vector<MemberRecord> members, bool present);

  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  bool empty() const { return members_.empty(); }
  const std::vector<MemberRecord>& members() const { return members_; }
  const MemberRecord& operator[](std::uint32_t rank) const { return members_[rank]; }

  std::optional<std::uint32_t> RankOf(WorkerId worker) const;
  bool Live(std::uint32_t rank) const { return !workers_[rank].gone; }
  bool Present(std::uint32_t rank) const { return workers_[rank].present; }
  std::vector<std::uint32_t> LiveOn(const std::string& node) const;  // ranks, in order
  bool AllGone() const;
  // All are gone and nobody's last words are still to come.
  bool AllHeardOut() const;

  // After a restart: its node says that it runs.
  void Return(std::uint32_t rank) { workers_[rank].present = true; }
  // heard_out: its last words, if it had any, have come.
  void Depart(std::uint32_t rank, bool heard_out);

  // To who is gone or not back yet, nothing.
  void Send(std::uint32_t rank, ToWorker message, Actions& actions) const;
  void SendToAll(const ToWorker& message, Actions& actions) const;

  // Ends all processes, each once. Who has not come back after a restart is given up: if it ever
  // does, it is a stray.
  void Stop(Duration grace, Actions& actions);

 private:
  struct Worker {
    bool present = true;
    bool gone = false;
    bool heard_out = false;
    bool stop_sent = false;
  };

  std::vector<MemberRecord> members_;
  std::vector<Worker> workers_;  // as members_
  std::map<WorkerId, std::uint32_t> ranks_;
};

}  // namespace tactus::job
