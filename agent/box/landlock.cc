#include "agent/box/landlock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/process.h"

namespace tactus::box {
namespace {

// Of the kernel's include/uapi/linux/landlock.h, up to version 6: the header that the system has
// may be older than its kernel. The numbers of the calls are the same on every architecture.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr unsigned kVersionFlag = 1;
constexpr unsigned kPathBeneath = 1;
constexpr unsigned kNetPort = 2;

constexpr std::uint64_t kExecute = 1u << 0, kWriteFile = 1u << 1, kReadFile = 1u << 2,
                        kReadDir = 1u << 3, kRemoveDir = 1u << 4, kRemoveFile = 1u << 5,
                        kMakeChar = 1u << 6, kMakeDir = 1u << 7, kMakeReg = 1u << 8,
                        kMakeSock = 1u << 9, kMakeFifo = 1u << 10, kMakeBlock = 1u << 11,
                        kMakeSym = 1u << 12, kRefer = 1u << 13, kTruncate = 1u << 14,
                        kIoctlDev = 1u << 15;
constexpr std::uint64_t kBindTcp = 1u << 0;
constexpr std::uint64_t kScopeAbstract = 1u << 0, kScopeSignal = 1u << 1;

struct RulesetAttributes {
  std::uint64_t files = 0;
  std::uint64_t net = 0;
  std::uint64_t scoped = 0;
};
struct __attribute__((packed)) PathRule {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};
struct PortRule {
  std::uint64_t allowed = 0;
  std::uint64_t port = 0;
};

constexpr std::uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev;

// All that a version knows of files.
std::uint64_t Handled(int abi) {
  std::uint64_t all = kMakeSym * 2 - 1;
  if (abi >= 2) all |= kRefer;
  if (abi >= 3) all |= kTruncate;
  if (abi >= 5) all |= kIoctlDev;
  return all;
}

std::uint64_t Rights(Access access) {
  constexpr std::uint64_t kReading = kExecute | kReadFile | kReadDir;
  switch (access) {
    case Access::kList:
      return kReadDir;
    case Access::kRead:
      return kReading;
    case Access::kReadWrite:
      return kReading | kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg | kMakeSock |
             kMakeFifo | kMakeSym | kRefer | kTruncate;
    case Access::kDevice:
      return kReadFile | kReadDir | kWriteFile | kTruncate | kIoctlDev;
  }
  return 0;
}

// The kernel reads as much of the structure as its version has.
std::size_t AttributesSize(int abi) { return abi >= 6 ? 24 : abi >= 4 ? 16 : 8; }

}  // namespace

int LandlockAbi() {
  const long abi = ::syscall(kCreateRuleset, nullptr, 0, kVersionFlag);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

absl::StatusOr<LandlockRules> LandlockRules::Make(int abi, const Scopes& scopes) {
  RulesetAttributes attributes{.files = Handled(abi)};
  if (abi >= 4) attributes.net = kBindTcp;
  if (abi >= 6) attributes.scoped = kScopeSignal | (scopes.abstract_sockets ? kScopeAbstract : 0);
  Descriptor rules(
      static_cast<int>(::syscall(kCreateRuleset, &attributes, AttributesSize(abi), 0u)));
  if (!rules.open()) return runtime::FileError(errno, "landlock", "no rules can be made");
  // Any port that the kernel picks, as the mesh and NCCL listen, and no other.
  const PortRule picked{.allowed = kBindTcp, .port = 0};
  if (abi >= 4 && ::syscall(kAddRule, rules.get(), kNetPort, &picked, 0u) != 0) {
    return runtime::FileError(errno, "landlock", "no rule of ports can be made");
  }
  return LandlockRules(std::move(rules), attributes.files);
}

absl::Status LandlockRules::Allow(int descriptor, Access access) {
  struct stat found = {};
  if (::fstat(descriptor, &found) != 0) return runtime::FileError(errno, "landlock", "no file");
  PathRule rule{.allowed = Rights(access) & handled_, .parent = descriptor};
  if (!S_ISDIR(found.st_mode)) rule.allowed &= kOfFiles;
  if (rule.allowed == 0) return absl::OkStatus();
  if (::syscall(kAddRule, rules_.get(), kPathBeneath, &rule, 0u) == 0) return absl::OkStatus();
  // Pipes, sockets and the like have no place in a tree.
  if (errno == EBADFD) return absl::OkStatus();
  return runtime::FileError(errno, "landlock", "a rule cannot be made");
}

absl::Status LandlockRules::Allow(const std::string& path, Access access) {
  const Descriptor place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place.open()) return runtime::FileError(errno, path, "cannot be opened");
  return Allow(place.get(), access);
}

int RestrictSelf(int rules) { return ::syscall(kRestrictSelf, rules, 0u) == 0 ? 0 : errno; }

}  // namespace tactus::box
