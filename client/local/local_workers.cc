#include "client/local/local_workers.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "runtime/process.h"

namespace tactus::client {
namespace {

constexpr std::string_view kSocket = "TACTUS_CONTROL_SOCKET=";
constexpr std::string_view kSocketEnd = ".sock";
constexpr std::string_view kWorker = "tactus-worker";
constexpr std::string_view kArray = "--array";

// The number that all of `text` is.
template <typename Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// What a file of /proc has between its zero bytes.
std::vector<std::string> Words(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

// What the kernel says of a process's family.
struct Family {
  std::string parent{};   // who started it
  std::string session{};  // its session's leader
};

Family FamilyOf(const std::string& process) {
  std::ifstream file(process + "/stat");
  std::string line;
  std::getline(file, line);
  // "11 (name) S 7 11 11 ...", where a name may have anything in it.
  const std::size_t name = line.rfind(") ");
  if (name == std::string::npos) return {};
  std::istringstream rest(line.substr(name + 2));
  std::string state, group;
  Family family;
  rest >> state >> family.parent >> group >> family.session;
  return family;
}

// What an agent was told; empty: not by its words or its environment.
std::string CoordinatorOf(const std::string& agent) {
  constexpr std::string_view kFlag = "--coordinator";
  const std::vector<std::string> words = Words(agent + "/cmdline");
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == kFlag && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(std::string(kFlag) + "=")) return words[i].substr(kFlag.size() + 1);
  }
  constexpr std::string_view kVariable = "TACTUS_COORDINATOR=";
  for (const std::string& variable : Words(agent + "/environ")) {
    if (variable.starts_with(kVariable)) return variable.substr(kVariable.size());
  }
  return "";
}

// A process of several jobs has the environment of the first, and is none of its workers.
bool IsOfSeveral(const std::vector<std::string>& words) {
  const std::string path = words.empty() ? "" : words.front();
  return path.substr(path.rfind('/') + 1) == kWorker && words.size() > 1 && words[1] == kArray;
}

// What it started has its environment, and is in its session or below another that has it.
std::optional<std::uint64_t> WorkerIdOf(const std::string& proc, const std::string& pid,
                                        const WorkersOf& of) {
  const std::string process = proc + "/" + pid;
  const std::vector<std::string> environment = Words(process + "/environ");
  const auto socket = std::ranges::find_if(
      environment, [](const std::string& variable) { return variable.starts_with(kSocket); });
  if (socket == environment.end()) return std::nullopt;
  if (!Has(environment, "TACTUS_JOB_NAME=" + of.job)) return std::nullopt;
  if (IsOfSeveral(Words(process + "/cmdline"))) return std::nullopt;
  const Family family = FamilyOf(process);
  if (family.session != pid) return std::nullopt;
  const std::string parent = proc + "/" + family.parent;
  if (Has(Words(parent + "/environ"), *socket)) return std::nullopt;
  if (CoordinatorOf(parent) != of.coordinator) return std::nullopt;
  std::string_view name = *socket;
  name.remove_prefix(name.rfind('/') + 1);
  if (!name.ends_with(kSocketEnd)) return std::nullopt;
  name.remove_suffix(kSocketEnd.size());
  return NumberOf<std::uint64_t>(name);
}

}  // namespace

std::vector<LocalWorker> FindLocalWorkers(const std::string& proc, const WorkersOf& of) {
  std::vector<LocalWorker> found;
  for (const std::string& name : runtime::NamesIn(proc)) {
    const std::optional<pid_t> pid = NumberOf<pid_t>(name);
    if (!pid) continue;
    if (const auto id = WorkerIdOf(proc, name, of)) {
      found.push_back({.pid = *pid, .id = *id});
    }
  }
  std::ranges::sort(found, {}, &LocalWorker::id);
  return found;
}

absl::Status SignalWorker(const std::string& proc, const WorkersOf& of, const LocalWorker& worker,
                          int signal) {
  const std::string who = "worker " + std::to_string(worker.id);
  if (WorkerIdOf(proc, std::to_string(worker.pid), of) != worker.id) {
    return absl::NotFoundError(who + " has ended");
  }
  // What it has started may be left of its group when it has ended.
  if (kill(worker.pid, 0) == 0 && kill(-worker.pid, signal) == 0) return absl::OkStatus();
  if (errno == ESRCH) return absl::NotFoundError(who + " has ended");
  return absl::PermissionDeniedError(who + ", process " + std::to_string(worker.pid) + ": " +
                                     std::strerror(errno));
}

}  // namespace tactus::client
