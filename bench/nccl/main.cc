// One case of bench/nccl/cases.h on the devices of this machine: prints a line of JSON.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/nccl/cases.h"
#include "bench/nccl/outcome.h"
#include "bench/nccl/processes.h"
#include "cuda/nccl.h"

namespace tactus::bench::nccl {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 64;
constexpr int kExitNoDevice = 69;
constexpr double kAbortLimitSeconds = 20;
// What a member's process may take beyond the limits that it keeps itself: to open a device.
constexpr double kStartSeconds = 30;

constexpr std::string_view kCases[] = {"alone", "incomplete", "refused", "pair", "killed"};

struct Options {
  std::string name{};
  double limit_seconds = 30;
};

void PrintUsage(std::FILE* to) {
  std::fprintf(
      to,
      "usage: bench_nccl CASE [--limit SECONDS]\n"
      "  alone       a communicator of one: microseconds of each call\n"
      "  incomplete  a group that never meets, 20 times: each ends by its limit, nothing leaks\n"
      "  refused     two members on one device: refused, with the reason\n"
      "  pair        two members, on two devices where there are two: right sums, microseconds\n"
      "  killed      a member whose peer is killed: its collective ends, and is aborted\n"
      "  --limit     of a step that waits for others; default 30\n"
      "Prints a line of JSON. Exit code: 0 passed, 1 failed, 69 without a device.\n");
}

std::optional<Options> Parse(int argc, char** argv) {
  if (argc != 2 && argc != 4) return std::nullopt;
  Options options{.name = argv[1]};
  if (std::find(std::begin(kCases), std::end(kCases), options.name) == std::end(kCases)) {
    return std::nullopt;
  }
  if (argc == 2) return options;
  char* end = nullptr;
  options.limit_seconds = std::strtod(argv[3], &end);
  if (std::strcmp(argv[2], "--limit") != 0 || *end != '\0') return std::nullopt;
  if (!(options.limit_seconds > 0 && options.limit_seconds < 1e6)) return std::nullopt;
  return options;
}

Setting SettingOf(const Options& options, const cuda::nccl::Place& place) {
  return {.place = place,
          .limit = Seconds(options.limit_seconds),
          .abort_limit = Seconds(kAbortLimitSeconds),
          .now = [] { return Instant(std::chrono::steady_clock::now().time_since_epoch()); }};
}

double EntriesOf(const char* folder) {
  return static_cast<double>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

Held HeldNow() {
  std::size_t free_bytes = 0;
  std::size_t all_bytes = 0;
  cudaMemGetInfo(&free_bytes, &all_bytes);
  return {.threads = EntriesOf("/proc/self/task"),
          .files = EntriesOf("/proc/self/fd"),
          .device_bytes = static_cast<double>(all_bytes - free_bytes)};
}

// Asked in a process of its own, as those of the members must not have one that touched CUDA for
// their parent. Negative: there is no device.
int CountDevices() {
  const std::vector<Outcome> outcome = InProcesses(1, Seconds(kStartSeconds), [](const auto&) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) return Outcome{.said = cudaGetErrorString(error)};
    return Outcome{.passed = count > 0,
                   .said = "the driver finds none",
                   .figures = {{"devices", static_cast<double>(count)}}};
  });
  if (outcome[0].passed) return static_cast<int>(outcome[0].figures[0].value);
  std::fprintf(stderr, "bench_nccl: no CUDA device: %s\n", outcome[0].said.c_str());
  return -1;
}

Outcome RunMember(const Options& options, int devices, const Membership& membership) {
  const bool alone = options.name == "alone";
  const bool shared = options.name == "refused" || devices < 2;
  const Setting setting = SettingOf(options, {.rank = membership.rank,
                                              .size = alone ? 1 : 2,
                                              .device = shared ? 0 : membership.rank,
                                              .id = membership.id});
  if (alone) return Alone(setting);
  if (options.name == "incomplete") return Incomplete(setting, HeldNow);
  if (options.name == "refused") return Refused(setting);
  if (options.name == "pair") return Pair(setting);
  return Bereaved(setting, membership.kill_others);
}

int Main(const Options& options) {
  const int devices = CountDevices();
  if (devices < 0) return kExitNoDevice;
  const bool of_one = options.name == "alone" || options.name == "incomplete";
  const double seconds = kStartSeconds + kIncompleteTimes * options.limit_seconds;
  std::vector<Outcome> members = InProcesses(
      of_one ? 1 : 2, Seconds(seconds),
      [&](const Membership& membership) { return RunMember(options, devices, membership); });
  if (options.name == "killed") members.resize(1);  // the other one's end is the case
  Outcome outcome = Together(members);
  outcome.figures.push_back({"nccl_version", static_cast<double>(cuda::nccl::Version())});
  outcome.figures.push_back({"devices", static_cast<double>(devices)});
  std::printf("%s\n", ToJson(options.name, outcome).c_str());
  return outcome.passed ? 0 : kExitFailed;
}

}  // namespace
}  // namespace tactus::bench::nccl

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    tactus::bench::nccl::PrintUsage(stdout);
    return 0;
  }
  const std::optional<tactus::bench::nccl::Options> options =
      tactus::bench::nccl::Parse(argc, argv);
  if (!options) {
    tactus::bench::nccl::PrintUsage(stderr);
    return tactus::bench::nccl::kExitUsage;
  }
  return tactus::bench::nccl::Main(*options);
}
