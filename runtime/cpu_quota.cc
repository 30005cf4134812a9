#include "runtime/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

namespace tactus::runtime {
namespace {

// The first words of a file; empty where it cannot be read.
std::vector<std::string> WordsOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; words.size() < 2 && file >> word;) words.push_back(word);
  return words;
}

std::optional<double> Quotient(const std::string& quota, const std::string& period) {
  double share = 0;
  double whole = 0;
  if (!(std::istringstream(quota) >> share) || !(std::istringstream(period) >> whole)) {
    return std::nullopt;  // "max"
  }
  if (!(share > 0) || !(whole > 0)) return std::nullopt;  // -1: none
  return share / whole;
}

// Of one control group, of either kind; nothing: it has none.
std::optional<double> QuotaAt(const std::string& folder) {
  if (const auto words = WordsOf(folder + "/cpu.max"); words.size() == 2) {
    return Quotient(words[0], words[1]);
  }
  const auto quota = WordsOf(folder + "/cpu.cfs_quota_us");
  const auto period = WordsOf(folder + "/cpu.cfs_period_us");
  if (quota.empty() || period.empty()) return std::nullopt;
  return Quotient(quota[0], period[0]);
}

// Where its groups' files are: as /proc/self/cgroup names them, "4:cpu,cpuacct:/a/b" and "0::/a/b".
std::vector<std::string> FoldersOf(const std::string& line, const std::string& root) {
  const std::size_t first = line.find(':');
  const std::size_t second = line.find(':', first + 1);
  if (first == line.npos || second == line.npos) return {};
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string groups = root + "/sys/fs/cgroup";
  std::vector<std::string> mounts = {groups, groups + "/unified"};
  if (!controllers.empty()) mounts = {groups + "/cpu", groups + "/" + controllers};
  const bool of_time = controllers.empty() || ("," + controllers + ",").find(",cpu,") != line.npos;
  if (!of_time) return {};
  std::vector<std::string> folders;
  for (const std::string& mount : mounts) {
    // Within a container the path may be the host's, of which nothing is seen there but the end.
    folders.push_back(mount);
    std::string path = mount;
    std::istringstream names(line.substr(second + 1));
    for (std::string name; std::getline(names, name, '/');) {
      if (name.empty() || name == "..") continue;
      folders.push_back(path += "/" + name);
    }
  }
  return folders;
}

}  // namespace

unsigned UsableCores(unsigned cores, const std::string& root) {
  double usable = std::max(1u, cores);
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    for (const std::string& folder : FoldersOf(line, root)) {
      if (const std::optional<double> quota = QuotaAt(folder)) usable = std::min(usable, *quota);
    }
  }
  return static_cast<unsigned>(std::max(1.0, std::floor(usable + 1e-9)));
}

}  // namespace tactus::runtime
