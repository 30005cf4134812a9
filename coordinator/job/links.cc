#include "coordinator/job/links.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>

namespace tactus::job {
namespace {

constexpr double kRateMax = 1e15;  // whatever a worker or an agent says [bytes/s]

// A first plan follows from links where its synchronization does, and the job may begin with what
// others found. Of meshes nobody has tried whether it should.
bool GoesByLinks(const JobSettings& settings) {
  return !settings.kind.empty() && settings.adapt.synchronization.policy == "auto" &&
         settings.mesh_devices <= 1;
}

bool IsRate(double bytes_per_second) {
  return bytes_per_second >= 1 && bytes_per_second <= kRateMax;
}

}  // namespace

std::string LinkKey(const std::string& node) { return "link-" + node; }

std::string BytesOfLink(double bytes_per_second) {
  return std::to_string(static_cast<std::uint64_t>(bytes_per_second));
}

double LinkOf(const std::string& bytes) {
  std::uint64_t rate = 0;
  const char* const end = bytes.data() + bytes.size();
  const auto read = std::from_chars(bytes.data(), end, rate);
  return read.ec == std::errc() && read.ptr == end ? static_cast<double>(rate) : 0;
}

void NoteLink(const std::string& node, double bytes_per_second, Priors& priors, Actions& actions) {
  if (!IsRate(bytes_per_second)) return;
  const double known = LinkOf(priors.Find(LinkKey(node)));
  if (std::abs(bytes_per_second - known) <= kLinkNews * known) return;
  priors.Put(LinkKey(node), BytesOfLink(bytes_per_second), actions);
}

void NoteLinks(const std::vector<MemberRecord>& members, const std::vector<WorkerProgress>& workers,
               Priors& priors, Actions& actions) {
  std::map<std::string, double> slowest;
  for (std::size_t rank = 0; rank < workers.size() && rank < members.size(); ++rank) {
    const double rate = workers[rank].link_bytes_per_second;
    if (!IsRate(rate)) continue;
    const auto [known, first] = slowest.try_emplace(members[rank].node, rate);
    if (!first) known->second = std::min(known->second, rate);
  }
  for (const auto& [node, rate] : slowest) NoteLink(node, rate, priors, actions);
}

std::vector<ProbeLink> UnknownLinks(const JobRecord& job, const Priors& priors) {
  if (!GoesByLinks(job.settings)) return {};
  std::vector<std::string> nodes;
  for (const MemberRecord& member : job.members) {
    if (std::ranges::find(nodes, member.node) == nodes.end()) nodes.push_back(member.node);
  }
  std::vector<ProbeLink> unknown;
  for (std::size_t i = 0; i < nodes.size() && nodes.size() > 1; ++i) {
    const std::string& next = nodes[(i + 1) % nodes.size()];
    if (LinkOf(priors.Find(LinkKey(nodes[i]))) == 0) {
      unknown.push_back({.from = next, .to = nodes[i]});
    }
  }
  return unknown;
}

double ExchangeSeconds(const Exchange& exchange, const Priors& priors) {
  const std::vector<MemberRecord>& members = exchange.job.members;
  const bool hosts_talk =
      exchange.transport == TransportKind::kTcp || exchange.transport == TransportKind::kStaged;
  const bool apart = std::ranges::any_of(
      members, [&](const MemberRecord& member) { return member.node != members.front().node; });
  if (!hosts_talk || !apart || !GoesByLinks(exchange.job.settings)) return 0;
  double slowest = std::numeric_limits<double>::infinity();
  for (const MemberRecord& member : members) {
    slowest = std::min(slowest, LinkOf(priors.Find(LinkKey(member.node))));
  }
  if (slowest == 0) return 0;
  const double share = 2 * (1 - 1 / static_cast<double>(members.size()));
  return share * static_cast<double>(exchange.parameters) * sizeof(float) / slowest;
}

}  // namespace tactus::job
