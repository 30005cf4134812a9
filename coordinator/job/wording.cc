#include "coordinator/job/wording.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

namespace tactus::job {
namespace {

constexpr std::size_t kNamesMax = 4;
constexpr std::size_t kLineBytesMax = 200;
constexpr std::string_view kBlank = " \t\r\n\v\f";

// Linux's numbers, which are the agents'.
constexpr std::array<std::pair<int, std::string_view>, 10> kSignals = {{{1, "SIGHUP"},
                                                                        {2, "SIGINT"},
                                                                        {3, "SIGQUIT"},
                                                                        {4, "SIGILL"},
                                                                        {6, "SIGABRT"},
                                                                        {7, "SIGBUS"},
                                                                        {8, "SIGFPE"},
                                                                        {9, "SIGKILL"},
                                                                        {11, "SIGSEGV"},
                                                                        {15, "SIGTERM"}}};

std::string Counted(std::uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// "a, b", of so many.
std::string Enumerated(const std::vector<std::string>& first, std::size_t count) {
  std::string names;
  for (const std::string& name : first) names += (names.empty() ? "" : ", ") + name;
  if (count > first.size()) names += " and " + std::to_string(count - first.size()) + " more";
  return names;
}

}  // namespace

std::string WorkerName(const MemberRecord& member) {
  return "worker " + std::to_string(member.worker.value) + " on node " + member.node;
}

std::string WorkerNames(const std::vector<MemberRecord>& members) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(members.size(), kNamesMax); ++i) {
    names.push_back(WorkerName(members[i]));
  }
  return Enumerated(names, members.size());
}

std::string NodeNames(const std::map<std::string, std::string>& nodes) {
  std::vector<std::string> names;
  for (const auto& [name, reason] : nodes) {
    if (names.size() < kNamesMax) names.push_back(name);
  }
  return Enumerated(names, nodes.size());
}

std::string DeviceCount(std::uint64_t count, DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kCpu:
      return Counted(count, "cpu device");
    case DeviceKind::kCuda:
      return Counted(count, "cuda device");
    case DeviceKind::kStandard:
    case DeviceKind::kAny:
      break;
  }
  return Counted(count, "device");
}

std::string WorkerCount(std::uint64_t count) { return Counted(count, "worker"); }

std::string DurationWords(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  const auto whole = static_cast<std::uint64_t>(std::max<std::int64_t>(seconds, 0));
  if (whole >= 60 && whole % 60 == 0) return Counted(whole / 60, "minute");
  return Counted(whole, "second");
}

std::string SignalWords(int signal) {
  const auto* found = std::ranges::find(kSignals, signal, &std::pair<int, std::string_view>::first);
  std::string words = "signal " + std::to_string(signal);
  if (found != kSignals.end()) words += " (" + std::string(found->second) + ")";
  return words;
}

std::string LastLine(std::string_view log) {
  const std::size_t last = log.find_last_not_of(kBlank);
  if (last == std::string_view::npos) return "";
  log = log.substr(0, last + 1);
  // A progress bar rewrites its line after a carriage return: what stood there last counts.
  const std::size_t newline = log.find_last_of("\r\n");
  if (newline != std::string_view::npos) log.remove_prefix(newline + 1);
  log.remove_prefix(std::min(log.find_first_not_of(kBlank), log.size()));
  return std::string(log.substr(0, kLineBytesMax));
}

}  // namespace tactus::job
