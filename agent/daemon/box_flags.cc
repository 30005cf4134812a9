#include "agent/daemon/box_flags.h"

#include <charconv>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/box/worker_user.h"

namespace tactus::agent {
namespace {

constexpr std::uint64_t kMemoryBytesMin = std::uint64_t{64} << 20;
constexpr std::uint64_t kTasksMin = 16;
constexpr std::uint64_t kTasksMax = std::uint64_t{1} << 22;  // as many as the kernel numbers
constexpr std::string_view kUnits = "KMGT";

absl::Status Wrong(const std::string& flag, const std::string& reason) {
  return absl::InvalidArgumentError(flag + ": " + reason);
}

// Each without links: what the box compares and opens.
absl::StatusOr<std::vector<std::string>> Folders(const std::string& flag,
                                                 const std::vector<std::string>& given) {
  std::vector<std::string> folders;
  for (const std::string& folder : given) {
    std::error_code error;
    const std::filesystem::path found = std::filesystem::canonical(folder, error);
    if (error || !std::filesystem::is_directory(found, error)) {
      return Wrong(flag, "'" + folder + "'; allowed are folders of this host");
    }
    folders.push_back(found.string());
  }
  return folders;
}

// Where each is, without links; one that is not there, where it will be: keys may come after the
// agent. A link that is made later is hidden, and not what it leads to.
std::vector<std::string> WithoutLinks(const std::vector<std::string>& places) {
  std::vector<std::string> found;
  for (const std::string& place : places) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(place, error);
    if (error) continue;  // relative to a working directory that is gone
    const std::filesystem::path real = std::filesystem::weakly_canonical(whole, error);
    std::filesystem::path path = error ? whole.lexically_normal() : real;  // or not to be looked at
    if (!path.has_filename()) path = path.parent_path();                   // "keys/"
    found.push_back(path.string());
  }
  return found;
}

absl::Status CheckLimits(const BoxFlags& flags, const BoxHost& host, box::BoxOptions& options) {
  options.tasks_max = flags.worker_tasks;
  if (options.tasks_max != 0 && (options.tasks_max < kTasksMin || options.tasks_max > kTasksMax)) {
    return Wrong("worker-tasks", std::to_string(options.tasks_max) +
                                     "; allowed is 16 to 4194304, or 0 for no limit");
  }
  if (flags.worker_memory.empty()) return absl::OkStatus();
  const absl::StatusOr<std::uint64_t> bytes = ParseBytes(flags.worker_memory);
  if (!bytes.ok()) return Wrong("worker-memory", std::string(bytes.status().message()));
  const bool more = host.memory_bytes > 0 && *bytes > host.memory_bytes;
  if (*bytes < kMemoryBytesMin || more) {
    return Wrong("worker-memory",
                 "found " + flags.worker_memory + "; allowed is 64M to the host's memory" +
                     (more ? ", " + std::to_string(host.memory_bytes) + " bytes" : ""));
  }
  options.memory_bytes_max = *bytes;
  return absl::OkStatus();
}

// Without a box nothing of this would hold.
absl::Status CheckOff(const BoxFlags& flags) {
  const std::pair<const char*, bool> given[] = {
      {"require-sandbox", flags.require_sandbox}, {"worker-user", !flags.worker_user.empty()},
      {"data-roots", !flags.data_roots.empty()},  {"writable", !flags.writable.empty()},
      {"private", !flags.private_places.empty()}, {"worker-memory", !flags.worker_memory.empty()},
      {"cgroup", !flags.cgroup.empty()}};
  for (const auto& [flag, is] : given) {
    if (is) return Wrong(flag, "does nothing with --sandbox off; allowed is one of the two");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::uint64_t> ParseBytes(const std::string& text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(parsed.ptr, text.data() + text.size());
  const std::size_t unit = rest.size() == 1 ? kUnits.find(rest[0]) : std::string_view::npos;
  const unsigned shift =
      unit == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(unit) + 1);
  const bool known = rest.empty() || unit != std::string_view::npos;
  if (parsed.ec != std::errc() || !known ||
      number > std::numeric_limits<std::uint64_t>::max() >> shift) {
    return absl::InvalidArgumentError("found '" + text +
                                      "', allowed is a number of bytes, or one with K, M, G or T");
  }
  return number << shift;
}

absl::StatusOr<box::BoxOptions> ResolveBox(const BoxFlags& flags, const BoxHost& host) {
  box::BoxOptions options;
  if (flags.sandbox != "on" && flags.sandbox != "off") {
    return Wrong("sandbox", "'" + flags.sandbox + "'; allowed are on and off");
  }
  options.on = flags.sandbox == "on";
  if (!options.on) {
    if (absl::Status status = CheckOff(flags); !status.ok()) return status;
    return options;
  }
  options.required = flags.require_sandbox;
  options.cgroup_folder = flags.cgroup;
  if (!flags.worker_user.empty()) {
    absl::StatusOr<box::WorkerUser> user = box::FindWorkerUser(flags.worker_user);
    if (!user.ok()) return user.status();
    options.user = *std::move(user);
  }
  absl::StatusOr<std::vector<std::string>> roots = Folders("data-roots", flags.data_roots);
  if (!roots.ok()) return roots.status();
  absl::StatusOr<std::vector<std::string>> writable = Folders("writable", flags.writable);
  if (!writable.ok()) return writable.status();
  options.data_roots = *std::move(roots);
  options.writable = *std::move(writable);
  std::vector<std::string> places = box::KeyPlaces(host.home);
  places.insert(places.end(), host.own_folders.begin(), host.own_folders.end());
  places.insert(places.end(), flags.private_places.begin(), flags.private_places.end());
  options.private_places = WithoutLinks(places);
  if (absl::Status status = CheckLimits(flags, host, options); !status.ok()) return status;
  return options;
}

}  // namespace tactus::agent
