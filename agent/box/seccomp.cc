#include "agent/box/seccomp.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>

#include "agent/box/syscalls.h"
#include "base/descriptor.h"

namespace tactus::box {
namespace {

struct Release {
  void operator()(void* context) const { ::seccomp_release(context); }
};

constexpr std::uint32_t Refuse(int error) { return SCMP_ACT_ERRNO(static_cast<unsigned>(error)); }

// Newest first of what linux/sched.h may lack.
constexpr std::uint64_t kNamespaces = CLONE_NEWNS | 0x02000000 /* CLONE_NEWCGROUP */ |
                                      CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                      CLONE_NEWNET;
constexpr int kFamiliesMax = 64;  // more than there are; above, ENOSYS
constexpr std::uint64_t kTypeMask = 0xf;
constexpr std::uint64_t kRoutes = 0;  // NETLINK_ROUTE

// Adds rules to one filter; the first that is refused is what all say.
class Rules {
 public:
  Rules() : context_(::seccomp_init(Refuse(ENOSYS))) {
    if (context_ == nullptr) {
      Note(-ENOMEM, "a filter");
      return;
    }
    Note(::seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
         "foreign calls");
    // Set by the agent, as libseccomp does not load it.
    Note(::seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_NNP, 0), "privileges");
    // A tree of comparisons instead of a row: a call costs a dozen of them, not hundreds.
    Note(::seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "a tree");
  }

  void Add(std::uint32_t action, std::string_view name, std::vector<scmp_arg_cmp> where = {}) {
    if (!error_.empty()) return;
    const int call = ::seccomp_syscall_resolve_name(std::string(name).c_str());
    if (call == __NR_SCMP_ERROR) return;  // newer than the library
    const int added = ::seccomp_rule_add_array(context_.get(), action, call,
                                               static_cast<unsigned>(where.size()), where.data());
    // Of another architecture.
    if (added != -EDOM && added != -EINVAL) Note(added, name);
  }

  absl::StatusOr<Filter> Export() {
    if (!error_.empty()) return absl::InternalError("seccomp: " + error_);
    const Descriptor file(static_cast<int>(::syscall(SYS_memfd_create, "filter", MFD_CLOEXEC)));
    const int exported = file.open() ? ::seccomp_export_bpf(context_.get(), file.get()) : -errno;
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    Filter filter(size > 0 ? static_cast<std::size_t>(size) / sizeof(sock_filter) : 0);
    if (exported != 0 || filter.empty() ||
        ::pread(file.get(), filter.data(), static_cast<std::size_t>(size), 0) != size) {
      return absl::InternalError("seccomp: the filter cannot be written out");
    }
    return filter;
  }

 private:
  void Note(int result, std::string_view what) {
    if (result == 0 || !error_.empty()) return;
    error_ = std::string(what) + ": " + std::generic_category().message(-result);
  }

  std::unique_ptr<void, Release> context_;
  std::string error_;
};

scmp_arg_cmp Is(unsigned argument, std::uint64_t value) {
  return {.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value, .datum_b = 0};
}

// Of the low bits: the kernel ignores what is above an int, so a filter must, too.
scmp_arg_cmp Masked(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

// The mode that is neither reading nor writing asks for no right of Landlock's to open, and opens
// what may be commanded and, before its third version, emptied.
void AddOpen(Rules& rules) {
  for (const unsigned mode : {static_cast<unsigned>(O_RDONLY), static_cast<unsigned>(O_WRONLY),
                              static_cast<unsigned>(O_RDWR)}) {
    rules.Add(SCMP_ACT_ALLOW, "open", {Masked(1, O_ACCMODE, mode)});
    rules.Add(SCMP_ACT_ALLOW, "openat", {Masked(2, O_ACCMODE, mode)});
  }
  rules.Add(Refuse(EINVAL), "open", {Masked(1, O_ACCMODE, O_ACCMODE)});
  rules.Add(Refuse(EINVAL), "openat", {Masked(2, O_ACCMODE, O_ACCMODE)});
}

void AddSockets(Rules& rules) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
    rules.Add(SCMP_ACT_ALLOW, "socket",
              {Is(0, AF_UNIX), Masked(1, kTypeMask, static_cast<unsigned>(type))});
  }
  // By the protocols that Landlock's rules of ports know: another, such as MPTCP, listens anywhere.
  for (const std::uint64_t family : {AF_INET, AF_INET6}) {
    for (const std::uint64_t protocol : {std::uint64_t{0}, std::uint64_t{IPPROTO_TCP}}) {
      rules.Add(SCMP_ACT_ALLOW, "socket",
                {Is(0, family), Masked(1, kTypeMask, SOCK_STREAM), Is(2, protocol)});
    }
    for (const std::uint64_t protocol : {std::uint64_t{0}, std::uint64_t{IPPROTO_UDP}}) {
      rules.Add(SCMP_ACT_ALLOW, "socket",
                {Is(0, family), Masked(1, kTypeMask, SOCK_DGRAM), Is(2, protocol)});
    }
  }
  rules.Add(SCMP_ACT_ALLOW, "socket", {Is(0, AF_NETLINK), Is(2, kRoutes)});
  // Each by its number: a range that leaves one out lets it through.
  for (int family = 0; family < kFamiliesMax; ++family) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
      continue;
    rules.Add(Refuse(EAFNOSUPPORT), "socket", {Is(0, static_cast<unsigned>(family))});
  }
  rules.Add(SCMP_ACT_ALLOW, "socketpair", {Is(0, AF_UNIX)});
}

}  // namespace

absl::StatusOr<Filter> MakeFilter() {
  Rules rules;
  for (const std::string_view name : AllowedCalls()) rules.Add(SCMP_ACT_ALLOW, name);
  for (const std::string_view name : RefusedCalls()) rules.Add(Refuse(EPERM), name);
  AddOpen(rules);
  AddSockets(rules);
  rules.Add(SCMP_ACT_ALLOW, "clone", {Masked(0, kNamespaces, 0)});
  // Of itself alone; of others of its user, the agent among them, no other rule would stop it.
  rules.Add(SCMP_ACT_ALLOW, "prlimit64", {Is(0, 0)});
  rules.Add(SCMP_ACT_ALLOW, "move_pages", {Is(0, 0)});
  rules.Add(SCMP_ACT_ALLOW, "setpriority", {Is(1, 0)});
  // What it is and may ask for: Linux, and which that is.
  for (const std::uint64_t persona : {0x0ull, 0x8ull, 0x20000ull, 0x20008ull, 0xffffffffull}) {
    rules.Add(SCMP_ACT_ALLOW, "personality", {Is(0, persona)});
  }
  return rules.Export();
}

bool KernelFilters() {
  const unsigned action = SECCOMP_RET_ERRNO;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0u, &action) == 0;
}

int Install(const sock_filter* filter, std::size_t size) {
  const sock_fprog program = {.len = static_cast<unsigned short>(size),
                              .filter = const_cast<sock_filter*>(filter)};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 ? 0 : errno;
}

}  // namespace tactus::box
