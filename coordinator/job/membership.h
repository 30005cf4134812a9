// Who is there: the nodes, their devices, and which worker sits on which device.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "coordinator/job/records.h"

namespace tactus::job {

// The worker that sits on a device, and its job.
struct Holder {
  WorkerId worker{};
  JobId job{};
  std::string job_name{};    // resource id
  std::string array{};       // as MemberRecord's
  bool told_memory = false;  // NoteMemory, of it
};

// One node as the coordinator sees it.
struct Node {
  bool connected = false;
  std::uint64_t incarnation = 0;        // of its agent's process; 0: not known
  std::vector<DeviceRecord> devices{};  // by kind of name, then number: cpu:2 before cpu:10
  // Workers that run there for no job: they were asked to stop. Nobody knows their devices, so the
  // node gives none away until they are gone.
  std::set<WorkerId> strays{};
  NodeTraits traits{};
  bool cordoned = false;
  bool draining = false;
  std::map<std::string, unsigned> strikes{};  // by device, of the agent's process
  std::string leaving{};                      // why its agent is about to end; empty: it is not
};

// A device that could be given away now.
struct FreeDevice {
  MemberRecord place{};  // without a worker yet
  DeviceKind kind = DeviceKind::kCpu;
  const NodeTraits* traits = nullptr;  // of its node; valid until the membership changes
};

// Invariants: a device has at most one holder, or several whose jobs are of one array; a worker
// holds at most one device. Holders outlive the connection of their node.
class Membership {
 public:
  // The node is connected and has these devices; of two with one name the first counts.
  void Join(const std::string& name, std::vector<DeviceRecord> devices, NodeTraits traits = {},
            std::uint64_t incarnation = 0);

  // What users say of the node, which need not be known.
  void Mark(const NodeRecord& mark);
  NodeRecord MarkOf(const std::string& name) const;

  // Its agent is about to end, for this reason; empty: it stays. Nothing of a node that is not
  // known.
  void SetLeaving(const std::string& name, const std::string& reason);

  // These devices of the node are at fault by its agent, and no others; devices and nodes that are
  // not known are passed over. Holders stay.
  void SetFaults(const std::string& name, const std::map<std::string, std::string>& faults);

  // A worker on the device held wrong parameters. Returns whether it did so before: then the device
  // is at fault until the node has another agent, or the coordinator restarts.
  bool Strike(const std::string& name, const std::string& device);

  // The node is not heard: it gives nothing away. Holders and strays stay.
  void Miss(const std::string& name);

  // Its agent has ended, and the strays with it. Holders stay until released.
  void Lose(const std::string& name);

  // The node was never there, nor marked. Requires: no device of it has a holder.
  void Forget(const std::string& name);

  // Whether `Hold` may be called: the device is free, or those that hold it are of member.array.
  bool MayHold(const MemberRecord& member) const;

  // The worker has a device.
  bool Holds(WorkerId worker) const { return places_.contains(worker); }

  // `member` sits on its device from now on. Requires: MayHold, and that the worker has no device.
  void Hold(const MemberRecord& member, JobId job, const std::string& job_name);

  // Frees the worker's device; nothing when it has none.
  void Release(WorkerId worker);
  // Those of all workers of a job.
  void Release(JobId job);

  // The job's workers that hold a device of the node.
  std::vector<WorkerId> HoldersOn(const std::string& node, JobId job) const;

  // The one who has been there longest. Null: free, or not known.
  const Holder* HolderOf(const std::string& node, const std::string& device) const;
  // All of them, in the order in which they came.
  std::vector<Holder> HoldersOf(const std::string& node, const std::string& device) const;

  // So much of the device's memory, or of the host's by its process, is in use now that the worker
  // has trained on it [bytes], by whoever; 0: that is not known. Returns whether RoomFor has become
  // known, or better known, by it. Nothing of a worker without a device.
  bool NoteMemory(WorkerId worker, std::uint64_t used);

  // How many jobs of one array the device has memory for: one until that one has told what is in
  // use, then by what all that have told need on average, within three quarters of what there is.
  // SIZE_MAX: there is no limit, as on hosts where none is set.
  std::size_t RoomFor(const std::string& node, const std::string& device) const;

  // The device, as Free has it, whoever holds it; nothing: it is given to nobody now.
  std::optional<FreeDevice> Seat(const std::string& node, const std::string& device) const;

  // The holder of one of the node's devices; null: none has one.
  const Holder* AnyHolderOn(const std::string& node) const;

  // The free devices without a fault of connected nodes that are not cordoned, stay and have no
  // strays; by node name, then device number. The cost is in proportion to their number, not to
  // that of all devices.
  std::vector<FreeDevice> Free() const;
  bool AnyFree() const { return !free_.empty(); }

  // What kStandard means: cuda where any connected node has such a device, else cpu.
  DeviceKind Standard() const { return with_cuda_.empty() ? DeviceKind::kCpu : DeviceKind::kCuda; }

  // The strays of a node are exactly `running`. Returns those that are new.
  std::vector<WorkerId> SetStrays(const std::string& name, const std::set<WorkerId>& running);

  bool IsStray(WorkerId worker) const;

  // The worker has exited: it is no stray any more.
  void RemoveStray(WorkerId worker);

  const std::map<std::string, Node>& nodes() const { return nodes_; }
  const std::set<std::string>& marked() const { return marked_; }

 private:
  using Place = std::pair<std::string, std::string>;     // node, device
  using Position = std::pair<std::string, std::size_t>;  // node, index of its device

  static bool IsOpen(const Node& node);
  static FreeDevice Offered(const std::string& name, const Node& node, const DeviceRecord& device);
  // Brings free_ up to date with the node.
  void Recount(const std::string& name);

  std::map<std::string, Node> nodes_{};
  std::set<Position> free_{};
  std::set<std::string> marked_{};  // cordoned or draining
  std::set<std::string> with_strays_{};
  std::set<std::string> with_cuda_{};               // connected
  std::map<Place, std::vector<Holder>> holders_{};  // none is empty
  std::map<WorkerId, Place> places_{};              // the inverse of holders_
  // What was in use when so many jobs, all that were there, had told; of places with holders.
  struct Usage {
    std::size_t jobs = 0;
    std::uint64_t bytes = 0;
  };
  std::map<Place, Usage> usages_{};
};

}  // namespace tactus::job
