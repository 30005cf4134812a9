#include "coordinator/job/transport_choice.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "coordinator/job/wording.h"

namespace tactus::job {
namespace {

constexpr const char* kNoNccl = "none";  // as workers say it
constexpr const char* kSlice = "MIG-";   // how the UUID of a slice begins, a whole GPU's with GPU-

bool OnGpu(const MemberRecord& member) { return member.kind == DeviceKind::kCuda; }

TransportRecord Staged(std::string reason) {
  return {.kind = TransportKind::kStaged, .reason = std::move(reason)};
}

// Of members on GPUs alone: what keeps NCCL from joining them; empty: nothing does.
std::string Obstacle(const std::vector<MemberRecord>& members,
                     const std::vector<std::string>& versions) {
  const auto slice = std::ranges::find_if(
      members, [](const MemberRecord& member) { return member.uuid.starts_with(kSlice); });
  if (slice != members.end()) {
    return WorkerName(*slice) + " is on a MIG slice; NCCL joins whole GPUs alone";
  }
  std::size_t first = members.size();  // that says its version
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const std::string& version = versions[rank];
    if (version == kNoNccl) return WorkerName(members[rank]) + " has no NCCL";
    if (version.empty()) continue;
    if (first == members.size()) first = rank;
    if (version == versions[first]) continue;
    return WorkerName(members[first]) + " has NCCL " + versions[first] + ", " +
           WorkerName(members[rank]) + " has " + version;
  }
  return "";
}

}  // namespace

TransportRecord ChooseTransport(const TransportQuestion& question) {
  const auto& [members, nccl_versions, encrypted] = question;
  TACTUS_CHECK(!members.empty() && members.size() == nccl_versions.size());
  const auto gpu = std::ranges::find_if(members, OnGpu);
  const auto processor = std::ranges::find_if_not(members, OnGpu);
  if (members.size() == 1) {
    return {.kind = gpu == members.end() ? TransportKind::kTcp : TransportKind::kNccl,
            .reason = "one worker alone: nothing travels"};
  }
  if (gpu == members.end()) {
    return {.kind = TransportKind::kTcp, .reason = "all workers are on processors"};
  }
  if (encrypted) return Staged("network.encryption is tls; NCCL cannot encrypt");
  if (processor != members.end()) {
    return Staged(WorkerName(*processor) + " is on a processor, " + WorkerName(*gpu) +
                  " on a GPU; NCCL joins GPUs alone");
  }
  std::string obstacle = Obstacle(members, nccl_versions);
  if (!obstacle.empty()) return Staged(std::move(obstacle));
  return {.kind = TransportKind::kNccl, .reason = "all workers are on GPUs with equal NCCL"};
}

}  // namespace tactus::job
