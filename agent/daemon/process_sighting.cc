#include "agent/daemon/process_sighting.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

namespace tactus::agent {

namespace {

constexpr int kGenerationsMax = 64;

std::string ReadStat(const std::string& folder) {
  std::ifstream file(folder + "/stat");
  return {std::istreambuf_iterator<char>(file), {}};
}

// 0: there is none, or the process is gone.
pid_t ParentOf(pid_t pid) {
  const std::string stat = ReadStat("/proc/" + std::to_string(pid));
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  char state = 0;
  pid_t parent = 0;
  fields >> state >> parent;
  return fields ? parent : 0;
}

ProcessSighting Read(const std::string& folder) {
  return ParseProcessStat(ReadStat(folder), static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace

ProcessSighting LookAtProcess(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  ProcessSighting seen = Read(folder);
  std::error_code ignored;  // it may be gone
  for (const auto& thread : std::filesystem::directory_iterator(folder + "/task", ignored)) {
    seen.storage = seen.storage || Read(thread.path().string()).storage;
  }
  return seen;
}

bool IsBelow(pid_t pid, pid_t ancestor) {
  for (int i = 0; i < kGenerationsMax && pid > 1; ++i) {
    if (pid == ancestor) return true;
    pid = ParentOf(pid);
  }
  return false;
}

// The second field is the program's name in parentheses, which may have any character in it.
ProcessSighting ParseProcessStat(std::string_view stat, double ticks) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return {};
  std::istringstream fields{std::string(stat.substr(name_end + 1))};
  char state = 0;
  std::string skipped;
  fields >> state;
  for (int field = 4; field < 14; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  if (!fields) return {};
  return {.stopped = state == 'T' || state == 't',
          .storage = state == 'D',
          .processor_seconds = (user + system) / ticks};
}

}  // namespace tactus::agent
