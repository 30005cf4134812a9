#include "agent/box/confinement.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace tactus::box {
namespace {

// More than there are; the kernel says where they end.
constexpr unsigned long kCapabilitiesMax = 64;

bool SetLimit(__rlimit_resource limit, std::uint64_t value) {
  if (value == 0) return true;
  const rlimit both{.rlim_cur = value, .rlim_max = value};
  return ::setrlimit(limit, &both) == 0;
}

bool JoinCgroup(int procs) {
  // 0 is whoever writes.
  return ::write(procs, "0", 1) == 1;
}

// By the kernel's own calls: the C library's tell all threads of the parent, which are not there.
bool BecomeUser(const WorkerUser& user) {
  return ::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) == 0 &&
         ::syscall(SYS_setresgid, user.gid, user.gid, user.gid) == 0 &&
         ::syscall(SYS_setresuid, user.uid, user.uid, user.uid) == 0;
}

// An agent without privileges has none to empty, and none to lose.
void EmptyBounds() {
  for (unsigned long capability = 0; capability < kCapabilitiesMax; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return;
  }
}

bool DropCapabilities() {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[2] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

}  // namespace

const char* WordsOf(Step step) {
  switch (step) {
    case Step::kNone:
      return "nothing failed";
    case Step::kStart:
      return "its parent ended";
    case Step::kCgroup:
      return "its cgroup cannot be joined";
    case Step::kLimits:
      return "its limits cannot be set";
    case Step::kUser:
      return "its user cannot be taken on";
    case Step::kPrivileges:
      return "its privileges cannot be dropped";
    case Step::kFiles:
      return "the rules of its files cannot be taken on";
    case Step::kCalls:
      return "the filter of its system calls cannot be taken on";
    case Step::kExec:
      return "cannot be run";
  }
  return "";
}

Step Enter(const Confinement& confinement) {
  if (confinement.cgroup != nullptr && !JoinCgroup(confinement.cgroup->get())) return Step::kCgroup;
  // Pinned memory and RDMA are bound by this where there is no capability.
  const rlimit unlimited{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  ::setrlimit(RLIMIT_MEMLOCK, &unlimited);
  if (!SetLimit(RLIMIT_NPROC, confinement.tasks_max)) return Step::kLimits;
  if (!SetLimit(RLIMIT_DATA, confinement.data_bytes_max)) return Step::kLimits;
  if (confinement.drop_privileges) {
    EmptyBounds();
    // Or root would have all of the bounds again by running a program. Not for who may not.
    ::prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
  }
  if (confinement.user && !BecomeUser(*confinement.user)) return Step::kUser;
  if (confinement.drop_privileges && !DropCapabilities()) return Step::kPrivileges;
  if ((confinement.rules || confinement.filter != nullptr) &&
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Step::kPrivileges;
  }
  if (confinement.rules) {
    errno = RestrictSelf(confinement.rules->descriptor());
    if (errno != 0) return Step::kFiles;
  }
  return Step::kNone;
}

Step EnterFilter(const Confinement& confinement) {
  if (confinement.filter == nullptr) return Step::kNone;
  errno = Install(confinement.filter->data(), confinement.filter->size());
  return errno == 0 ? Step::kNone : Step::kCalls;
}

}  // namespace tactus::box
