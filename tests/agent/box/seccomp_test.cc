#include "agent/box/seccomp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>
#include <string>

#include "agent/box/syscalls.h"
#include "tests/agent/box/in_child.h"

namespace tactus::box {
namespace {

constexpr int kNoFilter = 125;

// errno of one call under the filter; 0: it went well.
int ErrorOf(const std::function<long()>& call) {
  const absl::StatusOr<Filter> filter = MakeFilter();
  EXPECT_TRUE(filter.ok()) << filter.status();
  return InChild([&] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return kNoFilter;
    if (Install(filter->data(), filter->size()) != 0) return kNoFilter;
    errno = 0;
    return call() < 0 ? errno : 0;
  });
}

class SeccompTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!KernelFilters()) GTEST_SKIP() << "this kernel takes no filters";
  }
};

TEST_F(SeccompTest, SocketsAreOfFourFamiliesAndNoOther) {
  const std::set<int> allowed = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
  for (int family = 0; family < 70; ++family) {
    const int error = ErrorOf([family] { return ::socket(family, SOCK_DGRAM, 0); });
    if (allowed.contains(family)) {
      EXPECT_TRUE(error == 0 || error == EAFNOSUPPORT) << family << ": " << error;
    } else {
      EXPECT_TRUE(error == EAFNOSUPPORT || error == ENOSYS) << family << ": " << error;
    }
  }
  // The kernel takes the low half of a register: what is above must not fool the filter.
  EXPECT_EQ(ErrorOf([] { return ::syscall(SYS_socket, 0x100000000L + AF_PACKET, SOCK_DGRAM, 0); }),
            ENOSYS);
}

TEST_F(SeccompTest, RawSocketsAndOtherNetlinksAreRefused) {
  EXPECT_NE(ErrorOf([] { return ::socket(AF_INET, SOCK_RAW, 1); }), 0);
  EXPECT_NE(ErrorOf([] { return ::socket(AF_INET6, SOCK_RAW, 58); }), 0);
  EXPECT_NE(ErrorOf([] { return ::socket(AF_INET, SOCK_PACKET, 1); }), 0);
  for (int protocol = 1; protocol < 24; ++protocol) {
    EXPECT_EQ(ErrorOf([protocol] { return ::socket(AF_NETLINK, SOCK_RAW, protocol); }), ENOSYS);
  }
  EXPECT_EQ(ErrorOf([] { return ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0); }), 0);
  EXPECT_EQ(ErrorOf([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0); }), 0);
}

TEST_F(SeccompTest, ProtocolsWhosePortsNoRuleKnowsAreRefused) {
  constexpr int kMptcp = 262, kSctp = 132, kDccp = 33, kUdpLite = 136;
  for (const int family : {AF_INET, AF_INET6}) {
    EXPECT_EQ(ErrorOf([family] { return ::socket(family, SOCK_STREAM, kMptcp); }), ENOSYS);
    EXPECT_EQ(ErrorOf([family] { return ::socket(family, SOCK_STREAM, kSctp); }), ENOSYS);
    EXPECT_EQ(ErrorOf([family] { return ::socket(family, 6 /* DCCP's */, kDccp); }), ENOSYS);
    EXPECT_EQ(ErrorOf([family] { return ::socket(family, SOCK_DGRAM, kUdpLite); }), ENOSYS);
    EXPECT_NE(ErrorOf([family] { return ::socket(family, SOCK_STREAM, IPPROTO_TCP); }), ENOSYS);
    EXPECT_NE(ErrorOf([family] { return ::socket(family, SOCK_DGRAM, IPPROTO_UDP); }), ENOSYS);
  }
}

// Landlock asks for no right to open by it, and a file may be emptied by the way.
TEST_F(SeccompTest, TheAccessModeThatIsNoneOpensNothing) {
  for (const int more : {0, O_TRUNC, O_CREAT, O_CLOEXEC, O_PATH}) {
    const int flags = O_ACCMODE | more;
    EXPECT_EQ(ErrorOf([=] { return ::syscall(SYS_openat, AT_FDCWD, "/dev/null", flags, 0600); }),
              EINVAL);
#ifdef SYS_open
    EXPECT_EQ(ErrorOf([=] { return ::syscall(SYS_open, "/dev/null", flags, 0600); }), EINVAL);
#endif
  }
  open_how how = {};
  EXPECT_EQ(ErrorOf([&] { return ::syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how); }),
            ENOSYS);
  for (const int mode : {O_RDONLY, O_WRONLY, O_RDWR}) {
    EXPECT_EQ(ErrorOf([mode] { return ::open("/dev/null", mode | O_CLOEXEC); }), 0);
  }
}

TEST_F(SeccompTest, NamespacesAreMadeByNoCall) {
  for (const int flag : {CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID,
                         CLONE_NEWNET, 0x02000000}) {
    EXPECT_EQ(ErrorOf([flag] { return ::unshare(flag); }), EPERM) << flag;
    EXPECT_EQ(ErrorOf([flag] { return ::syscall(SYS_clone, flag | 17, 0, 0, 0, 0); }), ENOSYS);
  }
  EXPECT_EQ(ErrorOf([] { return ::syscall(SYS_clone3, nullptr, 0); }), ENOSYS);
  EXPECT_EQ(ErrorOf([]() -> long {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(0);
              return child;
            }),
            0);
}

TEST_F(SeccompTest, LimitsOfOthersAreNotItsToSet) {
  const pid_t parent = ::getpid();
  rlimit none = {};
  EXPECT_EQ(ErrorOf([&] { return ::prlimit(parent, RLIMIT_NOFILE, nullptr, &none); }), ENOSYS);
  EXPECT_EQ(ErrorOf([&] { return ::getrlimit(RLIMIT_NOFILE, &none); }), 0);
  EXPECT_EQ(ErrorOf([&] { return ::setpriority(PRIO_PROCESS, static_cast<id_t>(parent), 19); }),
            ENOSYS);
  EXPECT_EQ(ErrorOf([] { return ::setpriority(PRIO_PROCESS, 0, 19); }), 0);
}

TEST_F(SeccompTest, EachRefusedCallIsRefusedAndIsInOneListAlone) {
  std::set<std::string_view> allowed(AllowedCalls().begin(), AllowedCalls().end());
  EXPECT_EQ(allowed.size(), AllowedCalls().size()) << "a name is there twice";
  for (const std::string_view name : RefusedCalls()) EXPECT_FALSE(allowed.contains(name)) << name;
  const std::array calls = {SYS_ptrace,
                            SYS_process_vm_readv,
                            SYS_process_vm_writev,
                            SYS_bpf,
                            SYS_mount,
                            SYS_umount2,
                            SYS_setns,
                            SYS_keyctl,
                            SYS_add_key,
                            SYS_request_key,
                            SYS_io_uring_setup,
                            SYS_io_uring_enter,
                            SYS_perf_event_open,
                            SYS_userfaultfd,
                            SYS_init_module,
                            SYS_finit_module,
                            SYS_delete_module,
                            SYS_kexec_load,
                            SYS_reboot,
                            SYS_chroot,
                            SYS_pivot_root,
                            SYS_open_by_handle_at,
                            SYS_pidfd_getfd,
                            SYS_shmget,
                            SYS_mq_open,
                            SYS_syslog,
                            SYS_clock_settime};
  for (const long call : calls) {
    EXPECT_EQ(ErrorOf([call] { return ::syscall(call, 0, 0, 0, 0, 0, 0); }), EPERM) << call;
  }
}

}  // namespace
}  // namespace tactus::box
