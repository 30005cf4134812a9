#include "coordinator/job/mesh_places.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "base/check.h"
#include "coordinator/job/wording.h"
#include "policies/parallelism.h"

namespace tactus::job {
namespace {

// Devices of one kind and model are as fast as one another; how much faster others are nobody
// knows, and nothing but that they differ is asked.
std::vector<policies::MeshDevice> DevicesOf(const std::vector<MemberRecord>& members) {
  constexpr double kApart = 1000;
  constexpr std::size_t kSortsMax = 32;  // within a double's range
  std::map<std::pair<DeviceKind, std::string>, std::size_t> sorts;
  std::vector<policies::MeshDevice> devices;
  for (const MemberRecord& member : members) {
    const std::size_t sort =
        sorts.try_emplace({member.kind, member.model}, sorts.size()).first->second;
    const double emulated = member.emulated_speed > 0 ? member.emulated_speed : 1;
    devices.push_back(
        {.name = member.device,
         .node = member.node,
         .products_per_second =
             emulated * std::pow(kApart, static_cast<double>(std::min(sort, kSortsMax)))});
  }
  return devices;
}

bool Alike(const MemberRecord& a, const MemberRecord& b) {
  return a.kind == b.kind && a.model == b.model && a.emulated_speed == b.emulated_speed;
}

bool OnOneNode(const MemberRecord& a, const MemberRecord& b) { return a.node == b.node; }

// Meshes in which some member is not like the first.
std::size_t CountUnlike(const std::vector<MemberRecord>& members, std::uint32_t devices,
                        bool (*like)(const MemberRecord&, const MemberRecord&)) {
  std::size_t count = 0;
  for (std::size_t first = 0; first < members.size(); first += devices) {
    const auto mesh = std::span(members).subspan(first, devices);
    const auto unlike = [&](const MemberRecord& member) { return !like(mesh.front(), member); };
    count += std::ranges::any_of(mesh, unlike) ? 1 : 0;
  }
  return count;
}

}  // namespace

std::vector<MemberRecord> PlacedInMeshes(const std::vector<MemberRecord>& members,
                                         std::uint32_t devices) {
  TACTUS_CHECK(devices > 1 && members.size() % devices == 0);
  std::vector<MemberRecord> placed;
  for (const std::vector<std::size_t>& mesh : policies::FormMeshes(DevicesOf(members), devices)) {
    for (const std::size_t index : mesh) placed.push_back(members[index]);
  }
  TACTUS_CHECK(placed.size() == members.size());
  return placed;
}

std::string MeshWords(const JobSettings& settings, const std::vector<MemberRecord>& members) {
  const std::uint32_t devices = settings.mesh_devices;
  if (devices <= 1 || members.empty() || members.size() % devices != 0) return "";
  const std::size_t count = members.size() / devices;
  const std::size_t across = CountUnlike(members, devices, OnOneNode);
  const std::size_t mixed = CountUnlike(members, devices, Alike);
  std::string words =
      settings.mesh + "; " + std::to_string(count) + (count == 1 ? " replica, " : " replicas, ");
  if (across == 0) {
    words += count == 1 ? "within one node" : "each within one node";
  } else {
    words += std::to_string(across) + " over several nodes, as one has too few devices for it";
  }
  if (mixed == 0) return words + ", of equal devices";
  return words + ", " + std::to_string(mixed) +
         " of unequal devices, whose slowest says how fast it is, as there are too few equal ones";
}

std::string WordsOfUnknownMesh(const MemberRecord& member) {
  return WorkerName(member) +
         " knows no models that are split over devices, as its version is older; update Tactus on "
         "that node, or take mesh: {kind: none}";
}

std::vector<std::uint32_t> OfWholeMeshes(const std::vector<std::uint32_t>& ranks,
                                         std::uint32_t devices) {
  std::map<std::uint32_t, std::uint32_t> there;  // members, by replica
  for (const std::uint32_t rank : ranks) ++there[rank / devices];
  std::vector<std::uint32_t> whole = ranks;
  std::erase_if(whole, [&](std::uint32_t rank) { return there[rank / devices] < devices; });
  return whole;
}

}  // namespace tactus::job
