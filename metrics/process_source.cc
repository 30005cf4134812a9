#include "metrics/process_source.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tactus::metrics {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// The field of /proc/self/stat by its number in proc(5), behind the name in brackets; 0: unread.
double StatField(int number) {
  std::ifstream in("/proc/self/stat");
  const std::string line((std::istreambuf_iterator<char>(in)), {});
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return 0;
  std::istringstream fields(line.substr(bracket + 1));
  std::string field;
  for (int at = 3; at <= number; ++at) fields >> field;
  return fields ? std::strtod(field.c_str(), nullptr) : 0;
}

// When the system was started [s since 1970]; 0: unread.
double BootTime() {
  std::ifstream in("/proc/stat");
  for (std::string word; in >> word;) {
    double value = 0;
    if (word == "btime" && in >> value) return value;
  }
  return 0;
}

double OpenDescriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator entries("/proc/self/fd", error);
  if (error) return 0;
  return static_cast<double>(std::distance(begin(entries), end(entries)));
}

}  // namespace

void ProcessSource::Collect(MetricPage& page) {
  constexpr int kResidentPages = 24, kStartTicks = 22;
  const double resident = StatField(kResidentPages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  const double start = StatField(kStartTicks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    page.Write("process_cpu_seconds_total", {}, Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  }
  if (resident > 0) page.Write("process_resident_memory_bytes", {}, resident);
  const double descriptors = OpenDescriptors();
  if (descriptors > 0) page.Write("process_open_fds", {}, descriptors);
  const double boot = BootTime();
  if (boot > 0 && start > 0) page.Write("process_start_time_seconds", {}, boot + start);
}

void StateFolderSource::Collect(MetricPage& page) {
  struct statvfs system {};
  if (::statvfs(folder_.c_str(), &system) != 0) return;
  const auto block = static_cast<double>(system.f_frsize);
  page.Write("tactus_state_free_bytes", {}, block * static_cast<double>(system.f_bavail));
  page.Write("tactus_state_size_bytes", {}, block * static_cast<double>(system.f_blocks));
}

}  // namespace tactus::metrics
