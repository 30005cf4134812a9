// What a version of NCCL can do for a group that has lost a member.

#pragma once

#include <string>

namespace tactus::cuda::nccl {

// What there is when no call of NCCL's repairs the group.
enum class Fallback {
  kNewProcess,  // the worker ends; a new process meets the others by a new unique id
};

struct Capabilities {
  bool shrink = false;  // ncclCommShrink: a communicator without the lost members
  bool revoke = false;  // ncclCommRevoke: what is under way stops, the communicator is not freed
  bool grow = false;    // ncclCommGrow: a communicator with further members
  Fallback fallback = Fallback::kNewProcess;

  bool operator==(const Capabilities&) const = default;
};

// nccl_version: as ncclGetVersion gives it at run time, which may not be the version that was
// compiled against: 10,000 major + 100 minor + patch from 2.9 on, 22809 for 2.28.9. 0: no NCCL.
//
// A call counts from the release in whose header it first is: shrink 2.27.3, revoke 2.28.7, grow
// 2.29.2. None counts in 2.28.3 to 2.28.8, which NVIDIA's own recovery library leaves out.
//
// Source: design; the releases by NVIDIA/nccl, src/nccl.h.in at each tag.
Capabilities OfVersion(int nccl_version);

// Such a version for people and messages: "2.28.9", "none".
std::string VersionText(int nccl_version);

}  // namespace tactus::cuda::nccl
