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

ProcessSighting Read(const std::string& folder) {
  std::ifstream file(folder + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  return ParseProcessStat(stat, static_cast<double>(::sysconf(_SC_CLK_TCK)));
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
