// Groups of processes with limits, by the kernel's cgroups of version 2: one a worker.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/descriptor.h"

namespace tactus::box {

struct CgroupLimits {
  std::uint64_t memory_bytes_max = 0;  // 0: no limit
  std::uint64_t tasks_max = 0;         // processes and threads; 0: no limit
};

class CgroupRemover;

// One worker's. At destruction its processes are ended and it is removed, by a thread where that
// takes time.
class Cgroup {
 public:
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  // By writing "0" there a process joins it. Shared with who is to join.
  const std::shared_ptr<const Descriptor>& procs() const { return procs_; }

  // Where the kernel counts those that it ended for want of memory.
  std::string memory_events() const { return folder_ + "/memory.events"; }

  // SIGKILL to all in it, whatever group or session they have made themselves. Blocks for nobody.
  void Kill() const;

 private:
  friend class Cgroups;
  // The remover is shared with all others: it outlives who asks it.
  Cgroup(std::string folder, Descriptor procs, std::shared_ptr<CgroupRemover> remover);

  const std::string folder_;
  std::shared_ptr<const Descriptor> procs_;
  const std::shared_ptr<CgroupRemover> remover_;
};

// A folder of cgroups that is this agent's: below one that was handed to it.
class Cgroups {
 public:
  struct Place {
    std::string folder{};  // of the hierarchy, delegated to this process; empty: its own
    std::string name{};    // of this agent's folder there, the same in each of its lives
  };

  // Makes the agent's folder, with the controllers that are to be had there, and ends what a former
  // agent left in it; that is done by a thread, and nobody waits for it. The caller holds the lock
  // that makes the name its own. Where the delegated folder is this process's own cgroup, the
  // process moves into one of its own below it, as a group with controllers has no processes.
  // Errors: FailedPrecondition, in words: there is no cgroup of version 2, or it is not handed to
  // this process; as runtime::FileError.
  static absl::StatusOr<std::unique_ptr<Cgroups>> Open(const Place& place);

  ~Cgroups();
  Cgroups(const Cgroups&) = delete;
  Cgroups& operator=(const Cgroups&) = delete;

  // A limit whose controller is not there is left out; has_memory and has_tasks say so beforehand.
  // Errors: as runtime::FileError, and nothing is left.
  absl::StatusOr<std::unique_ptr<Cgroup>> Make(const std::string& name,
                                               const CgroupLimits& limits) const;

  bool has_memory() const { return has_memory_; }
  bool has_tasks() const { return has_tasks_; }
  const std::string& folder() const { return folder_; }

 private:
  Cgroups(std::string folder, bool has_memory, bool has_tasks);

  const std::string folder_;
  const bool has_memory_;
  const bool has_tasks_;
  const std::shared_ptr<CgroupRemover> remover_;  // shared with each Cgroup
};

}  // namespace tactus::box
