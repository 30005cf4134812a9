// Who gets which devices: the queue's rules, as one pure function.
//
//   order     priority, the highest first; then submission, the oldest first
//   gangs     a job starts with at least its min of devices at once, or not at all
//   room      the first job that cannot start takes devices from jobs behind it in the order, and
//             from elastic ones of its own priority above their min; only where that lets it start.
//             Who trains and keeps its min gives back what is needed and trains on; others go on
//             later from a checkpoint
//   backfill  devices that it cannot use yet are lent to jobs behind it, until it can; where it has
//             waited a while, as nodes may just be joining one by one
//   growth    devices that nobody waits for go to running jobs below their max: to workers that
//             join them, or, where they cannot take in any, by a checkpoint and a start; beyond it
//             to their spares, which give way like anybody who joins

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "coordinator/job/membership.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// A job that waits. Pointers of this header are valid while a schedule is made.
struct WaitingJob {
  JobId job{};
  const JobSettings* settings = nullptr;
};

// A device that a job holds.
struct HeldDevice {
  WorkerId worker{};
  DeviceKind kind = DeviceKind::kCpu;
  const NodeTraits* traits = nullptr;  // null: its node is not known
  bool usable = false;                 // by others, once it is given back: connected, open, well
  bool joining = false;                // its worker loads, to join those that train, or is spare
  std::vector<JobId> others{};         // that hold it as well, as jobs of its array
};

// A job that has devices.
struct GroupedJob {
  JobId job{};
  const JobSettings* settings = nullptr;
  std::vector<HeldDevice> devices{};
  std::vector<HeldDevice> given_back{};  // beside these: they come free, and it trains on
  bool leaving = false;                  // it is giving all of them back
  bool movable = false;                  // its workers can be ended now and the job goes on later
  bool steady = false;                   // movable, and it ran long enough for a change of its size
  bool shrinks = false;   // movable, and some of its workers can be ended while it trains on
  bool in_place = false;  // it grows by workers that join it; never by a checkpoint and a start
  bool grows = false;     // so now
};

struct ScheduleView {
  std::vector<WaitingJob> waiting{};  // in the queue's order; a bounded beginning of it
  std::vector<GroupedJob> groups{};   // by id
  std::vector<FreeDevice> free{};
  DeviceKind standard = DeviceKind::kCpu;  // what kStandard means
  JobId patient{};                         // the head of before, if it has waited a while; 0: none
};

struct Schedule {
  struct Grant {
    JobId job{};
    std::vector<MemberRecord> members{};  // without workers
  };
  struct Displaced {
    JobId job{};
    std::string reason{};
  };
  struct Reduction {
    JobId job{};
    std::vector<WorkerId> workers{};
    std::string reason{};
  };
  std::vector<Grant> starts{};
  std::vector<Displaced> displaced{};   // to be ended with a checkpoint and queued again
  std::vector<Reduction> reductions{};  // to go on without these
  std::vector<Grant> growths{};         // of jobs that run
  JobId head{};                         // the first that cannot start; 0: none
  // A group would be displaced if it were steady, or grow: ask again when one has become so.
  bool awaits_steady = false;
};

// True where the settings accept a device: its kind, and its node's labels and taints.
//
// A node matches when it has every label of the selector with its value, and every taint of it is
// tolerated: the same text, or a key alone, which tolerates all of that key's values.
bool Accepts(const JobSettings& settings, DeviceKind kind, const NodeTraits& traits,
             DeviceKind standard);

// Of the group's devices, those that a job with these settings could use.
std::size_t UsefulDevices(const GroupedJob& group, const JobSettings& settings,
                          DeviceKind standard);

// Devices that the job could have if nobody else had any: free and held ones.
std::size_t Attainable(const ScheduleView& view, const JobSettings& settings);

// True where `a` comes before `b`.
bool ComesBefore(const JobSettings& a_settings, JobId a, const JobSettings& b_settings, JobId b);

// Total, deterministic; no job is in two of the lists. Devices are given in the order of `free`,
// but to a job that takes either kind GPUs before processors. Cost: waiting x free + groups.
Schedule MakeSchedule(const ScheduleView& view);

}  // namespace tactus::job
