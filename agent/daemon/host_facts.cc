#include "agent/daemon/host_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/strings/ascii.h"

namespace tactus::agent {
namespace {

constexpr std::size_t kDomainDigits = 4;  // the kernel's; NVML has eight
constexpr unsigned kCpusMax = 1u << 16;   // of a list that may be anything

// Whether a socket's address is the one of these digits.
bool Has(const sockaddr* address, const std::string& digits) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) {
    in_addr wanted{};
    return ::inet_pton(AF_INET, digits.c_str(), &wanted) == 1 &&
           std::memcmp(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr, &wanted,
                       sizeof wanted) == 0;
  }
  in6_addr wanted{};
  return address->sa_family == AF_INET6 && ::inet_pton(AF_INET6, digits.c_str(), &wanted) == 1 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, &wanted,
                     sizeof wanted) == 0;
}

std::string LineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::optional<unsigned> TakeNumber(std::string_view& text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number >= kCpusMax) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// "0-3,8,10-11"; empty where it is no such list.
std::vector<unsigned> CpusOf(std::string_view list) {
  std::vector<unsigned> cpus;
  while (!list.empty()) {
    const std::optional<unsigned> first = TakeNumber(list);
    std::optional<unsigned> last = first;
    if (first && list.starts_with('-')) {
      list.remove_prefix(1);
      last = TakeNumber(list);
    }
    if (!first || !last || (!list.empty() && list.front() != ',')) return {};
    for (unsigned cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    if (!list.empty()) list.remove_prefix(1);
  }
  return cpus;
}

}  // namespace

std::string InterfaceOf(const std::string& address) {
  if (address.empty()) return "";
  if (::if_nametoindex(address.c_str()) != 0) return address;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(all, &::freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (Has(one->ifa_addr, address)) return one->ifa_name;
  }
  return "";
}

std::vector<unsigned> CpusNear(const std::string& sysfs, const std::string& pci_bus_id) {
  std::string bus = absl::AsciiStrToLower(pci_bus_id);
  const std::size_t domain = bus.find(':');
  if (domain == std::string::npos) return {};
  if (domain > kDomainDigits) bus.erase(0, domain - kDomainDigits);
  const std::string node = LineOf(sysfs + "/bus/pci/devices/" + bus + "/numa_node");
  std::string_view digits = node;
  if (!TakeNumber(digits)) return {};  // -1: the firmware does not say
  return CpusOf(LineOf(sysfs + "/devices/system/node/node" + node + "/cpulist"));
}

std::vector<unsigned> OwnCore(std::size_t device, std::size_t devices) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return {};
  if (static_cast<std::size_t>(CPU_COUNT(&allowed)) != devices) return {};
  std::size_t seen = 0;
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed) && seen++ == device) return {core};
  }
  return {};
}

std::string OpenBlasKernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return "";
}

}  // namespace tactus::agent
