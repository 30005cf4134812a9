// The box that workers run in: what it holds on this kernel, and one worker's of it.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/box/cgroups.h"
#include "agent/box/confinement.h"
#include "agent/box/tree.h"
#include "agent/box/worker_user.h"

namespace tactus::box {

// What the agent was told. Folders and files are absolute and without links.
struct BoxOptions {
  bool on = true;
  bool required = false;                      // no agent without all that Lacks can name but "user"
  std::string state_folder{};                 // the agent's: private
  std::vector<std::string> data_roots{};      // the only places of data; empty: anywhere readable
  std::vector<std::string> writable{};        // besides what is a job's own
  std::vector<std::string> private_places{};  // not readable, besides the state folder
  std::optional<WorkerUser> user{};
  std::string cgroup_folder{};         // delegated; empty: the agent's own, if it is
  std::uint64_t memory_bytes_max = 0;  // of a worker; 0: no limit
  std::uint64_t tasks_max = 0;         // processes and threads of a worker; 0: no limit
  std::size_t workers_max = 1;         // that one user's limit has to be enough for
};

// Private places of any host: keys of the system and of this user. `home`: may be empty.
std::vector<std::string> KeyPlaces(const std::string& home);

// What a kernel offers to the box.
struct Support {
  int landlock_abi = 0;
  bool filters = false;
  bool memory = false;  // a limit of a worker's memory is in force
  bool tasks = false;   // one of its processes and threads is
  bool user = false;    // workers have a user of their own
};

// What is not held, each in a word: "files", "truncation", "ports", "ioctl", "signals" (which has
// abstract sockets in it), "calls", "memory", "tasks", "user". Empty: the box is whole.
std::vector<std::string> Lacks(const Support& support);

// For a label, of at most 63 bytes: "full", or "lacks memory user".
std::string LabelOf(const Support& support);

// For people: each thing that is lacking, with what that means and what would give it.
std::string ExplainLacks(const Support& support);

// One worker's needs. Paths are absolute.
struct WorkerNeeds {
  std::string name{};                   // of its cgroup
  std::vector<std::string> readable{};  // made or found by the agent: files and folders
  std::vector<std::string> writable{};  // made by the agent: folders
  std::vector<std::string>
      named{};  // by the submitter: folders that it may list, if it may see them
  bool gpu = false;
};

// What holds one worker; the cgroup ends what is left of it.
struct Held {
  Confinement confinement{};
  std::unique_ptr<Cgroup> cgroup{};  // null: there are none
};

// Used on one thread.
class Box {
 public:
  // The caller holds the lock of the state folder. Errors: FailedPrecondition, it is required and
  // something is lacking, or data roots are given and there is nothing that keeps workers to them.
  static absl::StatusOr<std::unique_ptr<Box>> Open(const BoxOptions& options);

  // Made before the fork; after an error nothing is left.
  absl::StatusOr<Held> Confine(const WorkerNeeds& needs) const;

  const Support& support() const { return support_; }
  bool on() const { return options_.on; }
  const std::string& why_no_cgroups() const { return why_no_cgroups_; }  // empty: there are

 private:
  explicit Box(BoxOptions options) : options_(std::move(options)) {}

  absl::Status OpenCgroups();
  absl::Status AllowFiles(LandlockRules& rules, const WorkerNeeds& needs) const;
  absl::Status AllowDevices(LandlockRules& rules, bool gpu) const;

  const BoxOptions options_;
  Support support_;
  std::shared_ptr<const Filter> filter_;  // shared with each worker's confinement
  std::unique_ptr<Cgroups> cgroups_;
  std::string why_no_cgroups_;
};

}  // namespace tactus::box
